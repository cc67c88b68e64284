"""Sets of ops that annealing moves together: layers, directions, parameters, and METIS parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...graphs import DIRECTIONS, Graph
from ...problems import PlacementProblem
from ...problems.grouping import colocation_units, metis_parts
from ..heuristics.blocks import find_blocks, forward_first_order

Int32 = NDArray[np.int32]

_FORWARD = DIRECTIONS.index("forward")
METIS_SIZES = (16, 64, 256)
#: Lengths of the stretches of the topological order that cut large clusters up.
_FINE, _COARSE = 128, 512


@dataclass(frozen=True)
class Level:
    """One way of dividing the units into clusters.

    Attributes:
        name: For people.
        ptr: CSR pointer, ``[clusters + 1] int64``.
        unit: Units of each cluster, ``int32``.
    """

    name: str
    ptr: NDArray[np.int64]
    unit: Int32

    def __len__(self) -> int:
        return len(self.ptr) - 1

    def members(self, cluster: int) -> Int32:
        """Units of a cluster."""
        return self.unit[self.ptr[cluster] : self.ptr[cluster + 1]]


def metis_levels(problem: PlacementProblem, sizes: tuple[int, ...] = METIS_SIZES) -> list[Level]:
    """METIS parts of several sizes; those that would be the units themselves are left out."""
    unit = colocation_units(problem.graph)
    units = int(unit.max()) + 1
    return [
        _level(f"metis:{k}", unit, metis_parts(problem, k))
        for k in sizes
        if len(problem.cluster) <= k < units
    ]


def unit_sequence(problem: PlacementProblem) -> Int32:
    """Units by their first forward op in a topological order, then the others, ``[units] int32``."""
    unit = colocation_units(problem.graph)
    first = np.unique(unit[forward_first_order(problem)], return_index=True)[1]
    return np.argsort(first, kind="stable").astype(np.int32)


def unit_level(problem: PlacementProblem) -> Level:
    """Each unit by itself."""
    unit = colocation_units(problem.graph)
    return _level("unit", unit, unit)


def structured_levels(problem: PlacementProblem) -> list[Level]:
    """Blocks (layers), with direction, with parameter, and stretches of these."""
    graph = problem.graph
    unit = colocation_units(graph)
    block = find_blocks(problem).block.astype(np.int64)
    direction = (graph.op_direction != _FORWARD).astype(np.int64)
    single, shared = _parameter(graph)
    position = np.arange(graph.num_ops)
    divisions: list[tuple[str, tuple[NDArray[np.int64], ...]]] = [
        ("block", (block,)),
        ("block x direction", (block, direction)),
        ("block x direction x parameter", (block, direction, single)),
        ("fine stretches", (block, direction, single, position // _FINE)),
        ("coarse stretches", (block, direction, shared, position // _COARSE)),
    ]
    levels = [_level(name, unit, _combined(columns)) for name, columns in divisions]
    seen: set[bytes] = set()
    distinct = []
    for level in levels:
        key = level.ptr.tobytes() + level.unit.tobytes()
        if key not in seen:
            seen.add(key)
            distinct.append(level)
    return distinct


def _combined(columns: tuple[NDArray[np.int64], ...]) -> Int32:
    """One label per distinct combination of labels, ``[ops] int32``."""
    label: Int32 = (
        np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)[1].ravel().astype(np.int32)
    )
    return label


def _level(name: str, unit: Int32, label: NDArray[Any]) -> Level:
    """Clusters of units; a unit whose ops have several labels belongs to that of its first op."""
    first = np.unique(unit, return_index=True)[1]
    label = np.unique(label[first], return_inverse=True)[1].ravel()
    order = np.argsort(label, kind="stable").astype(np.int32)
    ptr = np.concatenate([[0], np.cumsum(np.bincount(label))]).astype(np.int64)
    return Level(name, ptr, order)


def _parameter(graph: Graph) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The colocation group (a parameter with its updates) whose gradient each op helps to compute.

    Returns:
        ``(group, is_single)``, each ``[ops] int64``: the group if all that follows a backward op belongs to one,
        else -1; and whether it is one.
    """
    ops = graph.num_ops
    group = graph.op_group.tolist()
    backward = (graph.op_direction != _FORWARD).tolist()
    variable = graph.is_variable.tolist()
    lowest, highest = [ops] * ops, [-1] * ops
    for v in range(ops):
        if group[v] >= 0 and not variable[v]:
            lowest[v] = highest[v] = group[v]
    producer, consumer, _ = graph.edges
    order = np.argsort(-producer, kind="stable")
    for u, v in zip(producer[order].tolist(), consumer[order].tolist(), strict=True):  # consumers are final
        if backward[u] and (group[u] < 0 or variable[u]):
            lowest[u] = min(lowest[u], lowest[v])
            highest[u] = max(highest[u], highest[v])
    low, high = np.array(lowest), np.array(highest)
    one = (low == high) & (high >= 0)
    return np.where(one, high, -1), one.astype(np.int64)
