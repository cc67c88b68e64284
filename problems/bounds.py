"""Values that no feasible placement can beat."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..graphs import DIRECTIONS
from .footprints import op_footprint_bytes, resident_tensors
from .objectives import Objective

if TYPE_CHECKING:
    from .placement import PlacementProblem

_NS_PER_MS = 1e6


@dataclass(frozen=True)
class Bound:
    """A lower bound.

    Attributes:
        value: No feasible placement has a smaller one.
        unit: Unit of the value, that of the objective.
        name: What it is, e.g. ``"critical path"``.
    """

    value: float
    unit: str
    name: str


def placement_bound(problem: PlacementProblem) -> Bound:
    """The largest of the bounds that hold for the objective."""
    rules = {
        Objective.STEP_TIME: _step_time_bounds,
        Objective.PEAK_MEMORY: _peak_memory_bounds,
        Objective.MAX_LOAD: _max_load_bounds,
        Objective.LATENCY: _latency_bounds,
    }
    value, name = max(rules[problem.objective](problem), key=lambda bound: bound[0])
    return Bound(float(value), problem.objective.unit, name)


def critical_path_ns(problem: PlacementProblem) -> int:
    """Longest path with each op on its fastest allowed device and free transfers, in ns."""
    end_ns = _fastest_ns(problem, problem.cost_ns).tolist()
    producer, consumer, _ = (
        problem.graph.edges
    )  # in order of consumers, so an op is finished before it is read
    ready_ns = [0] * len(end_ns)
    reads: list[list[int]] = [[] for _ in end_ns]
    for u, v in zip(producer.tolist(), consumer.tolist(), strict=True):
        reads[v].append(u)
    for v, before in enumerate(reads):
        if before:
            ready_ns[v] = max(end_ns[u] for u in before)
            end_ns[v] += ready_ns[v]
    return int(max(end_ns))


def _fastest_ns(problem: PlacementProblem, cost_ns: NDArray[np.int64]) -> NDArray[np.int64]:
    """Time of each op on its fastest allowed device, ``[ops] int64``."""
    fastest: NDArray[np.int64] = np.where(problem.allowed, cost_ns, np.iinfo(np.int64).max).min(axis=1)
    return fastest


def _unit_cost_ns(problem: PlacementProblem, cost_ns: NDArray[np.float64]) -> NDArray[np.float64]:
    """Time of each unit on each device class, ``[units, classes]``; ``inf`` where the unit is not allowed.

    A unit is a colocation group, or an op without one.
    """
    graph, cluster = problem.graph, problem.cluster
    class_of = cluster.device_class
    example = np.array([int(np.argmax(class_of == c)) for c in range(len(cluster.classes))])
    cost = np.where(problem.allowed, cost_ns, np.inf)[:, example]
    grouped = graph.op_group >= 0
    by_group = np.zeros((graph.num_groups, len(cluster.classes)))
    np.add.at(by_group, graph.op_group[grouped], cost[grouped])
    return np.concatenate([by_group, cost[~grouped]])


def _work_bounds(problem: PlacementProblem, cost_ns: NDArray[np.float64]) -> list[tuple[float, str]]:
    """What devices must spend on computation alone: the largest unit, and all work over all devices."""
    units = _unit_cost_ns(problem, cost_ns)
    count = np.bincount(problem.cluster.device_class, minlength=units.shape[1]).astype(float)
    largest = "largest colocation group" if problem.graph.num_groups else "largest op"
    return [
        (float(units.min(axis=1).max()), largest),
        (_balanced_work(units, count), "all work over all devices"),
    ]


def _balanced_work(units: NDArray[np.float64], count: NDArray[np.float64]) -> float:
    """Least possible load if units could be split at will between devices of different speed.

    For any prices ``p >= 0`` per class, ``sum over units of min over classes of p * time`` is at most the
    largest load times ``sum of p * devices`` (linear-programming duality), so every price vector gives a
    bound; equal prices give fastest work / devices. The prices are improved one class at a time.
    """
    price = np.ones(len(count))

    def bound(prices: NDArray[np.float64]) -> float:
        weighted = np.where(np.isfinite(units), units * prices, np.inf)
        return float(weighted.min(axis=1).sum() / (prices @ count))

    best = bound(price)
    if len(count) == 1:
        return best
    for _ in range(1 if len(count) == 2 else 2):
        for c in range(1, len(count)):  # only ratios of prices matter
            low, high = -14.0, 14.0  # log2 of the price: a device 16,000 times slower hardly counts
            while high - low > 1e-3:
                left, right = low + (high - low) / 3, high - (high - low) / 3
                values = []
                for exponent in (left, right):
                    trial = price.copy()
                    trial[c] = 2.0**exponent
                    values.append(bound(trial))
                    if values[-1] > best:
                        best, price = values[-1], trial
                low, high = (left, high) if values[0] < values[1] else (low, right)
    return best * (1 - 1e-12)  # prices are no whole numbers: rounding must not lift the bound


def _step_time_bounds(problem: PlacementProblem) -> list[tuple[float, str]]:
    bounds: list[tuple[float, str]] = [(critical_path_ns(problem), "critical path")]
    bounds += [
        (math.ceil(value), name) for value, name in _work_bounds(problem, problem.cost_ns.astype(float))
    ]
    return bounds


def _max_load_bounds(problem: PlacementProblem) -> list[tuple[float, str]]:
    cost_ns = problem.cost_ns.astype(float)
    if problem.pipeline.micro_batches is not None:  # updates run once per step, the value is per micro-batch
        cost_ns[problem.graph.op_direction == DIRECTIONS.index("update")] /= problem.pipeline.micro_batches
    return [(value / _NS_PER_MS, name) for value, name in _work_bounds(problem, cost_ns)]


def _latency_bounds(problem: PlacementProblem) -> list[tuple[float, str]]:
    return [(critical_path_ns(problem) / _NS_PER_MS, "critical path")]


def _peak_memory_bounds(problem: PlacementProblem) -> list[tuple[float, str]]:
    graph, devices = problem.graph, len(problem.cluster)
    resident = resident_tensors(graph)
    total_resident = int(graph.tensor_bytes[resident].sum())
    bounds: list[tuple[float, str]] = [
        (int(problem.footprint_bytes.max()), "largest op footprint"),
        (-(-total_resident // devices), "resident bytes over all devices"),
    ]
    if devices == 1:
        passing = int(op_footprint_bytes(graph, ~resident).max())
        bounds.append((total_resident + passing, "resident bytes and the largest op footprint"))
    return bounds
