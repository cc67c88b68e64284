"""Tiny problems of every kind that a solver may be given."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from opgym.graphs import Cluster, Graph, GraphBuilder, TableCost
from opgym.problems import Objective, PlacementProblem

from ..problems.instances import BYTE_PER_NS, accelerator, cpu, dag, problem

Build = Callable[[str], PlacementProblem]
DIAMOND = {0: [], 1: [0], 2: [0], 3: [1, 2]}


def training_graph() -> Graph:
    """Two layers with a variable each: forward, backward, colocated updates."""
    b = GraphBuilder("test")
    weights = [b.tensor(bytes=30, role="parameter") for _ in range(2)]
    homes = [b.op("variable", outputs=[w], group=f"w{i}", layer=f"layer{i}") for i, w in enumerate(weights)]
    x = b.tensor(bytes=10, role="input")
    activations = []
    for i in range(2):
        y = b.tensor(bytes=10)
        b.op("MatMul", inputs=[x, weights[i]], outputs=[y], layer=f"layer{i}")
        activations.append((x, y))
        x = y
    gradient = x
    for i in (1, 0):
        below, weight_gradient = b.tensor(bytes=10), b.tensor(bytes=30)
        b.op(
            "Grad",
            inputs=[gradient, activations[i][0], weights[i]],
            outputs=[below, weight_gradient],
            layer=f"layer{i}",
            direction="backward",
        )
        b.op("SGD", inputs=[weight_gradient, weights[i]], outputs=[b.tensor(bytes=30)], group=f"w{i}",
             update_of=homes[i], layer=f"layer{i}", direction="update")  # fmt: skip
        gradient = below
    return b.build()


def training(objective: str, capacity: int = 10**6) -> PlacementProblem:
    graph = training_graph()
    cost = np.where(graph.is_variable, 0, 10)
    cluster = Cluster.uniform((accelerator(capacity), accelerator(capacity)), BYTE_PER_NS)
    return PlacementProblem(graph, cluster, Objective(objective), TableCost({"accelerator": cost}))


def one_op(objective: str) -> PlacementProblem:
    return problem(dag({0: []}), (accelerator(), accelerator()), objective, [5])


def one_device(objective: str) -> PlacementProblem:
    return problem(dag(DIAMOND), (accelerator(),), objective, [5, 4, 3, 2])


def no_edges(objective: str) -> PlacementProblem:
    return problem(dag({v: [] for v in range(5)}), (accelerator(), accelerator()), objective, [5, 4, 3, 2, 1])


def disconnected(objective: str) -> PlacementProblem:
    return problem(
        dag({0: [], 1: [0], 2: [], 3: [2]}), (accelerator(), accelerator()), objective, [5, 4, 3, 2]
    )


def more_devices_than_ops(objective: str) -> PlacementProblem:
    return problem(dag({0: [], 1: [0]}), (accelerator(),) * 5, objective, [5, 4])


def nothing_costs_anything(objective: str) -> PlacementProblem:
    graph = dag({0: [], 1: [0], 2: [0]}, sizes=[0, 0, 0])
    return problem(graph, (accelerator(), accelerator()), objective, [0, 0, 0])


def several_tensors_between_two_ops(objective: str) -> PlacementProblem:
    b = GraphBuilder("test")
    x, y = b.tensor(bytes=3), b.tensor(bytes=4)
    b.op("Split", outputs=[x, y])
    b.op("Add", inputs=[x, y, x], outputs=[b.tensor(bytes=5)])
    return problem(b.build(), (accelerator(), accelerator()), objective, [5, 4])


def cpu_and_accelerators(objective: str) -> PlacementProblem:
    """Op 1 runs on the CPU only, op 2 on accelerators only."""
    graph = dag(DIAMOND, unsupported={1: "accelerator", 2: "cpu"})
    return problem(graph, (cpu(), accelerator(), accelerator()), objective, [5, 4, 3, 2])


def colocated_and_unsupported(objective: str) -> PlacementProblem:
    """Ops 0 and 3 share a device, and 3 cannot run on the CPU."""
    graph = dag(DIAMOND, groups={0: "g", 3: "g"}, unsupported={3: "cpu"})
    return problem(graph, (cpu(), accelerator(), accelerator()), objective, [5, 4, 3, 2])


def everything_colocated(objective: str) -> PlacementProblem:
    graph = dag(DIAMOND, groups=dict.fromkeys(range(4), "g"))
    return problem(graph, (accelerator(), accelerator()), objective, [5, 4, 3, 2])


def memory_for_half(objective: str) -> PlacementProblem:
    """Four ops with 40 bytes of parameters each in a row; a device has room for two of them."""
    graph = dag(
        {v: [v - 1] if v else [] for v in range(4)}, sizes=[1] * 4, parameters=dict.fromkeys(range(4), 40)
    )
    return problem(graph, (accelerator(100), accelerator(100)), objective, [5, 4, 3, 2])


def memory_nowhere(objective: str) -> PlacementProblem:
    """Each op fits by itself, all of them nowhere."""
    graph = dag({v: [] for v in range(5)}, sizes=[1] * 5, parameters=dict.fromkeys(range(5), 40))
    return problem(graph, (accelerator(50), accelerator(50)), objective, [1] * 5)


EDGE_CASES: dict[str, Build] = {
    build.__name__: build
    for build in (
        one_op, one_device, no_edges, disconnected, more_devices_than_ops, nothing_costs_anything,
        several_tensors_between_two_ops, cpu_and_accelerators, colocated_and_unsupported, everything_colocated,
        memory_for_half, memory_nowhere, training,
    )
} | {"training_with_little_memory": partial(training, capacity=150)}  # fmt: skip
