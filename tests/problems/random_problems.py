"""Random problems with everything that objectives look at, and legal placements of them."""

from __future__ import annotations

import numpy as np

from opgym.graphs import VARIABLE, Cluster, DeviceProfile, GraphBuilder, TableCost
from opgym.problems import Objective, Pipeline, Placement, PlacementProblem

CLASSES = ("fast", "slow", "host")


def random_cluster(rng: np.random.Generator, channel: str | None = None) -> Cluster:
    """One to four accelerators of two kinds, up to two CPUs, links of all speeds."""
    names = [CLASSES[i] for i in rng.integers(0, 2, rng.integers(1, 5))] + ["host"] * int(rng.integers(0, 3))
    devices = tuple(
        DeviceProfile(name, "cpu" if name == "host" else "accelerator", {}, 0, int(rng.integers(40, 400)))
        for name in names
    )
    shape = (len(devices), len(devices))
    return Cluster(
        devices,
        rng.integers(0, 5, shape),
        rng.choice([10**9, 3 * 10**9, 10**8], shape),
        channel or str(rng.choice(["port", "send", "link", "free"])),
    )


def random_problem(
    rng: np.random.Generator,
    objective: Objective,
    *,
    max_ops: int = 12,
    pipeline: Pipeline | None = None,
    channel: str | None = None,
    idle: float = 0.0,
) -> PlacementProblem:
    """A graph of forward, backward and update ops with groups, outputs, workspaces and unsupported classes.

    A share ``idle`` of the ops takes no time.
    """
    cluster = random_cluster(rng, channel)
    b = GraphBuilder("random", in_place=bool(rng.integers(0, 2)))
    parameters = [
        b.tensor(bytes=int(rng.integers(0, 60)), role="parameter") for _ in range(rng.integers(0, 3))
    ]
    variables = []
    for i in range(rng.integers(0, 3)):
        weight = b.tensor(bytes=int(rng.integers(1, 60)), role="parameter")
        variables.append(
            (b.op(VARIABLE, outputs=[weight], group=f"v{i}" if rng.integers(0, 2) else None), weight)
        )
    readable = parameters + [weight for _, weight in variables]
    ops = int(rng.integers(1, max_ops + 1))
    for v in range(ops):
        reads = [readable[i] for i in rng.integers(0, len(readable), rng.integers(0, 4))] if readable else []
        update = int(rng.integers(0, len(variables))) if variables and rng.random() < 0.15 else None
        written = [
            b.tensor(bytes=int(rng.choice([0, 1, 8, 8, 8, 30])), is_output=rng.random() < 0.15)
            for _ in range(rng.choice([0, 1, 1, 1, 2]))
        ]
        backward = v > ops // 2 and rng.random() < 0.7
        b.op(
            "op",
            inputs=reads,
            outputs=written,
            workspace_bytes=int(rng.choice([0, 0, 5])),
            elementwise=bool(rng.integers(0, 2)),
            direction="update" if update is not None else "backward" if backward else "forward",
            update_of=None if update is None else variables[update][0],
            group=f"v{update}"
            if update is not None
            else f"g{rng.integers(0, 3)}"
            if rng.random() < 0.2
            else None,
            unsupported=("slow",) if "slow" not in {cluster.devices[0].name} and rng.random() < 0.1 else (),
        )
        readable += written
    graph = b.build()
    works = rng.random(graph.num_ops) >= idle
    table = TableCost({name: rng.integers(0, 20, graph.num_ops) * works for name in CLASSES})
    return PlacementProblem(graph, cluster, objective, table, pipeline or Pipeline())


def random_placement(
    rng: np.random.Generator, problem: PlacementProblem, *, crowded: bool = False
) -> Placement:
    """A legal placement with random priorities or none; ``crowded`` uses few devices."""
    graph, devices = problem.graph, len(problem.cluster)
    device = np.array(
        [rng.choice(np.flatnonzero(row)[: 1 if crowded else devices]) for row in problem.allowed]
    )
    for group in range(graph.num_groups):
        members = graph.op_group == group
        device[members] = device[members][0]
    priority = rng.integers(0, 4, graph.num_ops).astype(float) if rng.integers(0, 2) else None
    transfer = rng.integers(0, 3, (graph.num_tensors, devices)).astype(float) if rng.integers(0, 2) else None
    return Placement(device, priority, transfer)
