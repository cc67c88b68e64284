"""Memory: each rule worked by hand, on both implementations."""

import pytest

from .case import Case, cluster

# --- What is allocated when, and freed when ---------------------------------------------------------


def test_outputs_and_workspace_are_allocated_at_the_start_and_workspace_freed_at_the_end(play):
    case = Case()
    case.op("a", "", {"x": 10, "y": 20}, cost=5, workspace=7)
    case.op("b", "x y", cost=3, workspace=1)
    played = case.play(play, cluster())
    assert played.live() == [(0, 37), (5, 31), (8, 0)]
    assert played.run.dynamic_peak_bytes == [37]


def test_the_inputs_and_the_outputs_of_a_running_op_are_all_live(play):
    case = Case()
    case.op("a", "", {"x": 10}, cost=1)
    case.op("b", "x", {"y": 4}, cost=1)
    case.op("c", "y", cost=1)
    assert case.play(play, cluster()).live() == [(0, 10), (1, 14), (2, 4), (3, 0)]


def test_a_tensor_is_freed_when_the_last_of_its_local_consumers_has_ended(play):
    case = Case()
    case.op("a", "", {"x": 10}, cost=1)
    for i in range(3):
        case.op(f"c{i}", "x", cost=2)
    assert case.play(play, cluster()).live() == [(0, 10), (7, 0)]


def test_a_tensor_is_freed_when_the_last_of_its_outgoing_transfers_has_ended(play):
    case = Case()
    case.op("a", "", {"x": 10}, cost=1, on=0)
    case.op("b", "x", cost=50, on=1)
    case.op("c", "x", cost=50, on=2)
    played = case.play(play, cluster(3))
    assert played.sent == {("x", 1): (1, 11), ("x", 2): (11, 21)}
    assert played.live(0) == [(0, 10), (21, 0)]


def test_a_local_consumer_keeps_a_tensor_after_its_transfers_have_ended(play):
    case = Case()
    case.op("a", "", {"x": 10}, cost=1, on=0)
    case.op("b", "x", cost=5, on=1)
    case.op("here", "x", cost=40, on=0)
    played = case.play(play, cluster(2))
    assert played.live(0) == [(0, 10), (41, 0)]


def test_a_tensor_without_consumers_is_freed_at_the_end_of_its_producer(play):
    case = Case()
    case.op("a", "", {"x": 10, "unread": 90}, cost=6)
    case.op("b", "x", cost=1)
    assert case.play(play, cluster()).live() == [(0, 100), (6, 10), (7, 0)]


def test_an_output_stays_to_the_end_on_the_device_of_its_producer(play):
    case = Case()
    case.op("a", "", {"x": 10, "unread": 5}, cost=1, on=0)
    case.op("b", "x", cost=1, on=0)
    case.op("c", "x", cost=1, on=1)
    case.output("x", "unread")
    played = case.play(play, cluster(2))
    assert played.live(0) == [(0, 15)]


def test_a_copy_of_an_output_is_freed_when_its_last_consumer_has_ended(play):
    case = Case()
    case.op("a", "", {"x": 10}, cost=1, on=0)
    case.op("b", "x", cost=3, on=1)
    case.op("c", "x", cost=3, on=1)
    case.output("x")
    assert case.play(play, cluster(2)).live(1) == [(1, 10), (17, 0)]


def test_a_copy_is_allocated_when_its_transfer_starts(play):
    case = Case()
    case.op("a", "", {"x": 10}, cost=5, on=0)
    case.op("b", "x", cost=3, on=1)
    played = case.play(play, cluster(2, latency=100))
    assert played.live(0) == [(0, 10), (115, 0)]
    assert played.live(1) == [(5, 10), (118, 0)]


def test_under_free_a_copy_is_allocated_when_it_arrives(play):
    case = Case()
    case.op("a", "", {"x": 10}, cost=5, on=0)
    case.op("busy", cost=20, on=1, priority=9)
    case.op("b", "x", cost=3, on=1)
    played = case.play(play, cluster(2, "free"))
    assert played.live(0) == [(0, 10), (5, 0)]
    assert played.live(1) == [(5, 10), (23, 0)]


def test_under_free_a_copy_is_allocated_after_the_frees_of_its_round(play):
    case = Case()
    case.op("a", "", {"x": 10}, cost=5, on=0)
    case.op("before", cost=5, on=1, workspace=30)
    case.op("b", "x", {"y": 2}, cost=3, on=1)
    played = case.play(play, cluster(2, "free"))
    assert played.live(1) == [(0, 30), (5, 12), (8, 0)]
    assert played.run.dynamic_peak_bytes == [10, 30]


# --- Frees before allocations -----------------------------------------------------------------------


def test_in_one_round_all_frees_come_before_all_allocations(play):
    case = Case()
    case.op("a", cost=5, workspace=30)
    case.op("b", cost=5, workspace=31)
    assert case.play(play, cluster()).run.dynamic_peak_bytes == [31]


def test_a_transfer_that_ends_frees_before_an_op_of_the_same_round_allocates(play):
    case = Case()
    case.op("a", "", {"x": 10}, cost=5, on=0)
    case.op("goes on", cost=10, on=0, priority=-1)  # 5 to 15, as the transfer
    case.op("next", cost=1, on=0, workspace=9, priority=-2)
    case.op("b", "x", on=1)
    played = case.play(play, cluster(2))
    assert played.start("next") == 15
    assert played.live(0) == [(0, 10), (15, 9), (16, 0)]
    assert played.run.dynamic_peak_bytes == [10, 10]


