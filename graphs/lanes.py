"""The lanes and the memory curves of a timeline: what the plot and the Chrome trace both draw."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .graph import Graph
from .simulate import Timeline

COMPUTE, SEND, RECEIVE = "compute", "send", "receive"


@dataclass(frozen=True, eq=False)
class Lane:
    """A row of bars that do not overlap.

    Attributes:
        device: Device it belongs to.
        what: ``"compute"``, ``"send"`` or ``"receive"``.
        row: 0, or more where bars of one kind overlap (channel models without exclusive ports).
        item: Ops (compute) or positions in the timeline's transfers (send, receive), by start,
            ``[bars] int64``.
        start_ns: ``[bars] int64``.
        end_ns: ``[bars] int64``.
    """

    device: int
    what: str
    row: int
    item: NDArray[np.int64]
    start_ns: NDArray[np.int64]
    end_ns: NDArray[np.int64]


def lanes(timeline: Timeline, devices: int) -> list[Lane]:
    """All lanes of a timeline: per device compute, then send, then receive.

    Every device has a compute lane, even an idle one; port lanes exist where a transfer uses them.
    """
    found: list[Lane] = []
    ran = timeline.op_start_ns >= 0  # variable ops take no time and are listed with -1
    for device in range(devices):
        ops = np.flatnonzero(ran & (timeline.op_device == device))
        rows = _rows(COMPUTE, device, ops, timeline.op_start_ns, timeline.op_end_ns)
        found += rows or [Lane(device, COMPUTE, 0, *(np.zeros(0, np.int64) for _ in range(3)))]
        for what, end in ((SEND, timeline.transfer_source), (RECEIVE, timeline.transfer_destination)):
            transfers = np.flatnonzero(end == device)
            found += _rows(what, device, transfers, timeline.transfer_start_ns, timeline.transfer_end_ns)
    return found


def _rows(
    what: str, device: int, items: NDArray[np.int64], start_ns: NDArray[np.int64], end_ns: NDArray[np.int64]
) -> list[Lane]:
    """Splits bars into as few rows as they need; ``start_ns`` and ``end_ns`` are indexed by item."""
    items = items[np.lexsort((items, end_ns[items], start_ns[items]))]
    starts, ends = start_ns[items], end_ns[items]
    row = np.zeros(len(items), np.int64)
    if len(items) and (starts[1:] < np.maximum.accumulate(ends)[:-1]).any():
        free_at: list[int] = []
        for i, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
            first_free = next((r for r, at in enumerate(free_at) if at <= start), len(free_at))
            if first_free == len(free_at):
                free_at.append(end)
            free_at[first_free] = end
            row[i] = first_free
    count = int(row.max(initial=-1)) + 1
    return [Lane(device, what, r, items[row == r], starts[row == r], ends[row == r]) for r in range(count)]


def start_order(timeline: Timeline) -> NDArray[np.int64]:
    """Ops in the order in which they start, ``[ops] int64``: a topological order.

    Variable ops, which never start, come first; of ops that start together, those that take no time.
    """
    ops = np.arange(len(timeline.op_start_ns))
    return np.lexsort((ops, timeline.op_end_ns, timeline.op_start_ns)).astype(np.int64)


def memory_curves(
    graph: Graph, timeline: Timeline, devices: int
) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """When the live bytes of each device change, and to what.

    Args:
        graph: The graph that ran.
        timeline: Its timeline.
        devices: Number of devices.

    Returns:
        Per device ``(time_ns, live_bytes)``, each ``[1 + samples] int64``, times ascending from 0; the first
        entry is what is resident from the start.
    """
    curves = []
    for device, resident in enumerate(_resident_bytes(graph, timeline.op_device, devices)):
        mine = timeline.memory_device == device
        time_ns = np.concatenate([[0], timeline.memory_time_ns[mine]]).astype(np.int64)
        live_bytes = np.concatenate([[resident], timeline.memory_bytes[mine]]).astype(np.int64)
        curves.append((time_ns, live_bytes))
    return curves


def _resident_bytes(graph: Graph, op_device: NDArray[Any], devices: int) -> NDArray[np.int64]:
    """Source tensors on each device that reads them, and variables on their home, ``[devices] int64``."""
    device = op_device.astype(np.int64)
    resident = np.zeros(devices, np.int64)
    reader = np.repeat(np.arange(graph.num_ops), np.diff(graph.input_ptr))
    source = graph.tensor_producer[graph.input_tensor] < 0
    copies = np.unique(graph.input_tensor[source].astype(np.int64) * devices + device[reader[source]])
    np.add.at(resident, copies % devices, graph.tensor_bytes[copies // devices])
    written = np.flatnonzero(graph.tensor_producer >= 0)
    held = written[graph.is_variable[graph.tensor_producer[written]]]
    np.add.at(resident, device[graph.tensor_producer[held]], graph.tensor_bytes[held])
    return resident
