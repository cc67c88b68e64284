"""What makes a placement illegal, and what makes a problem impossible."""

from __future__ import annotations

import re

import numpy as np
import pytest

from opgym.errors import InvalidProblemError, UnknownIdError
from opgym.graphs import GraphBuilder
from opgym.outcome import Verdict
from opgym.problems import Objective, Pipeline, Placement, PlacementProblem
from opgym.problems.checker import check

from .instances import accelerator, cpu, dag, problem

CHAIN = {0: [], 1: [0], 2: [1]}


def posed(objective: str = "step_time") -> PlacementProblem:
    graph = dag(CHAIN, groups={0: "a", 2: "a"}, unsupported={1: "CPU"})
    return problem(graph, [accelerator(), accelerator(), cpu()], objective, [1, 2, 3])


def judged(problem: PlacementProblem, placement: Placement):
    """The outcome, which the checker must share."""
    outcome = problem.evaluate(placement)
    checked = check(problem, placement)
    assert (checked.verdict, checked.value) == (outcome.verdict, outcome.value)
    assert checked.overflow_share == outcome.overflow_share
    return outcome


@pytest.mark.parametrize("objective", list(Objective))
@pytest.mark.parametrize(
    ("device", "verdict", "reason"),
    [
        ([0, 0], Verdict.WRONG_LENGTH, r"shape \(2,\); expected \(3,\)"),
        ([[0, 0, 0]], Verdict.WRONG_LENGTH, r"shape \(1, 3\)"),
        ([], Verdict.WRONG_LENGTH, r"shape \(0,\)"),
        ([0, 0, 3], Verdict.UNKNOWN_DEVICE, "op 2 is on device 3; devices are 0 .. 2"),
        ([0, -1, 0], Verdict.UNKNOWN_DEVICE, "op 1 is on device -1"),
        ([0.0, 0.0, 0.0], Verdict.UNKNOWN_DEVICE, "float64"),
        ([0, 0, 1], Verdict.COLOCATION_VIOLATED, "op 2 leaves its colocation group 0"),
        ([0, 2, 0], Verdict.UNSUPPORTED_DEVICE, r"op 1 \(op\) cannot run on CPU"),
    ],
)
def test_illegal_device_maps(objective, device, verdict, reason):
    outcome = judged(posed(objective), Placement(np.array(device)))
    assert outcome.verdict is verdict
    assert outcome.value == float("inf")
    assert not outcome.ok
    assert re.search(reason, outcome.details["reason"])


@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.int64])
def test_any_integer_dtype_is_a_device_map(dtype):
    assert judged(posed(), Placement(np.array([1, 0, 1], dtype))).ok


@pytest.mark.parametrize("objective", list(Objective))
@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({"priority": np.array([0, np.nan, 1])}, Verdict.INVALID_PRIORITY),
        ({"priority": np.array([0.0, 1.0])}, Verdict.WRONG_LENGTH),
        ({"priority": np.array([np.inf, -np.inf, 0])}, Verdict.OK),
        ({"transfer_priority": np.zeros((3, 2))}, Verdict.WRONG_LENGTH),
        ({"transfer_priority": np.full((3, 3), np.nan)}, Verdict.INVALID_PRIORITY),
        ({"transfer_priority": np.zeros((3, 3))}, Verdict.OK),
    ],
)
def test_priorities(objective, changes, verdict):
    assert judged(posed(objective), Placement(np.array([0, 1, 0]), **changes)).verdict is verdict


@pytest.mark.parametrize("objective", ["step_time", "peak_memory", "max_load"])
def test_out_of_memory_tells_by_how_much(objective):
    graph = dag(CHAIN, parameters={0: 60, 1: 60, 2: 60})
    full = problem(graph, [accelerator(100), accelerator(80)], objective, [1, 2, 3])
    outcome = judged(full, Placement(np.array([1, 1, 1])))
    assert outcome.verdict is Verdict.OUT_OF_MEMORY
    dynamic = 0 if objective == "max_load" else 20  # an op's input and output of 10 bytes each
    assert outcome.details["over_capacity_bytes"] == 180 + dynamic - 80
    assert outcome.overflow_share == (180 + dynamic - 80) / 80
    assert np.isfinite(outcome.value)  # what it would have cost stands beside the verdict


def test_memory_only_warns_for_latency():
    graph = dag(CHAIN, parameters={0: 60, 1: 60, 2: 60})
    outcome = judged(problem(graph, [accelerator(100)], "latency", [1, 2, 3]), Placement(np.zeros(3, int)))
    assert outcome.verdict is Verdict.OK
    assert outcome.details["over_capacity"] == 1.8


