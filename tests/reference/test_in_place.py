"""In-place ops and their small print, worked by hand, on both implementations."""

import pytest

from .case import Case, cluster


def peak(case, play, devices=1, channel="port"):
    return case.play(play, cluster(devices, channel)).run.dynamic_peak_bytes


def chain(in_place=True, elementwise=True, **changes):
    """a writes x (10 bytes), b reads it and writes y (10 bytes), c reads y."""
    case = Case(in_place=in_place)
    case.op("a", "", {"x": 10}, cost=1)
    case.op("b", "x", {"y": 10}, **({"cost": 1, "elementwise": elementwise} | changes))
    case.op("c", "y", cost=1)
    return case


def test_an_elementwise_op_takes_over_the_buffer_of_its_input(play):
    played = chain().play(play, cluster())
    assert played.live() == [(0, 10), (3, 0)]  # one buffer from the start of a to the end of c


def test_in_place_is_off_unless_the_graph_says_so(play):
    assert peak(chain(in_place=False), play) == [20]


def test_an_op_that_is_not_elementwise_takes_nothing_over(play):
    assert peak(chain(elementwise=False), play) == [20]


def test_the_input_must_have_the_same_bytes(play):
    for size in (9, 11):
        case = Case(in_place=True)
        case.op("a", "", {"x": 10})
        case.op("b", "x", {"y": size}, elementwise=True)
        assert peak(case, play) == [10 + size]


def test_workspace_is_allocated_all_the_same(play):
    assert chain(workspace=3).play(play, cluster()).live() == [(0, 10), (1, 13), (2, 10), (3, 0)]


def test_takeovers_chain(play):
    case = Case(in_place=True)
    case.op("a", "", {"x0": 10})
    for i in range(6):
        case.op(f"b{i}", f"x{i}", {f"x{i + 1}": 10}, elementwise=True)
    assert case.play(play, cluster()).live() == [(0, 10), (7, 0)]


def test_an_unread_output_in_a_taken_buffer_is_freed_at_its_producers_end(play):
    case = Case(in_place=True)
    case.op("a", "", {"x": 10})
    case.op("b", "x", {"y": 10}, elementwise=True)
    case.op("c", cost=5, workspace=1)
    assert case.play(play, cluster()).live() == [(0, 10), (2, 1), (7, 0)]


def test_an_op_with_two_outputs_or_none_takes_nothing_over(play):
    case = Case(in_place=True)
    case.op("a", "", {"x": 10})
    case.op("b", "x", {"y": 10, "z": 0}, elementwise=True)
    assert peak(case, play) == [20]
    case = Case(in_place=True)
    case.op("a", "", {"x": 10}, cost=1)
    case.op("b", "x", elementwise=True, cost=1)
    assert case.play(play, cluster()).live() == [(0, 10), (2, 0)]


# --- Which input ------------------------------------------------------------------------------------


def two_inputs(x=10, y=10):
    """b reads two tensors; whatever keeps it from x, it may still take y."""
    case = Case(in_place=True)
    case.op("a", "", {"x": x, "y": y}, cost=1)
    case.op("b", "x y", {"z": 10}, cost=1, elementwise=True)
    return case


def test_of_several_inputs_one_is_taken_and_the_others_are_freed(play):
    case = two_inputs()
    case.op("c", "z", cost=1)
    assert case.play(play, cluster()).live() == [(0, 20), (2, 10), (3, 0)]


def test_the_first_input_that_meets_all_conditions_is_taken(play):
    case = two_inputs(x=9)  # x has other bytes
    assert case.play(play, cluster()).live() == [(0, 19), (2, 0)]
    case = two_inputs()
    case.op("keep", "x", cost=1)  # x has another use
    assert case.play(play, cluster()).live() == [(0, 20), (2, 10), (3, 0)]
    case = two_inputs()
    case.output("x")  # x is an output
    assert case.play(play, cluster()).live() == [(0, 20), (2, 10)]


# --- Uses -------------------------------------------------------------------------------------------


def test_a_consumer_that_has_not_ended_is_a_use(play):
    case = chain()
    case.op("later", "x", cost=1)
    assert peak(case, play) == [20]


def test_a_consumer_that_has_ended_is_none(play):
    case = Case(in_place=True)
    case.op("a", "", {"x": 10})
    case.op("earlier", "x")
    case.op("b", "x", {"y": 10}, elementwise=True)
    assert peak(case, play) == [10]


def test_a_consumer_that_ends_in_the_round_in_which_the_op_starts_has_ended(play):
    case = Case(in_place=True)
    case.op("a", "", {"x": 10}, cost=0)
    case.op("earlier", "x", cost=0)
    case.op("b", "x", {"y": 10}, cost=0, elementwise=True)
    assert peak(case, play) == [10]


def test_an_outgoing_transfer_that_has_not_ended_is_a_use(play):
    case = chain()
    case.op("far", "x", on=1)
    assert peak(case, play, 2) == [20, 10]


