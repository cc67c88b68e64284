"""A timeline as Chrome trace events: open the file at ui.perfetto.dev or chrome://tracing.

One process per device, with a lane for compute and one per port; flow arrows lead from the op that made a
tensor through the sender's and the receiver's port to the first op that used the copy; a counter track holds
the memory of the device. Times are microseconds with nanosecond precision. The format is that of Google's
document "Trace Event Format".
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..atomic import atomic_write
from ..cluster import Cluster
from ..graph import DIRECTIONS, Graph
from ..lanes import COMPUTE, RECEIVE, SEND, Lane, lanes, memory_curves
from ..simulate import Timeline
from ..units import format_bytes


def write_chrome_trace(
    path: str | os.PathLike[str], graph: Graph, cluster: Cluster, timeline: Timeline
) -> None:
    """Writes a timeline as a Chrome trace, atomically; equal timelines give equal bytes.

    Args:
        path: File to write, usually ``*.json``.
        graph: The graph that ran.
        cluster: Where it ran.
        timeline: What happened when.
    """
    events = trace_events(graph, cluster, timeline)
    with atomic_write(path) as f:
        f.write(b'{"displayTimeUnit":"ns","traceEvents":[')
        for i, event in enumerate(events):
            # One event a line: the file can be read, compared and searched by people too.
            f.write(b",\n" if i else b"\n")
            f.write(json.dumps(event, separators=(",", ":"), allow_nan=False).encode())
        about = {
            "graph": graph.name,
            "level": graph.level,
            "fingerprint": graph.fingerprint,
            "cluster": cluster.name,
        }
        f.write(b'\n],"otherData":' + json.dumps(about).encode() + b"}\n")


def trace_events(graph: Graph, cluster: Cluster, timeline: Timeline) -> Iterator[dict[str, Any]]:
    """The events of a timeline: metadata, then bars lane by lane, then flows, then memory counters."""
    rows = lanes(timeline, len(cluster))
    thread_of = _thread_ids(rows)
    yield from _metadata(cluster, rows, thread_of)
    for lane, tid in zip(rows, thread_of, strict=True):
        yield from _bars(graph, cluster, timeline, lane, tid)
    yield from _flows(graph, timeline, rows, thread_of)
    for device, (time_ns, live_bytes) in enumerate(memory_curves(graph, timeline, len(cluster))):
        for at, size in zip(time_ns.tolist(), live_bytes.tolist(), strict=True):
            yield {"ph": "C", "name": "memory", "pid": device + 1, "ts": at / 1000, "args": {"bytes": size}}


def _thread_ids(rows: list[Lane]) -> list[int]:
    """Thread id of each lane, 1, 2, ... within its device (process ids are device + 1: viewers reserve 0)."""
    used: dict[int, int] = {}
    ids = []
    for lane in rows:
        used[lane.device] = used.get(lane.device, 0) + 1
        ids.append(used[lane.device])
    return ids


def _metadata(cluster: Cluster, rows: list[Lane], thread_of: list[int]) -> Iterator[dict[str, Any]]:
    for device, name in enumerate(cluster.device_names):
        pid = device + 1
        label = f"memory {format_bytes(int(cluster.capacity_bytes[device]))}"
        yield {"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": name}}
        yield {"ph": "M", "name": "process_labels", "pid": pid, "tid": 0, "args": {"labels": label}}
        yield {"ph": "M", "name": "process_sort_index", "pid": pid, "tid": 0, "args": {"sort_index": device}}
    for lane, tid in zip(rows, thread_of, strict=True):
        pid = lane.device + 1
        name = lane.what if lane.row == 0 else f"{lane.what} {lane.row + 1}"
        yield {"ph": "M", "name": "thread_name", "pid": pid, "tid": tid, "args": {"name": name}}
        yield {"ph": "M", "name": "thread_sort_index", "pid": pid, "tid": tid, "args": {"sort_index": tid}}


def _bars(
    graph: Graph, cluster: Cluster, timeline: Timeline, lane: Lane, tid: int
) -> Iterator[dict[str, Any]]:
    names = cluster.device_names
    for item, start, end in zip(
        lane.item.tolist(), lane.start_ns.tolist(), lane.end_ns.tolist(), strict=True
    ):
        bar = {"ph": "X", "pid": lane.device + 1, "tid": tid, "ts": start / 1000, "dur": (end - start) / 1000}
        if lane.what == COMPUTE:
            yield bar | {
                "name": graph.op_names[item] or graph.kind(item),
                "cat": graph.kind(item),
                "args": _op_arguments(graph, item),
            }
        else:
            tensor = int(timeline.transfer_tensor[item])
            other = timeline.transfer_destination if lane.what == SEND else timeline.transfer_source
            arrow = "to" if lane.what == SEND else "from"
            name = graph.tensor_names[tensor] or f"tensor {tensor}"
            yield bar | {
                "name": f"{name} {arrow} {names[int(other[item])]}",
                "cat": "transfer",
                "args": {"tensor": tensor, "bytes": int(graph.tensor_bytes[tensor])},
            }


def _op_arguments(graph: Graph, op: int) -> dict[str, Any]:
    layer = int(graph.op_layer[op])
    arguments: dict[str, Any] = {
        "op": op,
        "direction": DIRECTIONS[int(graph.op_direction[op])],
        "flops": int(graph.op_flops[op]),
        "accessed_bytes": int(graph.op_accessed_bytes[op]),
    }
    return arguments | ({"layer": graph.layers[layer]} if layer >= 0 else {})


def _flows(
    graph: Graph, timeline: Timeline, rows: list[Lane], thread_of: list[int]
) -> Iterator[dict[str, Any]]:
    """Producer -> send port -> receive port -> first op that uses the copy; a variable op has no bar."""
    bar: dict[tuple[str, int], tuple[int, int]] = {}  # (lane kind, item) -> (process, thread)
    for lane, tid in zip(rows, thread_of, strict=True):
        bar |= dict.fromkeys(((lane.what, item) for item in lane.item.tolist()), (lane.device + 1, tid))
    for i, tensor in enumerate(timeline.transfer_tensor.tolist()):
        producer = int(graph.tensor_producer[tensor])
        steps: list[tuple[tuple[int, int], int]] = []
        if (COMPUTE, producer) in bar:
            steps.append((bar[COMPUTE, producer], int(timeline.op_start_ns[producer])))
        steps += [(bar[port, i], int(timeline.transfer_start_ns[i])) for port in (SEND, RECEIVE)]
        readers = graph.consumers(tensor)
        readers = readers[timeline.op_device[readers] == timeline.transfer_destination[i]]
        if len(readers):
            first = int(readers[np.argmin(timeline.op_start_ns[readers])])
            steps.append((bar[COMPUTE, first], int(timeline.op_start_ns[first])))
        for position, ((pid, tid), at) in enumerate(steps):
            phase = "s" if position == 0 else "f" if position == len(steps) - 1 else "t"
            flow: dict[str, Any] = {"ph": phase, "id": i, "name": "transfer", "cat": "transfer"}
            yield flow | {"pid": pid, "tid": tid, "ts": at / 1000} | ({"bp": "e"} if phase == "f" else {})
