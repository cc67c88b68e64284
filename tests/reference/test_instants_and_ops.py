"""Indices, priorities, instants and ops: each rule worked by hand, on both implementations."""

import numpy as np
import pytest

from opgym.benchmark.reference_simulator import upward_rank
from opgym.graphs import GraphBuilder, Simulator

from .case import Case, cluster


def rank_reference(graph, on, cost, device):
    return upward_rank(graph, on, cost, device)


def rank_core(graph, on, cost, device):
    return Simulator(graph, on, np.asarray(cost, np.int64)).upward_rank(device).tolist()


@pytest.fixture(params=[rank_reference, rank_core], ids=["reference", "core"])
def rank(request):
    """An implementation of upward rank."""
    return request.param


# --- Indices ----------------------------------------------------------------------------------------


def test_the_lower_index_is_that_of_the_topological_order_not_of_the_file(play):
    case = Case()
    case.op("late", "t", cost=2)  # file index 0, but it reads from the op at file index 1
    case.op("early", "", {"t": 1}, cost=3)
    case.op("other", cost=4)
    played = case.play(play, cluster())
    assert played.graph.op_names == ("early", "late", "other")
    assert [played.start(op) for op in ("early", "late", "other")] == [0, 3, 5]


def test_an_op_that_reads_a_tensor_twice_reads_it_once(play):
    case = Case(in_place=True)
    case.op("a", "", {"x": 8}, cost=5)
    case.op("b", "x x", {"y": 8}, cost=3, on=1, elementwise=True)
    played = case.play(play, cluster(2))
    assert played.sent == {("x", 1): (5, 13)}
    assert played.span("b") == (13, 16)
    assert played.run.dynamic_peak_bytes == [8, 8]  # one use: y takes x over


# --- Priorities -------------------------------------------------------------------------------------


def start_order(play, priorities, dtype=np.float64):
    case = Case()
    for i, value in enumerate(priorities):
        case.op(f"op{i}", cost=1, priority=value)
    played = case.play(play, cluster(), dtype=dtype)
    return sorted(range(len(priorities)), key=lambda i: played.start(f"op{i}"))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_higher_priority_goes_first_and_ties_go_by_ascending_index(play, dtype):
    assert start_order(play, [1.0, 3.0, 1.0, 3.0, 2.0], dtype) == [1, 3, 4, 0, 2]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_minus_zero_equals_zero(play, dtype):
    assert start_order(play, [-0.0, 0.0, -0.0, 0.0], dtype) == [0, 1, 2, 3]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_infinities_are_allowed(play, dtype):
    assert start_order(play, [0.0, -np.inf, np.inf, -1e30, 1e30, np.inf], dtype) == [2, 5, 4, 0, 3, 1]


def test_float32_priorities_tie_where_float64_ones_do_not(play):
    assert start_order(play, [1.0, 1.0 + 1e-9], np.float32) == [0, 1]
    assert start_order(play, [1.0, 1.0 + 1e-9], np.float64) == [1, 0]


def test_subnormal_and_negative_priorities_are_ordered(play):
    assert start_order(play, [-1e-40, 0.0, 1e-40, -2.0, -1.0], np.float32) == [2, 1, 0, 4, 3]
    assert start_order(play, [-5e-324, 0.0, 5e-324], np.float64) == [2, 1, 0]


def test_program_order_is_the_negative_index(play):
    assert start_order(play, [-0.0, -1.0, -2.0, -3.0]) == [0, 1, 2, 3]


def test_the_default_priority_is_the_upward_rank(play):
    case = Case()
    case.op("short", "", {"s": 0}, cost=2)
    case.op("long", "", {"t": 0}, cost=1)
    case.op("after long", "t", cost=9)
    played = case.play(play, cluster(), priority=None)
    # Ranks 2, 10, 9: the chain goes first, although "short" has the lower index.
    assert [played.start(op) for op in ("short", "long", "after long")] == [10, 0, 1]


def test_the_default_priority_is_compared_as_an_integer(play):
    case = Case()
    case.op("first", cost=2**53)
    case.op("second", cost=2**53 + 1)  # equal to the other as a float64
    played = case.play(play, cluster(), priority=None)
    assert played.span("second") == (0, 2**53 + 1)
    assert played.span("first") == (2**53 + 1, 2**54 + 1)


def test_upward_rank_takes_the_maximum_over_output_tensors_and_consumers(rank):
    case = Case()
    case.op("a", "", {"x": 10, "y": 40}, cost=[100, 1])
    case.op("b", "x", cost=[7, 1000], on=1)
    case.op("c", "y", {"z": 5}, cost=[7, 30], on=0)
    case.op("d", "x y z", cost=[7, 3], on=1)
    graph = case.build()
    on = cluster(2, latency=[[0, 20], [90, 0]], bandwidth=[[1, 2 * 10**9], [1, 1]], classes="AB")
    ranked = rank(graph, on, case.by_index("cost", graph), case.by_index("on", graph))
    ranks = dict(zip(graph.op_names, ranked, strict=True))
    assert ranks["b"] == 1000  # no consumer
    assert ranks["d"] == 3
    assert ranks["c"] == 7 + (20 + 3) + 3  # 5 bytes at 2 bytes per ns, rounded up, after the latency
    assert ranks["a"] == 100 + max((20 + 5) + 1000, (20 + 5) + 3, 0 + 33, (20 + 20) + 3)


