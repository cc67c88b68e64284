"""The pipeline objective once more, op by op and with plain sets: for the checker."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from ..graphs import DIRECTIONS
from .placement import PlacementProblem

_PASSES = ("forward", "backward")
_ONCE = "update"


@dataclass(frozen=True)
class PlainPipeline:
    """Value, load and memory of a pipeline.

    Attributes:
        value_ns: The objective.
        load_ms: Load of each device.
        bytes: Bytes on each device at its worst moment.
    """

    value_ns: float
    load_ms: list[float]
    bytes: list[int]


def plain_pipeline(problem: PlacementProblem, device: list[int]) -> PlainPipeline:
    """Judges a legal placement; see :func:`~opgym.problems.pipeline.max_load_ms` for the definition."""
    devices = len(problem.cluster)
    loads = _loads(problem, device)
    load = [sum(loads[phase][d] for phase in loads) for d in range(devices)]
    held = _resident(problem, device)
    micro_batches = problem.pipeline.micro_batches
    if micro_batches is None:
        value = float(max(load))
    else:
        value = _step_ns(loads, micro_batches, problem.pipeline.schedule) / micro_batches
        held = [a + b for a, b in zip(held, _in_flight(problem, device, micro_batches), strict=True)]
    return PlainPipeline(value, [ns / 1e6 for ns in load], held)


def _loads(problem: PlacementProblem, device: list[int]) -> dict[str, list[int]]:
    """Load of each device by phase, in ns."""
    graph, devices = problem.graph, len(problem.cluster)
    loads = {phase: [0] * devices for phase in (*_PASSES, _ONCE)}
    for op, where in enumerate(device):
        loads[_direction(problem, op)][where] += int(problem.cost_ns[op, where])
    for tensor in range(graph.num_tensors):
        producer = int(graph.tensor_producer[tensor])
        if producer < 0:
            continue
        home = device[producer]
        readers: dict[int, set[str]] = defaultdict(set)  # of each other device: the directions of its readers
        for op in graph.consumers(tensor).tolist():
            if device[op] != home:
                readers[device[op]].add(_direction(problem, op))
        sent = _ONCE if graph.is_variable[producer] else _direction(problem, producer)
        for target, directions in readers.items():
            phase = _ONCE if directions == {_ONCE} else sent
            loads[phase][target] += int(problem.to_device_ns[tensor, target])
        if readers:
            phase = _ONCE if all(directions == {_ONCE} for directions in readers.values()) else sent
            loads[phase][home] += int(problem.from_device_ns[tensor, home])
    return loads


def _direction(problem: PlacementProblem, op: int) -> str:
    return DIRECTIONS[int(problem.graph.op_direction[op])]


def _step_ns(loads: dict[str, list[int]], micro_batches: int, schedule: str) -> int:
    if schedule == "gpipe":
        waves = [loads[phase] for phase in _PASSES]
    else:
        waves = [[sum(both) for both in zip(*(loads[phase] for phase in _PASSES), strict=True)]]
    return sum(sum(wave) + (micro_batches - 1) * max(wave) for wave in waves) + max(loads[_ONCE])


def _resident(problem: PlacementProblem, device: list[int]) -> list[int]:
    graph = problem.graph
    kept: list[set[int]] = [set() for _ in problem.cluster.devices]
    for op, where in enumerate(device):
        kept[where] |= {t for t in graph.inputs(op).tolist() if graph.tensor_producer[t] < 0}
        if graph.is_variable[op]:
            kept[where] |= set(graph.outputs(op))
    return [sum(int(graph.tensor_bytes[t]) for t in tensors) for tensors in kept]


def _in_flight(problem: PlacementProblem, device: list[int], micro_batches: int) -> list[int]:
    """Peak of one micro-batch in program order, and the stash of the others, on each device."""
    graph, devices = problem.graph, len(problem.cluster)
    live = [[0] * graph.num_ops for _ in range(devices)]
    stash = [0] * devices
    last = graph.num_ops - 1
    for tensor in range(graph.num_tensors):
        producer = int(graph.tensor_producer[tensor])
        if producer < 0:
            continue
        size, home = int(graph.tensor_bytes[tensor]), device[producer]
        readers = graph.consumers(tensor).tolist()
        feeds_update = any(_direction(problem, op) == _ONCE for op in readers)
        for where in {home, *(device[op] for op in readers)}:
            local = [op for op in readers if device[op] == where]
            if graph.is_variable[producer]:
                span = range(0) if where == home else range(graph.num_ops)
            elif where != home:
                span = range(min(local), max(local) + 1)
            elif graph.op_update_of[producer] >= 0:
                span = range(0)
            elif graph.tensor_is_output[tensor] or feeds_update:
                span = range(producer, last + 1)
            else:
                span = range(producer, max([producer, *local]) + 1)
            for step in span:
                live[where][step] += size
            activation = not graph.is_variable[producer] and _direction(problem, producer) == "forward"
            if activation and any(_direction(problem, op) == "backward" for op in local):
                stash[where] += size
    for op, where in enumerate(device):
        if not graph.is_variable[op]:
            live[where][op] += int(graph.op_workspace_bytes[op])

    stages = sorted(set(device), key=device.index)
    total = []
    for where in range(devices):
        others = 0
        if where in stages:
            behind = len(stages) - stages.index(where)
            others = (
                min(micro_batches, behind) if problem.pipeline.schedule == "1f1b" else micro_batches
            ) - 1
        total.append(max(live[where]) + others * stash[where])
    return total
