"""Instances too large for shrinking: drawn by numpy, to reach what only size reaches."""

from __future__ import annotations

import numpy as np

from opgym.graphs import VARIABLE, Cluster, Graph, GraphBuilder

from .case import device_profile
from .strategies import Instance


def large_graph(rng: np.random.Generator, ops: int, *, fan_out: int = 0) -> Graph:
    """A layered graph with everything in it.

    Args:
        rng: Where it comes from.
        ops: How many ops.
        fan_out: How many extra ops read the output of the first op.
    """
    b = GraphBuilder(level="random", in_place=bool(rng.integers(2)))
    readable = [b.tensor(bytes=int(rng.integers(0, 9)), role="parameter") for _ in range(3)]
    homes = []
    for _ in range(ops // 20):
        tensor = b.tensor(bytes=int(rng.integers(0, 9)))
        homes.append(b.op(VARIABLE, outputs=[tensor]))
        readable.append(tensor)
    scheduled = ops - len(homes)
    reads = rng.integers(0, 4, scheduled)
    distance = rng.geometric(1 / 30, (scheduled, 3))
    anywhere = rng.random((scheduled, 3)) < 0.1
    position = rng.random((scheduled, 3))
    writes = rng.choice([0, 1, 1, 1, 1, 2, 3], scheduled)
    size = rng.choice([0, 1, 2, 4, 4, 8, 1000], (scheduled, 3))
    workspace = rng.choice([0, 0, 0, 5], scheduled)
    flags = rng.random((scheduled, 3))
    first_output: int | None = None
    for v in range(scheduled):
        inputs = []
        for i in range(reads[v]):
            if anywhere[v, i]:
                inputs.append(readable[int(position[v, i] * len(readable))])
            else:
                inputs.append(readable[-1 - min(int(distance[v, i]), len(readable)) + 1])
        if first_output is not None and v < fan_out:
            inputs.append(first_output)
        outputs = [
            b.tensor(bytes=int(size[v, i]), is_output=bool(flags[v, 0] < 0.02)) for i in range(writes[v])
        ]
        if first_output is None and outputs:
            first_output = outputs[0]
        b.op(
            "work",
            inputs=inputs,
            outputs=outputs,
            workspace_bytes=int(workspace[v]),
            elementwise=bool(flags[v, 1] < 0.5),
            update_of=homes[v % len(homes)] if homes and flags[v, 2] < 0.05 else None,
        )
        readable += outputs
    return b.build()


def large_instance(
    rng: np.random.Generator,
    ops: int,
    devices: int,
    channel: str,
    *,
    placement: str = "random",
    priority: str = "float32",
    fan_out: int = 0,
) -> Instance:
    """An instance.

    Args:
        rng: Where it comes from.
        ops: How many ops.
        devices: How many devices.
        channel: The channel model.
        placement: ``"random"``, or ``"blocks"`` of consecutive ops.
        priority: ``"none"``, ``"float32"``, ``"float64"`` or ``"ties"``.
        fan_out: As in :func:`large_graph`.
    """
    graph = large_graph(rng, ops, fan_out=fan_out)
    shape = (devices, devices)
    cluster = Cluster(
        tuple(device_profile(letter) for letter in rng.choice(["A", "B"], devices)),
        rng.choice([0, 1, 3], shape),
        rng.choice([10**9, 2 * 10**9, 10**8], shape),
        channel,
    )
    if placement == "random":
        device = rng.integers(0, devices, graph.num_ops)
    else:
        device = np.arange(graph.num_ops) * devices // graph.num_ops
    drawn = rng.standard_normal(graph.num_ops)
    priorities = {
        "none": None,
        "float32": drawn.astype(np.float32),
        "float64": drawn,
        "ties": np.round(drawn).astype(np.float32),
    }
    return Instance(
        graph,
        cluster,
        rng.choice([0, 1, 2, 5, 30], (graph.num_ops, len(cluster.classes))),
        device.astype(np.uint8),
        priorities[priority],
        rng.choice([0.0, 1.0, 2.0], (graph.num_tensors, devices)) if rng.random() < 0.3 else None,
    )
