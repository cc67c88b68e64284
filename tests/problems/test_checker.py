"""The independent checker agrees with evaluation, and finds faults that are put into a timeline."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from opgym.errors import InvalidProblemError
from opgym.graphs import GraphBuilder, TableCost
from opgym.problems import Objective, Pipeline, Placement, PlacementProblem
from opgym.problems.checker import AuditError, check
from opgym.problems.timeline_audit import timeline_faults

from ..reference.strategies import Instance, instances
from .instances import accelerator, dag, problem
from .random_problems import random_placement, random_problem


@pytest.mark.parametrize("objective", list(Objective))
@pytest.mark.parametrize("seed", range(60))
def test_checker_and_evaluation_agree(objective, seed):
    rng = np.random.default_rng([seed, 2])
    schedule = ("gpipe", "1f1b")[seed // 2 % 2]
    pipeline = Pipeline(int(rng.integers(1, 5)), schedule) if seed % 2 else Pipeline()
    try:
        p = random_problem(rng, objective, pipeline=pipeline)
    except InvalidProblemError:
        return  # too small a cluster: nothing to judge
    placement = random_placement(rng, p, crowded=seed % 3 == 0)
    expected, outcome = check(p, placement), p.evaluate(placement)
    assert outcome.value == pytest.approx(expected.value, rel=1e-12)
    assert outcome.verdict == expected.verdict
    assert outcome.overflow_share == expected.overflow_share
    assert outcome.details["peak_bytes"] == expected.details["peak_bytes"]


@settings(max_examples=150, deadline=None)
@given(instances())
def test_no_run_of_the_simulator_breaks_a_rule(instance: Instance):
    """With ties, infinities, events of no duration, in-place ops and huge numbers."""
    names = [profile.name for profile in instance.cluster.classes]
    costs = TableCost(dict(zip(names, instance.cost_ns.T, strict=True)))
    roomy = instance.cluster.with_capacity(2**62)
    table = TableCost({name: costs.table_ns[name] for name in names})
    p = PlacementProblem(replace_groups(instance.graph), roomy, "step_time", table)
    placement = Placement(instance.device, instance.priority, instance.transfer_priority)
    assert timeline_faults(p, placement, p.simulate(placement, timeline=True)) == []


def replace_groups(graph):
    """The graph without colocation, as the simulator does not look at it."""
    return replace(graph, op_group=np.full(graph.num_ops, -1, np.int32))


# --- planted faults


def two_devices(channel: str = "port") -> tuple[PlacementProblem, Placement]:
    """0 on A feeds 1, 2 on B and 3 on A; 4 on A feeds 5 on B; every op takes 10 ns, every tensor 5 ns."""
    graph = dag({0: [], 1: [0], 2: [0], 3: [0], 4: [], 5: [4, 2]}, sizes=[5] * 6, parameters={0: 50})
    p = problem(graph, [accelerator(), accelerator()], "step_time", [10] * 6, channel=channel)
    return p, Placement(np.array([0, 1, 1, 0, 0, 1]))


def faults_with(channel: str = "port", *, run: dict | None = None, **arrays) -> list[str]:
    """Faults of the run above after changes ``name=(position, value)`` of its timeline or figures."""
    p, placement = two_devices(channel)
    simulation = p.simulate(placement, timeline=True)
    assert timeline_faults(p, placement, simulation) == []
    changed = {}
    for name, changes in arrays.items():
        array = getattr(simulation.timeline, name).copy()
        for position, value in changes:
            array[position] = value
        changed[name] = array
    broken = replace(simulation, timeline=replace(simulation.timeline, **changed), **(run or {}))
    return timeline_faults(p, placement, broken)


def times(channel: str = "port"):
    """Starts of ops and ``(tensor, start)`` of transfers in the faultless run."""
    p, placement = two_devices(channel)
    timeline = p.simulate(placement, timeline=True).timeline
    return timeline.op_start_ns.tolist(), list(
        zip(timeline.transfer_tensor.tolist(), timeline.transfer_start_ns.tolist(), strict=True)
    )


def test_the_faultless_run_is_what_the_tests_below_presume():
    starts, transfers = times()
    tensors = [tensor - 1 for tensor, _ in transfers]  # tensor 0 is the parameter
    assert starts == [0, 25, 15, 20, 10, 35]  # critical path first: op 2 leads to op 5
    assert tensors == [0, 4]
    assert [start for _, start in transfers] == [10, 20]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        # An op starts before the one that runs on its device has ended.
        (
            {"op_start_ns": [(1, 20)], "op_end_ns": [(1, 30)]},
            "device 1: op 1 starts at 20 ns, before the end of op 2 at 25 ns",
        ),
        # An op starts before what it reads was written, or has arrived.
        (
            {"op_start_ns": [(2, 14)], "op_end_ns": [(2, 24)]},
            "op 2 starts at 14 ns; tensor 1 is there at 15 ns",
        ),
        (
            {"op_start_ns": [(5, 24)], "op_end_ns": [(5, 34)]},
            "op 5 starts at 24 ns; tensor 5 is there at 25 ns",
        ),
        # An op takes no time, too much, never runs, or runs elsewhere.
        ({"op_end_ns": [(3, 20)]}, "op 3 ran from 20 to 20 ns; it takes 10 ns"),
        ({"op_end_ns": [(3, 31)]}, "op 3 ran from 20 to 31 ns; it takes 10 ns"),
        ({"op_start_ns": [(3, -1)], "op_end_ns": [(3, -1)]}, "op 3 never ran"),
        ({"op_device": [(3, 1)]}, "op 3 ran on device 1; it is placed on 0"),
        # A transfer starts before its tensor is written, is too fast, leaves or reaches the wrong device.
        (
            {"transfer_start_ns": [(0, 9)], "transfer_end_ns": [(0, 14)]},
            "transfer of tensor 1 from device 0 to 1 starts at 9 ns; the tensor is written at 10 ns",
        ),
        ({"transfer_end_ns": [(0, 12)]}, "lasts from 10 to 12 ns; it takes 5 ns"),
        ({"transfer_source": [(0, 1)]}, "leaves a device that does not hold it; op 0 is on 0"),
        ({"transfer_destination": [(0, 0)]}, "tensor 1 is read on device 1 and never sent there"),
        # A tensor is sent twice instead of another.
        (
            {"transfer_tensor": [(1, 1)]},
            "transfer of tensor 1 from device 0 to 1 is not needed, or a repetition",
        ),
        ({"transfer_tensor": [(1, 1)]}, "tensor 5 is read on device 1 and never sent there"),
    ],
)
def test_planted_faults_of_the_timeline_are_found(changes, message):
    assert any(message in fault for fault in faults_with(**changes))


@pytest.mark.parametrize(
    ("run", "message"),
    [
        ({"makespan_ns": 44}, "the makespan is given as 44 ns; the last end is at 45 ns"),
        (
            {"busy_ns": np.array([30, 29])},
            "the busy time of device 1 is given as 29 ns; the intervals give 30",
        ),
        ({"transfer_ns": np.array([10, 5])}, "the transfer time of device 1 is given as 5 ns"),
        ({"resident_bytes": np.array([49, 0])}, "the resident bytes of device 0 is given as 49 bytes"),
        ({"dynamic_peak_bytes": np.array([14, 20])}, "the dynamic peak of device 0 is given as 14 bytes"),
        ({"dynamic_peak_bytes": np.array([16, 20])}, "the dynamic peak of device 0 is given as 16 bytes"),
    ],
)
def test_planted_faults_of_the_figures_are_found(run, message):
    assert any(message in fault for fault in faults_with(run=run))


@pytest.mark.parametrize(
    ("channel", "resource"),
    [
        ("port", "send port of device 0"),
        ("port", "receive port of device 1"),
        ("send", "send port of device 0"),
        ("link", "link from device 0 to 1"),
    ],
)
def test_a_port_or_link_carries_one_transfer_at_a_time(channel, resource):
    # A transfer that takes its time, but begins before the one ahead of it has ended.
    graph = dag({0: [], 1: [], 2: [0, 1]}, sizes=[50, 50, 1])
    p = problem(graph, [accelerator(), accelerator()], "step_time", [1, 1, 1], channel=channel)
    placement = Placement(np.array([0, 0, 1]))
    run = p.simulate(placement, timeline=True)
    assert timeline_faults(p, placement, run) == []
    start, end = run.timeline.transfer_start_ns.copy(), run.timeline.transfer_end_ns.copy()
    assert (start.tolist(), end.tolist()) == ([1, 51], [51, 101])
    start[1], end[1] = 50, 100
    broken = replace(run, timeline=replace(run.timeline, transfer_start_ns=start, transfer_end_ns=end))
    assert any(fault.startswith(f"{resource}: ") for fault in timeline_faults(p, placement, broken))


def test_free_transfers_take_no_time_and_arrive_at_once():
    faults = faults_with("free", transfer_start_ns=[(0, 11)], transfer_end_ns=[(0, 11)])
    assert any("starts at 11 ns; it is free, and written at 10 ns" in fault for fault in faults)
    faults = faults_with("free", transfer_end_ns=[(0, 15)])
    assert any("it takes 0 ns" in fault for fault in faults)


def test_a_run_without_a_timeline_is_no_evidence():
    p, placement = two_devices()
    assert timeline_faults(p, placement, p.simulate(placement)) == ["the run has no timeline"]


def test_a_takeover_in_place_is_seen_in_the_peak():
    def peaks(in_place: bool) -> list[int]:
        b = GraphBuilder("test", in_place=in_place)
        x, y = b.tensor(bytes=100), b.tensor(bytes=100)
        b.op("matmul", outputs=[x])
        b.op("relu", inputs=[x], outputs=[y], elementwise=True)
        p = problem(b.build(), [accelerator()], "peak_memory", [1, 1])
        return check(p, Placement(np.zeros(2, int))).details["peak_bytes"]

    assert peaks(in_place=False) == [200]
    assert peaks(in_place=True) == [100]


def test_a_broken_simulator_is_an_error_not_a_verdict(monkeypatch):
    p, placement = two_devices()
    run = p.simulate(placement, timeline=True)
    monkeypatch.setattr(
        PlacementProblem, "simulate", lambda *_, **__: replace(run, makespan_ns=run.makespan_ns - 1)
    )
    with pytest.raises(AuditError, match="please report it: the makespan is given as 44"):
        check(p, placement)