def test_a_round_that_frees_as_much_as_it_allocates_is_no_change(play):
    case = Case()
    case.op("a", cost=5, workspace=30)
    case.op("b", cost=5, workspace=30)
    assert case.play(play, cluster()).live() == [(0, 30), (10, 0)]


def test_the_peak_is_taken_after_every_round_so_ops_without_duration_count(play):
    case = Case()
    case.op("a", "", {"x": 3}, cost=4)
    case.op("z", "x", {"y": 50}, cost=0)
    case.op("b", "y", {"w": 1}, cost=0, workspace=9)
    case.op("c", "w", cost=4)
    played = case.play(play, cluster())
    assert played.run.dynamic_peak_bytes == [60]
    assert played.live() == [(0, 3), (4, 53), (4, 60), (4, 1), (8, 0)]


def test_each_device_has_its_own_peak(play):
    case = Case()
    case.op("a", "", {"x": 10}, cost=1, on=0)
    case.op("b", "x", {"y": 20}, cost=1, on=1)
    case.op("c", "y", {"z": 40}, cost=1, on=2)
    assert case.play(play, cluster(4)).run.dynamic_peak_bytes == [10, 30, 60, 0]


# --- Resident ---------------------------------------------------------------------------------------


def test_tensors_of_variables_are_resident_on_their_home_even_if_unread(play):
    case = Case()
    case.variable("w", 100, on=0)
    case.variable("unread", 7, on=1)
    case.op("a", "w", cost=1, on=0)
    played = case.play(play, cluster(2))
    assert played.run.resident_bytes == [100, 7]
    assert played.run.dynamic_peak_bytes == [0, 0]
    assert played.run.memory == []


def test_a_copy_of_a_variable_is_an_ordinary_copy(play):
    case = Case()
    case.variable("w", 100, on=0)
    case.op("a", "w", cost=5, on=1)
    played = case.play(play, cluster(2))
    assert played.run.resident_bytes == [100, 0]
    assert played.live(1) == [(0, 100), (105, 0)]


@pytest.mark.parametrize("role", ["parameter", "input", "constant", "activation"])
@pytest.mark.parametrize("channel", ["port", "free"])
def test_a_source_tensor_is_resident_on_each_device_with_a_consumer_and_never_sent(play, role, channel):
    case = Case()
    case.source("s", 100, role)
    case.source("unread", 1000, role)
    case.op("a", "s", cost=5, on=0)
    case.op("b", "s", cost=5, on=2)
    case.op("c", "s", cost=5, on=2)
    case.output("s", "unread")
    played = case.play(play, cluster(4, channel))
    assert played.run.resident_bytes == [100, 0, 100, 0]
    assert played.run.dynamic_peak_bytes == [0, 0, 0, 0]
    assert played.sent == {}
    assert [played.start(op) for op in "abc"] == [0, 0, 5]


def test_memory_samples_include_the_resident_bytes(play):
    case = Case()
    case.source("s", 100)
    case.op("a", "s", {"x": 8}, cost=5)
    assert case.play(play, cluster()).live() == [(0, 108), (5, 100)]


def test_an_updates_output_costs_nothing_at_home_and_its_copy_is_an_ordinary_copy(play):
    case = Case()
    case.variable("w", 100, on=0)
    case.op("step", "w", {"w'": 100}, cost=2, on=0, updates="w")
    case.op("here", "w'", cost=1, on=0)
    case.op("there", "w'", cost=1, on=1)
    played = case.play(play, cluster(2))
    assert played.run.dynamic_peak_bytes == [0, 100]
    assert played.live(0) == []
    assert played.live(1) == [(2, 100), (103, 0)]


def test_an_update_still_pays_for_its_workspace(play):
    case = Case()
    case.variable("w", 100)
    case.op("step", "w", {"w'": 100}, cost=2, workspace=6, updates="w")
    assert case.play(play, cluster()).live() == [(0, 106), (2, 100)]


def test_an_update_frees_its_other_inputs(play):
    case = Case()
    case.variable("w", 100)
    case.op("backward", "w", {"gradient": 100}, cost=1)
    case.op("step", "w gradient", {"w'": 100}, cost=2, updates="w")
    assert case.play(play, cluster()).live() == [(0, 200), (3, 100)]


def test_a_control_dependency_is_a_tensor_of_no_bytes(play):
    case = Case()
    case.op("a", "", {"after": 0}, cost=4, on=0)
    case.op("b", "after", cost=1, on=0)
    case.op("c", "after", cost=1, on=1)
    played = case.play(play, cluster(2, latency=3))
    assert [played.start(op) for op in "bc"] == [4, 7]
    assert played.run.dynamic_peak_bytes == [0, 0]


# --- Capacity ---------------------------------------------------------------------------------------


def test_capacity_never_alters_the_run(play):
    case = Case()
    case.op("a", "", {"x": 1000}, cost=1, on=0)
    case.op("b", "x", {"y": 1000}, cost=1, on=1)
    roomy = cluster(2)
    assert case.play(play, roomy.with_capacity(1)).run == case.play(play, roomy).run


# --- Result -----------------------------------------------------------------------------------------


def test_makespan_is_the_last_end(play):
    case = Case()
    case.op("a", "", {"x": 10}, cost=4, on=0)
    case.op("b", "x", cost=0, on=1)
    case.op("c", cost=9, on=0)
    played = case.play(play, cluster(2))
    assert played.span("b") == (14, 14)
    assert played.run.makespan_ns == 14
