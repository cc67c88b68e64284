"""Small problems whose values can be worked out by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from opgym.graphs import Cluster, DeviceProfile, Graph, GraphBuilder, Link, TableCost
from opgym.problems import Objective, Pipeline, PlacementProblem

#: A byte takes a nanosecond, without latency: a tensor's bytes are its transfer time.
BYTE_PER_NS = Link("test", 10**9, 0)


def accelerator(capacity: int = 10**6) -> DeviceProfile:
    """A device whose times come from a table."""
    return DeviceProfile("accelerator", "accelerator", {}, 0, capacity)


def cpu(capacity: int = 10**9) -> DeviceProfile:
    """A device of kind ``"cpu"``."""
    return DeviceProfile("CPU", "cpu", {}, 0, capacity)


def dag(
    edges: Mapping[int, Sequence[int]],
    *,
    sizes: Sequence[int] | None = None,
    parameters: Mapping[int, int] | None = None,
    directions: Mapping[int, str] | None = None,
    groups: Mapping[int, str] | None = None,
    unsupported: Mapping[int, str] | None = None,
    outputs: Sequence[int] = (),
) -> Graph:
    """A graph of ops 0 .. n-1, each writing one tensor; ``edges[v]`` lists the ops that op v reads."""
    b = GraphBuilder("test")
    count = len(edges)
    written = [b.tensor(bytes=sizes[v] if sizes else 10, is_output=v in outputs) for v in range(count)]
    for v in range(count):
        reads = [written[u] for u in edges[v]]
        if parameters and v in parameters:
            reads.append(b.tensor(bytes=parameters[v], role="parameter"))
        b.op(
            "op",
            inputs=reads,
            outputs=[written[v]],
            direction=(directions or {}).get(v, "forward"),
            group=(groups or {}).get(v),
            unsupported=[unsupported[v]] if unsupported and v in unsupported else (),
            name=f"op{v}",
        )
    return b.build()


def problem(
    graph: Graph,
    devices: Sequence[DeviceProfile],
    objective: str,
    cost: Sequence[int],
    cpu_cost: Sequence[int] | None = None,
    *,
    channel: str = "port",
    pipeline: Pipeline | None = None,
) -> PlacementProblem:
    """A problem with times in ns per op, on accelerators and on CPUs (ten times as long where not given)."""
    table = {
        "accelerator": np.array(cost, np.int64),
        "cpu": np.array(cpu_cost if cpu_cost is not None else [10 * c for c in cost], np.int64),
    }
    cluster = Cluster.uniform(devices, BYTE_PER_NS, channel)
    return PlacementProblem(graph, cluster, Objective(objective), TableCost(table), pipeline or Pipeline())
