"""Optima of tiny placement problems by trying everything."""

from __future__ import annotations

import itertools

import numpy as np

from opgym.problems import Placement, PlacementProblem


def topological_orders(problem: PlacementProblem) -> list[list[int]]:
    """All orders of the ops that run in which every op comes after those it reads from."""
    graph = problem.graph
    ops = [v for v in range(graph.num_ops) if not graph.is_variable[v]]
    before = {v: {u for u, w, _ in zip(*graph.edges, strict=True) if w == v} & set(ops) for v in ops}
    orders: list[list[int]] = [[]]
    for _ in ops:
        orders = [[*o, v] for o in orders for v in ops if v not in o and before[v] <= set(o)]
    return orders


def device_maps(problem: PlacementProblem) -> list[np.ndarray]:
    """All legal device maps."""
    maps = itertools.product(range(len(problem.cluster)), repeat=problem.graph.num_ops)
    arrays = [np.array(device, np.uint8) for device in maps]
    return [a for a in arrays if np.isfinite(problem.evaluate(Placement(a)).value)]


def best_value(problem: PlacementProblem) -> float:
    """Least value of a feasible placement over all device maps and priorities; ``inf`` if nothing fits."""
    priorities: list[np.ndarray | None] = [None]
    if problem.objective.simulated:
        for order in topological_orders(problem):
            priority = np.zeros(problem.graph.num_ops)
            priority[order] = -np.arange(len(order), dtype=np.float64)
            priorities.append(priority)
    best = float("inf")
    for device in device_maps(problem):
        for priority in priorities:
            outcome = problem.evaluate(Placement(device, priority))
            if outcome.ok:
                best = min(best, outcome.value)
    return best
