"""Live bytes of a timeline, from the intervals of its tensors."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from ..graphs import Timeline
from .placement import PlacementProblem

_FOREVER = 2**62


@dataclass(frozen=True)
class LiveBytePeaks:
    """What a timeline says about memory, per device.

    Attributes:
        resident: Bytes from start to end.
        low: The dynamic peak is at least this.
        high: The dynamic peak is at most this; the two differ only if something of no duration happens, as
            the order of events within an instant does not show in its times.
    """

    resident: list[int]
    low: list[int]
    high: list[int]


@dataclass
class _Buffer:
    """Bytes on a device from their allocation to their last use."""

    device: int
    size: int
    start: int
    end: int


def live_byte_peaks(
    problem: PlacementProblem,
    device: list[int],
    timeline: Timeline,
    transfers: list[tuple[int, int, int, int]],
) -> LiveBytePeaks:
    """Peaks of live bytes.

    Args:
        problem: The problem.
        device: Device of each op.
        timeline: Starts and ends of ops.
        transfers: ``(tensor, destination, start, end)`` of each transfer.
    """
    devices = len(problem.cluster)
    resident = _resident(problem, device)
    start, end = timeline.op_start_ns.tolist(), timeline.op_end_ns.tolist()
    graph = problem.graph
    blurred = {start[op] for op in range(graph.num_ops) if not graph.is_variable[op] and start[op] == end[op]}
    if (
        problem.cluster.channel != "free"
    ):  # a free copy arrives with the end of its producer, in the same round
        blurred |= {begin for _, _, begin, finish in transfers if begin == finish}
    low = _peaks(_buffers(problem, device, start, end, transfers, loose=True), devices, set())
    high = _peaks(_buffers(problem, device, start, end, transfers, loose=False), devices, blurred)
    return LiveBytePeaks(resident, low, high)


def _resident(problem: PlacementProblem, device: list[int]) -> list[int]:
    graph = problem.graph
    kept: set[tuple[int, int]] = set()
    for op, where in enumerate(device):
        kept |= {(tensor, where) for tensor in graph.inputs(op).tolist() if graph.tensor_producer[tensor] < 0}
        if graph.is_variable[op]:
            kept |= {(tensor, where) for tensor in graph.outputs(op)}
    total = [0] * len(problem.cluster)
    for tensor, where in kept:
        total[where] += int(graph.tensor_bytes[tensor])
    return total


def _buffers(
    problem: PlacementProblem,
    device: list[int],
    start: list[int],
    end: list[int],
    transfers: list[tuple[int, int, int, int]],
    *,
    loose: bool,
) -> list[_Buffer]:
    """Every dynamic buffer; takeovers in place that the times leave open are made if ``loose``."""
    graph = problem.graph
    readers: dict[tuple[int, int], list[int]] = defaultdict(list)
    for op, where in enumerate(device):
        for tensor in graph.inputs(op).tolist():
            readers[tensor, where].append(op)

    buffers: dict[tuple[int, int], _Buffer] = {}
    uses: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)  # intervals that keep a buffer
    for op, where in enumerate(device):
        if graph.is_variable[op] or graph.op_update_of[op] >= 0:
            continue  # resident, or written into what is
        for tensor in graph.outputs(op):
            last = _FOREVER if graph.tensor_is_output[tensor] else end[op]
            buffers[tensor, where] = _Buffer(where, int(graph.tensor_bytes[tensor]), start[op], last)
    for tensor, where, begin, finish in transfers:
        home = device[int(graph.tensor_producer[tensor])]
        # A free transfer is over before anything starts in its instant; -1 makes it differ from one that may
        # not be.
        uses[tensor, home].append((begin - (problem.cluster.channel == "free"), finish))
        buffers[tensor, where] = _Buffer(where, int(graph.tensor_bytes[tensor]), begin, finish)
    for key, ops in readers.items():
        uses[key] += [(start[op], end[op]) for op in ops]
    for key, buffer in buffers.items():
        buffer.end = max([buffer.end, *(finish for _, finish in uses[key])])

    found = list(buffers.values())
    if graph.in_place:
        for op in sorted(range(graph.num_ops), key=lambda v: (start[v], v)):
            _take_over(problem, device, start, end, op, buffers, uses, loose)
    for op, where in enumerate(device):
        if not graph.is_variable[op] and graph.op_workspace_bytes[op]:
            found.append(_Buffer(where, int(graph.op_workspace_bytes[op]), start[op], end[op]))
    return found


def _take_over(
    problem: PlacementProblem,
    device: list[int],
    start: list[int],
    end: list[int],
    op: int,
    buffers: dict[tuple[int, int], _Buffer],
    uses: dict[tuple[int, int], list[tuple[int, int]]],
    loose: bool,
) -> None:
    """Lets an elementwise op write over a dying input: the input's buffer ends where the output's begins."""
    graph, where = problem.graph, device[op]
    outputs = graph.outputs(op)
    if not graph.op_elementwise[op] or len(outputs) != 1 or graph.op_update_of[op] >= 0:
        return
    for tensor in graph.inputs(op).tolist():
        buffer = buffers.get((tensor, where))
        if buffer is None or graph.tensor_is_output[tensor]:
            continue
        if graph.tensor_bytes[tensor] != graph.tensor_bytes[outputs[0]]:
            continue
        others = list(uses[tensor, where])
        others.remove((start[op], end[op]))
        # Uses that begin and end at this op's start may come before it or after it within the instant.
        over = all(
            finish < start[op] or (finish == start[op] and (loose or begin < finish))
            for begin, finish in others
        )
        if over:
            buffer.end = start[op]
            return


def _peaks(buffers: list[_Buffer], devices: int, blurred: set[int]) -> list[int]:
    """Largest sum of live bytes; frees come before allocations, except at blurred instants."""
    freed: dict[int, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    taken: dict[int, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    for buffer in buffers:
        taken[buffer.device][buffer.start] += buffer.size
        freed[buffer.device][buffer.end] += buffer.size
    peaks = [0] * devices
    for where in range(devices):
        live = 0
        for instant in sorted(taken[where].keys() | freed[where].keys()):
            if instant in blurred:
                peaks[where] = max(peaks[where], live + taken[where][instant])
            live += taken[where][instant] - freed[where][instant]
            peaks[where] = max(peaks[where], live)
    return peaks