def test_upward_rank_has_no_transfer_time_under_free(rank):
    case = Case()
    case.op("a", "", {"x": 10}, cost=4)
    case.op("b", "x", cost=6, on=1)
    graph = case.build()
    cost, device = [[4], [6]], [0, 1]
    assert rank(graph, cluster(2, "free", latency=5), cost, device) == [10, 6]
    assert rank(graph, cluster(2, "port", latency=5), cost, device) == [25, 6]


def test_upward_rank_goes_through_a_consumer_once_per_tensor(rank):
    case = Case()
    case.op("a", "", {"small": 1, "large": 50}, cost=1)
    case.op("b", "small large", cost=2, on=1)
    graph = case.build()
    assert rank(graph, cluster(2), [[1], [2]], [0, 1]) == [53, 2]


def test_a_variable_has_no_time_of_its_own_in_the_upward_rank(rank):
    case = Case()
    case.variable("w", 10)
    case.op("a", "w", on=1)
    graph = case.build()
    assert rank(graph, cluster(2), [[500], [3]], [0, 1]) == [13, 3]


# --- Instants ---------------------------------------------------------------------------------------


def test_what_an_ending_op_enables_starts_at_the_same_time(play):
    case = Case()
    case.op("a", "", {"x": 0}, cost=5)
    case.op("b", "x", cost=2)
    assert case.play(play, cluster()).span("b") == (5, 7)


def test_an_op_is_not_interrupted_by_a_better_one(play):
    case = Case()
    case.op("a", "", {"x": 0}, cost=2, on=1)
    case.op("slow", cost=50, on=0, priority=0)
    case.op("urgent", "x", cost=1, on=0, priority=9)
    played = case.play(play, cluster(2))
    assert played.span("slow") == (0, 50)
    assert played.sent == {("x", 0): (2, 2)}
    assert played.start("urgent") == 50


def test_a_device_starts_the_best_ranked_of_its_ready_ops(play):
    case = Case()
    case.op("a", "", {"x": 0}, cost=2)
    case.op("good", priority=1)
    case.op("better", "x", priority=2)
    case.op("best", priority=3)
    played = case.play(play, cluster())
    assert [played.start(op) for op in ("best", "good", "a", "better")] == [0, 1, 2, 4]


def test_everything_that_ends_at_a_time_ends_before_anything_starts(play):
    case = Case()
    case.op("far", "", {"x": 4}, cost=6, on=1)  # its transfer ends at 10
    case.op("near", cost=10, on=0, priority=5)  # and so does this op
    case.op("waits for x", "x", on=0, priority=4)
    case.op("ready", on=0, priority=3)
    played = case.play(play, cluster(2))
    assert played.start("waits for x") == 10
    assert played.start("ready") == 11


def test_an_op_without_duration_ends_in_the_next_round_of_the_instant(play):
    case = Case()
    case.op("a", cost=0, workspace=5)
    case.op("b", cost=0, workspace=7)
    case.op("c", cost=0, workspace=6)
    played = case.play(play, cluster())
    assert [played.span(op) for op in "abc"] == [(0, 0)] * 3
    assert played.run.dynamic_peak_bytes == [7]  # one after another, never together
    assert played.live() == [(0, 5), (0, 7), (0, 6), (0, 0)]
    assert played.run.makespan_ns == 0


def test_what_an_op_without_duration_enables_comes_after_the_starts_of_its_round(play):
    case = Case()
    case.op("quick", "", {"x": 0}, cost=0, on=0)
    case.op("plain", cost=3, on=1, priority=1)
    case.op("urgent", "x", cost=1, on=1, priority=2)
    # In the first round of time 0 "plain" is all that device 1 can start.
    assert case.play(play, cluster(2, "free")).start("urgent") == 3


def test_a_transfer_without_duration_ends_in_the_next_round(play):
    case = Case()
    case.op("a", "", {"x": 0}, cost=4, on=0)
    case.op("first", cost=4, on=1, priority=9)
    case.op("plain", cost=3, on=1, priority=1)
    case.op("urgent", "x", cost=1, on=1, priority=2)
    # At 4: round 1 ends "a" and "first", starts "plain", then the transfer, which ends in round 2.
    played = case.play(play, cluster(2))
    assert played.sent == {("x", 1): (4, 4)}
    assert [played.start(op) for op in ("plain", "urgent")] == [4, 7]