def test_feasible_outcomes_come_first_then_small_overflows():
    graph = dag(CHAIN, parameters={0: 60, 1: 60, 2: 60})
    p = problem(graph, [accelerator(100), accelerator(170)], "max_load", [1, 2, 3])
    feasible, slight, heavy = (
        p.evaluate(Placement(np.array(device))) for device in ([0, 1, 1], [1, 1, 1], [0, 0, 0])
    )
    illegal = p.evaluate(Placement(np.array([0])))
    assert feasible.better_than(slight)
    assert slight.better_than(heavy)
    assert heavy.better_than(illegal)
    assert illegal.better_than(None)


# --- problems that no placement can solve


@pytest.mark.parametrize("objective", ["step_time", "peak_memory"])
def test_an_op_larger_than_every_device_is_refused_with_both_numbers(objective):
    graph = dag(CHAIN, parameters={1: 500})
    with pytest.raises(InvalidProblemError, match=r"op 1 'op1' alone needs 520 bytes .* has 400"):
        problem(graph, [accelerator(300), accelerator(400)], objective, [1, 1, 1])
    assert problem(graph, [accelerator(300), accelerator(520)], objective, [1, 1, 1]).evaluate(
        Placement(np.array([1, 1, 1]))
    ).details["peak_bytes"] == [0, 520]


def test_room_on_a_device_that_cannot_run_the_op_does_not_count():
    graph = dag(CHAIN, parameters={1: 500}, unsupported={1: "cpu"})
    with pytest.raises(InvalidProblemError, match="520 bytes"):
        problem(graph, [accelerator(300), cpu()], "step_time", [1, 1, 1])


def test_a_stream_counts_what_stays_and_micro_batches_what_passes():
    graph = dag(CHAIN, sizes=[200, 200, 200], parameters={1: 250})
    devices = [accelerator(300)]
    assert problem(graph, devices, "max_load", [1, 1, 1]).evaluate(Placement(np.zeros(3, int))).ok
    with pytest.raises(InvalidProblemError, match="650 bytes"):
        problem(graph, devices, "max_load", [1, 1, 1], pipeline=Pipeline(2))
    with pytest.raises(InvalidProblemError, match=r"250 bytes .* has 200"):
        problem(graph, [accelerator(200)], "max_load", [1, 1, 1])


def test_an_op_that_runs_nowhere_is_refused():
    graph = dag(CHAIN, unsupported={1: "accelerator"})
    with pytest.raises(InvalidProblemError, match=r"op 1 'op1' .* runs on none of the devices"):
        problem(graph, [accelerator()], "step_time", [1, 1, 1])


def test_a_group_whose_ops_share_no_device_is_refused():
    graph = dag(CHAIN, groups={0: "a", 2: "a"}, unsupported={0: "cpu", 2: "accelerator"})
    with pytest.raises(InvalidProblemError, match="colocated"):
        problem(graph, [accelerator(), cpu()], "step_time", [1, 1, 1])


def test_a_group_goes_where_all_of_it_may_run():
    graph = dag(CHAIN, groups={0: "a", 2: "a"}, unsupported={2: "accelerator"})
    p = problem(graph, [accelerator(), cpu()], "step_time", [1, 1, 1])
    assert p.allowed.tolist() == [[False, True], [True, True], [False, True]]


def test_unknown_objective_suggests_the_nearest():
    with pytest.raises(UnknownIdError, match="step_time"):
        PlacementProblem(dag(CHAIN), posed().cluster, "steptime", posed().costs)


@pytest.mark.parametrize(("micro_batches", "schedule"), [(0, "gpipe"), (-3, "1f1b"), (4, "interleaved")])
def test_impossible_pipelines_are_refused(micro_batches, schedule):
    with pytest.raises(InvalidProblemError, match=r"micro-batches|schedule"):
        Pipeline(micro_batches, schedule)


# --- CASES 16: the smallest graphs


@pytest.mark.parametrize("objective", list(Objective))
@pytest.mark.parametrize("edges", [{0: []}, {0: [], 1: [], 2: []}, {0: [], 1: [], 2: [1]}])
@pytest.mark.parametrize("devices", [1, 3])
def test_tiny_and_disconnected_graphs(objective, edges, devices):
    p = problem(dag(edges), [accelerator()] * devices, objective, [5] * len(edges))
    for device in (np.zeros(len(edges), int), np.arange(len(edges)) % devices):
        assert judged(p, Placement(device)).ok


def test_an_op_that_reads_a_tensor_twice_reads_it_once():
    b = GraphBuilder("test")
    x, y = b.tensor(bytes=7), b.tensor(bytes=0)
    b.op("a", outputs=[x])
    b.op("b", inputs=[x, x], outputs=[y])
    p = problem(b.build(), [accelerator(), accelerator()], "max_load", [1, 1])
    assert judged(p, Placement(np.array([0, 1]))).details["load_ms"] == [8e-6, 8e-6]
