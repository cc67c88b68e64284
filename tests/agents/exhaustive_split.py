"""The best contiguous split by trying every placement, from the definition alone."""

from __future__ import annotations

import itertools

import networkx
import numpy as np

from opgym.graphs import DIRECTIONS
from opgym.problems import Placement, PlacementProblem


def best_contiguous_value(problem: PlacementProblem) -> float:
    """Least max-load over contiguous placements that fit; ``inf`` if there is none."""
    best = float("inf")
    for devices in itertools.product(range(len(problem.cluster)), repeat=problem.graph.num_ops):
        device = np.array(devices)
        if is_contiguous(problem, devices):
            outcome = problem.evaluate(Placement(device))
            if outcome.ok:
                best = min(best, outcome.value)
    return best


def is_contiguous(problem: PlacementProblem, device: tuple[int, ...]) -> bool:
    """Whether the devices can be put in an order that every forward edge, and every mirrored one, follows."""
    graph = problem.graph
    forward = [DIRECTIONS[d] == "forward" for d in graph.op_direction]
    anchored = {int(graph.op_group[op]) for op in range(graph.num_ops) if forward[op]} - {-1}
    orphan = [not forward[op] and int(graph.op_group[op]) not in anchored for op in range(graph.num_ops)]
    order = networkx.DiGraph()
    for u, v, _ in zip(*graph.edges, strict=True):
        if forward[u] and forward[v]:
            order.add_edge(device[u], device[v])
        elif not forward[u] and not forward[v] and (orphan[u] or orphan[v]):
            order.add_edge(device[v], device[u])
    order.remove_edges_from(list(networkx.selfloop_edges(order)))
    return networkx.is_directed_acyclic_graph(order)
