"""The independent checker: judges a placement or an order again, by other code than evaluation uses.

Legality is looked up op by op, simulated objectives are computed from an audited timeline, the peak of an order
from the lifetimes of its tensors, analytic objectives from their definitions with plain sets. It is slow on
purpose: a reader can hold every line against the text that it implements.
"""

from __future__ import annotations

from typing import overload

import numpy as np

from ..errors import OpgymError
from ..graphs import VARIABLE, Graph
from ..outcome import Outcome, Verdict
from .objectives import Objective
from .placement import Placement, PlacementProblem
from .plain_latency import plain_latency_ns
from .plain_order import plain_order_memory
from .plain_pipeline import plain_pipeline
from .scheduling import Order, SchedulingProblem
from .timeline_audit import timeline_faults

_NS_PER_MS = 1e6


class AuditError(OpgymError):
    """A simulated run breaks the rules of the simulator: a defect of opgym, which should be reported."""


@overload
def check(problem: PlacementProblem, solution: Placement) -> Outcome: ...


@overload
def check(problem: SchedulingProblem, solution: Order) -> Outcome: ...


def check(problem: PlacementProblem | SchedulingProblem, solution: Placement | Order) -> Outcome:
    """Recomputes the outcome of a solution from scratch.

    Args:
        problem: The problem.
        solution: Any placement or order, legal or not.

    Returns:
        What the problem's ``evaluate`` should have said: the same value, verdict and overflow.

    Raises:
        AuditError: The simulator produced an impossible timeline.
    """
    if isinstance(problem, SchedulingProblem):
        assert isinstance(solution, Order)
        return _check_order(problem, solution)
    assert isinstance(solution, Placement)
    return _check_placement(problem, solution)


def _check_order(problem: SchedulingProblem, order: Order) -> Outcome:
    graph = problem.graph
    expected = [op for op in range(graph.num_ops) if graph.kind(op) != VARIABLE]
    if np.shape(order.op) != (len(expected),):
        reason = f"the order has shape {np.shape(order.op)}; expected ({len(expected)},)"
        return Outcome(float("inf"), problem.unit, Verdict.WRONG_LENGTH, details={"reason": reason})
    listed = np.asarray(order.op).tolist()
    reason = _illegal_order(graph, expected, listed)
    if reason:
        return Outcome(float("inf"), problem.unit, Verdict.ILLEGAL_ORDER, details={"reason": reason})
    resident = {int(t) for t in graph.input_tensor if graph.tensor_producer[t] < 0}
    for op in set(range(graph.num_ops)) - set(expected):
        resident.update(graph.outputs(op))
    resident_bytes = sum(int(graph.tensor_bytes[tensor]) for tensor in resident)
    peak = max([0, *plain_order_memory(graph, listed)])
    details = {"peak_bytes": [peak + resident_bytes], "resident_bytes": [resident_bytes]}
    return Outcome(float(peak), problem.unit, details=details)


def _illegal_order(graph: Graph, expected: list[int], listed: list[object]) -> str:
    """Why a list of the right length is no order of these ops; empty if it is one."""
    wanted, done = set(expected), set[int]()
    for op in listed:
        if isinstance(op, bool) or not isinstance(op, int) or op not in wanted:
            return f"{op!r} is no op to order"
        if op in done:
            return f"op {op} runs twice"
        for tensor in graph.inputs(op).tolist():
            producer = int(graph.tensor_producer[tensor])
            if producer in wanted and producer not in done:
                return f"op {op} runs before op {producer}, whose output it reads"
        done.add(op)
    return ""


def _check_placement(problem: PlacementProblem, placement: Placement) -> Outcome:
    verdict, reason = _legality(problem, placement)
    unit = problem.objective.unit
    if verdict is not Verdict.OK:
        return Outcome(float("inf"), unit, verdict, details={"reason": reason})
    device = [int(d) for d in placement.device]
    if problem.objective is Objective.MAX_LOAD:
        stages = plain_pipeline(problem, device)
        return _limited(problem, stages.value_ns / _NS_PER_MS, stages.bytes, {"load_ms": stages.load_ms})
    if problem.objective is Objective.LATENCY:
        value_ns, held = plain_latency_ns(problem, device)
        details: dict[str, object] = {"peak_bytes": held}
        fill = max(b / int(c) for b, c in zip(held, problem.cluster.capacity_bytes, strict=True))
        if fill > 1:
            details["over_capacity"] = fill
        return Outcome(value_ns / _NS_PER_MS, unit, details=details)

    run = problem.simulate(placement, timeline=True)
    faults = timeline_faults(problem, placement, run)
    if faults:
        raise AuditError(f"the simulator broke its own rules, please report it: {'; '.join(faults)}")
    peak = [int(b) for b in run.peak_bytes]
    value = run.makespan_ns if problem.objective is Objective.STEP_TIME else max(peak)
    return _limited(problem, float(value), peak, {"step_time_ns": run.makespan_ns})


def _limited(problem: PlacementProblem, value: float, held: list[int], details: dict[str, object]) -> Outcome:
    """An outcome that depends on whether every device can hold what it must."""
    over = [bytes_ - int(c) for bytes_, c in zip(held, problem.cluster.capacity_bytes, strict=True)]
    share = max(o / int(c) for o, c in zip(over, problem.cluster.capacity_bytes, strict=True))
    details = {**details, "peak_bytes": held}
    if share <= 0:
        return Outcome(value, problem.objective.unit, details=details)
    details["over_capacity_bytes"] = max(over)
    return Outcome(value, problem.objective.unit, Verdict.OUT_OF_MEMORY, share, details)


def _legality(problem: PlacementProblem, placement: Placement) -> tuple[Verdict, str]:
    """The first rule that a placement breaks, and where."""
    graph, cluster = problem.graph, problem.cluster
    device = np.asarray(placement.device)
    if device.ndim != 1 or len(device) != graph.num_ops:
        return Verdict.WRONG_LENGTH, f"device has shape {device.shape}; expected ({graph.num_ops},)"
    for op, where in enumerate(device.tolist()):
        if isinstance(where, bool) or not isinstance(where, int) or where not in range(len(cluster)):
            return (
                Verdict.UNKNOWN_DEVICE,
                f"op {op} is on device {where!r}; devices are 0 .. {len(cluster) - 1}",
            )
    for name, shape in (
        ("priority", (graph.num_ops,)),
        ("transfer_priority", (graph.num_tensors, len(cluster))),
    ):
        given = getattr(placement, name)
        if given is None:
            continue
        if np.shape(given) != shape:
            return Verdict.WRONG_LENGTH, f"{name} has shape {np.shape(given)}; expected {shape}"
        if any(value != value for value in np.ravel(given).tolist()):  # only NaN differs from itself
            return Verdict.INVALID_PRIORITY, f"{name} holds NaN"
    home: dict[int, int] = {}
    for op, group in enumerate(graph.op_group.tolist()):
        if group >= 0 and home.setdefault(group, int(device[op])) != device[op]:
            return Verdict.COLOCATION_VIOLATED, f"op {op} leaves its colocation group {group}"
    for op, bits in enumerate(graph.op_unsupported.tolist()):
        profile = cluster.devices[int(device[op])]
        for position, name in enumerate(graph.device_classes):
            if bits >> position & 1 and name in (profile.name, profile.kind):
                return Verdict.UNSUPPORTED_DEVICE, f"op {op} ({graph.kind(op)}) cannot run on {profile.name}"
    return Verdict.OK, ""