def test_an_outgoing_transfer_that_waits_is_a_use(play):
    case = chain()
    case.op("elsewhere", "", {"big": 500}, cost=0, on=2)
    case.op("far", "x big", on=1)  # device 1 receives "big" first
    played = case.play(play, cluster(3))
    assert played.sent == {("big", 1): (0, 500), ("x", 1): (500, 510)}
    assert played.start("b") == 1
    assert played.run.dynamic_peak_bytes[0] == 20


def test_an_outgoing_transfer_that_has_ended_is_none(play):
    case = chain()
    case.op("pause", cost=50, priority=1)  # b starts after the transfer
    case.op("far", "x", on=1, cost=200)
    case.rows[0].priority = 2
    assert case.play(play, cluster(2)).start("b") == 51
    assert peak(case, play, 2) == [10, 10]


def test_a_transfer_that_ends_in_the_round_in_which_the_op_starts_has_ended(play):
    case = chain()
    case.op("pause", cost=10, priority=1)
    case.op("far", "x", on=1)
    case.rows[0].priority = 2
    played = case.play(play, cluster(2))
    assert played.sent == {("x", 1): (1, 11)}
    assert played.start("b") == 11
    assert played.run.dynamic_peak_bytes == [10, 10]


def test_under_free_a_copy_has_left_before_the_ops_of_its_round_start(play):
    case = chain()
    case.op("far", "x", on=1)
    assert peak(case, play, 2, "free") == [10, 10]


def test_uses_on_other_devices_do_not_count(play):
    case = Case(in_place=True)
    case.op("a", "", {"x": 10}, cost=1, on=0)
    case.op("slow", "x", cost=900, on=0)
    case.op("b", "x", {"y": 10}, cost=1, on=1, elementwise=True)
    assert peak(case, play, 2) == [10, 10]


def test_a_copy_with_another_consumer_on_its_device_is_not_taken(play):
    case = Case(in_place=True)
    case.op("a", "", {"x": 10}, cost=1, on=0)
    case.op("b", "x", {"y": 10}, cost=1, on=1, elementwise=True)
    case.op("later", "x", cost=1, on=1)
    assert peak(case, play, 2) == [10, 20]


# --- What is never taken over -----------------------------------------------------------------------


def test_an_output_is_not_taken_over(play):
    case = chain()
    case.output("x")
    assert peak(case, play) == [20]


def test_a_copy_of_an_output_is_not_taken_over(play):
    case = Case(in_place=True)
    case.op("a", "", {"x": 10}, on=0)
    case.op("b", "x", {"y": 10}, on=1, elementwise=True)
    assert peak(case, play, 2) == [10, 10]
    case.output("x")
    assert peak(case, play, 2) == [10, 20]


def test_an_op_may_write_an_output_into_a_taken_buffer(play):
    case = chain()
    case.output("y")
    assert case.play(play, cluster()).live() == [(0, 10)]


@pytest.mark.parametrize("role", ["parameter", "input", "constant", "activation"])
def test_a_source_tensor_is_not_taken_over(play, role):
    case = Case(in_place=True)
    case.source("s", 10, role)
    case.op("b", "s", {"y": 10}, elementwise=True)
    assert peak(case, play) == [10]


def test_a_variable_is_not_taken_over_at_home_but_a_copy_may_be(play):
    case = Case(in_place=True)
    case.variable("w", 10, on=0)
    case.op("here", "w", {"x": 10}, on=0, elementwise=True)
    case.op("there", "w", {"y": 10}, on=1, elementwise=True)
    assert peak(case, play, 2) == [10, 10]
    assert peak(case, play, 2, "free") == [10, 10]


def test_an_updates_output_is_not_taken_over_at_home_but_a_copy_may_be(play):
    case = Case(in_place=True)
    case.variable("w", 10, on=0)
    case.op("step", "w", {"w'": 10}, on=0, updates="w")
    case.op("here", "w'", {"x": 10}, on=0, elementwise=True)
    case.op("there", "w'", {"y": 10}, on=1, elementwise=True)
    assert peak(case, play, 2) == [10, 10]


def test_an_update_takes_nothing_over(play):
    case = Case(in_place=True)
    case.variable("w", 10)
    case.op("backward", "w", {"gradient": 10}, cost=1)
    case.op("step", "gradient w", {"w'": 10}, cost=1, elementwise=True, updates="w")
    # The gradient's own bytes go when the update ends; w' has none.
    assert case.play(play, cluster()).live() == [(0, 20), (2, 10)]


def test_a_tensor_sent_from_a_taken_buffer_keeps_it_until_the_transfer_has_ended(play):
    case = Case(in_place=True)
    case.op("a", "", {"x": 10}, cost=1, on=0)
    case.op("b", "x", {"y": 10}, cost=1, on=0, elementwise=True)
    case.op("far", "y", cost=1, on=1)
    played = case.play(play, cluster(2))
    assert played.live(0) == [(0, 10), (12, 0)]
    assert played.live(1) == [(2, 10), (13, 0)]