def test_channels_start_transfers_after_devices_started_in_the_same_round(play):
    # "quick" starts in the round that frees its device and ends in the next one; the transfer of "a" that
    # became possible in the first of these rounds takes the port before the better-ranked one of "quick".
    case = Case()
    case.op("a", "", {"x": 10}, cost=3, on=0)
    case.op("quick", "", {"y": 10}, cost=0, on=0)
    case.op("reads x", "x", on=1, priority=1)
    case.op("reads y", "y", on=1, priority=2)
    played = case.play(play, cluster(2))
    assert played.span("quick") == (3, 3)
    assert played.sent == {("x", 1): (3, 13), ("y", 1): (13, 23)}


def test_a_chain_without_duration_runs_within_one_instant(play):
    case = Case()
    case.op("a", "", {"x0": 3}, cost=7)
    for i in range(20):
        case.op(f"z{i}", f"x{i}", {f"x{i + 1}": 3}, cost=0, on=i % 3)
    played = case.play(play, cluster(3, bandwidth=10**18))
    assert played.run.makespan_ns == 7 + 19  # 19 changes of device; 3 bytes take a nanosecond, rounded up
    assert case.play(play, cluster(3, "free")).run.makespan_ns == 7


# --- Ops --------------------------------------------------------------------------------------------


def test_an_op_waits_until_every_input_is_present_on_its_device(play):
    case = Case()
    case.op("a", "", {"x": 6}, cost=2, on=0)
    case.op("b", "", {"y": 1}, cost=20, on=1)
    case.op("c", "x y", cost=1, on=1)
    assert case.play(play, cluster(2)).start("c") == 20
    assert case.play(play, cluster(2, latency=30)).start("c") == 2 + 30 + 6


def test_an_op_occupies_its_device_for_its_cost_on_the_class_of_that_device(play):
    case = Case()
    for i, d in enumerate([0, 1, 2]):
        case.op(f"op{i}", cost=[10, 300], on=d)
    played = case.play(play, cluster(3, classes="ABA"))
    assert [played.span(f"op{i}") for i in range(3)] == [(0, 10), (0, 300), (0, 10)]
    assert played.run.busy_ns == [10, 300, 10]


def test_ops_without_edges_share_devices_one_at_a_time(play):
    case = Case()
    for i in range(5):
        case.op(f"op{i}", cost=i + 1, on=i % 2)
    played = case.play(play, cluster(3))
    assert played.run.busy_ns == [1 + 3 + 5, 2 + 4, 0]
    assert played.run.makespan_ns == 9


def test_a_variable_is_not_scheduled_and_takes_no_time(play):
    case = Case()
    case.variable("w", 16, cost=500)  # whatever the table says
    case.op("a", "w", cost=3)
    played = case.play(play, cluster())
    assert played.span("w") == (-1, -1)
    assert played.span("a") == (0, 3)
    assert played.run.busy_ns == [3]


def test_transfers_of_a_variable_wait_from_time_0(play):
    case = Case()
    case.variable("w", 16, on=1)
    case.op("blocks the device", cost=100, on=1)
    case.op("a", "w", cost=3, on=0)
    played = case.play(play, cluster(2, latency=2))
    assert played.sent == {("w", 0): (0, 18)}
    assert played.span("a") == (18, 21)


def test_a_graph_of_variables_takes_no_time(play):
    case = Case()
    case.variable("w", 16)
    case.variable("v", 4, on=1)
    run = case.play(play, cluster(2)).run
    assert run.makespan_ns == 0
    assert (run.resident_bytes, run.dynamic_peak_bytes) == ([16, 4], [0, 0])


# --- Refused before anything runs -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"priority": [0.0, np.nan]}, "NaN"),
        ({"priority": [0.0]}, "expected"),
        ({"transfer_priority": [[0.0, 0.0], [0.0, np.nan]]}, "NaN"),
        ({"transfer_priority": [[0.0, 0.0]]}, "expected"),
        ({"device": [0, 2]}, "device"),
        ({"device": [0]}, "expected"),
        ({"device": [0, 0, 0]}, "expected"),
        ({"cost": [[1], [-1]]}, "negative|0 or more"),
        ({"cost": [[1]]}, "expected"),
        ({"cost": [[1, 1], [1, 1]]}, "expected"),
    ],
)
def test_bad_arguments_are_refused(play, change, words):
    b = GraphBuilder(level="test")
    x, y = b.tensor(bytes=4), b.tensor(bytes=4)
    b.op("work", outputs=[x])
    b.op("work", inputs=[x], outputs=[y])
    good = {"cost": [[1], [1]], "device": [0, 1], "priority": [0.0, 1.0], "transfer_priority": None}
    args = {key: None if value is None else np.array(value) for key, value in (good | change).items()}
    with pytest.raises(ValueError, match=words):
        play(b.build(), cluster(2), **args)
