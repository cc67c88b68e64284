"""Checks a simulated timeline by interval arithmetic, without an event loop.

Nothing here shares code with the simulator: ops and transfers are intervals, and every rule of
docs/simulator.md that makes a value *possible* is checked on them: who runs where and for how long, what has
to be there before, which ports are taken, which bytes are live. (That the run is the one list schedule which
the priorities demand is a matter of the tests, which hold the simulator equal to a second one.)
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from ..graphs import Simulation, Timeline
from .live_bytes import live_byte_peaks
from .placement import Placement, PlacementProblem

_MAX_FAULTS = 20


@dataclass(frozen=True)
class _Transfer:
    tensor: int
    source: int
    target: int
    start: int
    end: int

    def __str__(self) -> str:
        return f"transfer of tensor {self.tensor} from device {self.source} to {self.target}"


def timeline_faults(problem: PlacementProblem, placement: Placement, run: Simulation) -> list[str]:
    """Every rule that a run breaks, in words; empty for a correct run.

    Args:
        problem: The problem.
        placement: A legal placement.
        run: Its run, with a timeline.
    """
    timeline = run.timeline
    if timeline is None:
        return ["the run has no timeline"]
    device = np.asarray(placement.device).tolist()
    transfers = [
        _Transfer(*row)
        for row in zip(
            timeline.transfer_tensor.tolist(),
            timeline.transfer_source.tolist(),
            timeline.transfer_destination.tolist(),
            timeline.transfer_start_ns.tolist(),
            timeline.transfer_end_ns.tolist(),
            strict=True,
        )
    ]
    faults = [
        *_op_faults(problem, device, timeline),
        *_transfer_faults(problem, device, timeline, transfers),
        *_channel_faults(problem, transfers),
        *_input_faults(problem, device, timeline, transfers),
    ]
    if not faults:  # the figures below follow from intervals that make sense
        faults += _figure_faults(problem, device, run, timeline, transfers)
    return faults[:_MAX_FAULTS]


def _op_faults(problem: PlacementProblem, device: list[int], timeline: Timeline) -> Iterable[str]:
    """Ops run once, on their device, for their time, one at a time."""
    graph = problem.graph
    start, end = timeline.op_start_ns.tolist(), timeline.op_end_ns.tolist()
    intervals: dict[str, list[tuple[int, int, str]]] = defaultdict(list)
    for op in range(graph.num_ops):
        if timeline.op_device[op] != device[op]:
            yield f"op {op} ran on device {timeline.op_device[op]}; it is placed on {device[op]}"
        if graph.is_variable[op]:
            if (start[op], end[op]) != (-1, -1):
                yield f"op {op} is a variable and ran from {start[op]} to {end[op]} ns"
            continue
        if start[op] < 0:
            yield f"op {op} never ran"
            continue
        cost = int(problem.cost_ns[op, device[op]])
        if end[op] - start[op] != cost:
            yield f"op {op} ran from {start[op]} to {end[op]} ns; it takes {cost} ns"
        intervals[f"device {device[op]}"].append((start[op], end[op], f"op {op}"))
    yield from _overlaps(intervals)


def _transfer_faults(
    problem: PlacementProblem, device: list[int], timeline: Timeline, transfers: list[_Transfer]
) -> Iterable[str]:
    """Each tensor is sent once to each other device that reads it, after it was written, for its time."""
    graph, cluster = problem.graph, problem.cluster
    needed = set()
    for op in range(graph.num_ops):
        for tensor in graph.inputs(op).tolist():
            producer = int(graph.tensor_producer[tensor])
            if producer >= 0 and device[producer] != device[op]:
                needed.add((tensor, device[op]))
    for transfer in transfers:
        wanted = (transfer.tensor, transfer.target)
        if wanted not in needed:
            yield f"{transfer} is not needed, or a repetition"
            continue
        needed.discard(wanted)
        producer = int(graph.tensor_producer[transfer.tensor])
        if transfer.source != device[producer]:
            yield f"{transfer} leaves a device that does not hold it; op {producer} is on {device[producer]}"
            continue
        written = 0 if graph.is_variable[producer] else int(timeline.op_end_ns[producer])
        if transfer.start < written:
            yield f"{transfer} starts at {transfer.start} ns; the tensor is written at {written} ns"
        duration = 0
        if cluster.channel != "free":
            size = int(graph.tensor_bytes[transfer.tensor])
            rate = int(cluster.bytes_per_second[transfer.source, transfer.target])
            latency = int(cluster.latency_ns[transfer.source, transfer.target])
            duration = latency + (size * 10**9 + rate - 1) // rate
        elif transfer.start != written:
            yield f"{transfer} starts at {transfer.start} ns; it is free, and written at {written} ns"
        if transfer.end - transfer.start != duration:
            yield f"{transfer} lasts from {transfer.start} to {transfer.end} ns; it takes {duration} ns"
    for tensor, target in sorted(needed):
        yield f"tensor {tensor} is read on device {target} and never sent there"


def _channel_faults(problem: PlacementProblem, transfers: list[_Transfer]) -> Iterable[str]:
    """No two transfers hold one port or link at a time."""
    channel = problem.cluster.channel
    intervals: dict[str, list[tuple[int, int, str]]] = defaultdict(list)
    for transfer in transfers:
        held = []
        if channel in ("port", "send"):
            held.append(f"send port of device {transfer.source}")
        if channel == "port":
            held.append(f"receive port of device {transfer.target}")
        if channel == "link":
            held.append(f"link from device {transfer.source} to {transfer.target}")
        for name in held:
            intervals[name].append((transfer.start, transfer.end, str(transfer)))
    yield from _overlaps(intervals)


def _overlaps(intervals: dict[str, list[tuple[int, int, str]]]) -> Iterable[str]:
    for resource, uses in intervals.items():
        uses.sort()
        for (_, end, first), (start, _, second) in pairwise(uses):
            if start < end:
                yield f"{resource}: {second} starts at {start} ns, before the end of {first} at {end} ns"


def _input_faults(
    problem: PlacementProblem, device: list[int], timeline: Timeline, transfers: list[_Transfer]
) -> Iterable[str]:
    """Everything an op reads is there when it starts."""
    graph = problem.graph
    arrival = {(transfer.tensor, transfer.target): transfer.end for transfer in transfers}
    for op in range(graph.num_ops):
        for tensor in graph.inputs(op).tolist():
            producer = int(graph.tensor_producer[tensor])
            if producer < 0:
                continue
            if device[producer] != device[op]:
                there = arrival.get((tensor, device[op]))
            else:
                there = 0 if graph.is_variable[producer] else int(timeline.op_end_ns[producer])
            start = int(timeline.op_start_ns[op])
            if there is not None and start < there:  # one that was never sent is reported already
                yield f"op {op} starts at {start} ns; tensor {tensor} is there at {there} ns"


def _figure_faults(
    problem: PlacementProblem,
    device: list[int],
    run: Simulation,
    timeline: Timeline,
    transfers: list[_Transfer],
) -> Iterable[str]:
    """The totals that the run reports follow from its intervals."""
    devices = len(problem.cluster)
    ends = [0, *timeline.op_end_ns.tolist(), *(transfer.end for transfer in transfers)]
    if run.makespan_ns != max(ends):
        yield f"the makespan is given as {run.makespan_ns} ns; the last end is at {max(ends)} ns"
    busy, sent = [0] * devices, [0] * devices
    for op, where in enumerate(device):
        busy[where] += int(timeline.op_end_ns[op] - timeline.op_start_ns[op])
    for transfer in transfers:
        sent[transfer.source] += transfer.end - transfer.start
    yield from _differences("busy time", "ns", run.busy_ns, busy)
    yield from _differences("transfer time", "ns", run.transfer_ns, sent)

    arrivals = [(t.tensor, t.target, t.start, t.end) for t in transfers]
    peaks = live_byte_peaks(problem, device, timeline, arrivals)
    yield from _differences("resident bytes", "bytes", run.resident_bytes, peaks.resident)
    for where in range(devices):
        given, low, high = int(run.dynamic_peak_bytes[where]), peaks.low[where], peaks.high[where]
        if not low <= given <= high:
            say = f"{low}" if low == high else f"{low} to {high}"
            yield f"the dynamic peak of device {where} is given as {given} bytes; the intervals give {say}"


def _differences(what: str, unit: str, given: Any, expected: list[int]) -> Iterable[str]:
    for where, (a, b) in enumerate(zip(given.tolist(), expected, strict=True)):
        if a != b:
            yield f"the {what} of device {where} is given as {a} {unit}; the intervals give {b}"
