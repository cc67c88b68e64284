"""A placement as a device map: JSON that other tools can read, op by op."""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..atomic import write_text
from ..cluster import Cluster
from ..graph import Graph
from ..lanes import start_order
from ..simulate import Timeline

FORMAT = "opgym.device_map"
VERSION = 1


def device_map(
    graph: Graph, cluster: Cluster, device: NDArray[np.integer[Any]], timeline: Timeline | None = None
) -> dict[str, Any]:
    """A placement as plain data.

    Args:
        graph: The graph.
        cluster: Its devices.
        device: Device of each op, ``[ops] int``.
        timeline: If given, ops also say when they start, in order of start within their device.

    Returns:
        ``format``, ``version``, ``graph``, ``cluster``, ``devices`` (name, profile, capacity, number of ops),
        and ``ops``: by op index, name, kind and device, and with a timeline ``order`` (position among the ops
        of that device) and ``start_ns``. Names may be empty or repeat; the index identifies an op.
    """
    ops: list[dict[str, Any]] = [
        {"op": op, "name": graph.op_names[op], "kind": graph.kind(op), "device": int(device[op])}
        for op in range(graph.num_ops)
    ]
    if timeline is not None:
        start_ns = timeline.op_start_ns
        position = [0] * len(cluster)
        for op in start_order(timeline).tolist():
            if start_ns[op] < 0:  # a variable op is never started
                continue
            home = int(device[op])
            ops[op] |= {"order": position[home], "start_ns": int(start_ns[op])}
            position[home] += 1
    counts = np.bincount(np.asarray(device, np.int64), minlength=len(cluster)).tolist()
    devices = [
        {
            "device": i,
            "name": cluster.device_names[i],
            "profile": profile.name,
            "capacity_bytes": profile.capacity_bytes,
            "ops": counts[i],
        }
        for i, profile in enumerate(cluster.devices)
    ]
    about = {"name": graph.name, "level": graph.level, "ops": graph.num_ops, "fingerprint": graph.fingerprint}
    return {
        "format": FORMAT,
        "version": VERSION,
        "graph": about,
        "cluster": cluster.name,
        "devices": devices,
        "ops": ops,
    }


def write_device_map(
    path: str | os.PathLike[str],
    graph: Graph,
    cluster: Cluster,
    device: NDArray[np.integer[Any]],
    timeline: Timeline | None = None,
) -> None:
    """Writes :func:`device_map` as JSON, atomically, one op a line; equal placements give equal bytes."""
    data = device_map(graph, cluster, device, timeline)
    ops = data.pop("ops")
    lines = [f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in data.items()]
    rows = ",\n".join(f"    {json.dumps(op)}" for op in ops)
    write_text(path, "{\n" + ",\n".join([*lines, f'  "ops": [\n{rows}\n  ]']) + "\n}\n")
