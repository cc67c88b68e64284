"""What is decided at once: stretches of a layer, its direction and its parameters, or METIS parts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...problems import PlacementProblem
from ...problems.grouping import colocation_units, metis_parts, number_by_first_op, of_units
from ..search.clusters import Level, structured_levels, unit_sequence

Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]


def decision_groups(problem: PlacementProblem, most: int) -> Int32:
    """Puts the ops of a problem into groups, each of which has one decision.

    Small graphs are decided unit by unit. Of others, the finest clusters of :func:`structured_levels` of which there
    are few enough are cut into stretches of the next finer ones, the more of them the more work is in a cluster. A
    graph that names no layers is cut by METIS, into half as many parts: it has no clusters of which more is known.
    What no device may run as a whole is never together.

    Args:
        problem: The problem.
        most: Groups at most, but for those that are apart because of where they may run.

    Returns:
        Group of each op, numbered by first op, ``[ops] int32``.
    """
    unit = colocation_units(problem.graph)
    legal = np.unique(of_units(problem.allowed, unit), axis=0, return_inverse=True)[1].ravel()
    if len(legal) <= most:
        return unit
    label = _stretches(problem, unit, legal, most) if len(problem.graph.layers) > 1 else None
    if label is None:
        parts = of_units(metis_parts(problem, max(1, most // 2)), unit)
        label = _together(parts, legal)
    return number_by_first_op(label[unit])


def _stretches(problem: PlacementProblem, unit: Int32, legal: Int64, most: int) -> Int64 | None:
    """Stretches of clusters, ``[units]``; ``None``: even the coarsest are too many."""
    parent, child = None, np.arange(len(legal))
    for level in sorted(structured_levels(problem), key=len, reverse=True):  # the finest first
        label = _together(_labels(level), legal)
        if label.max() < most:
            parent = label
            break
        child = label
    if parent is None:
        return None
    fastest = np.where(problem.allowed, problem.cost_ns, np.iinfo(np.int64).max).min(axis=1)
    work: NDArray[np.float64] = np.bincount(unit, fastest.astype(np.float64)).astype(np.float64)
    position = np.empty(len(legal), np.int64)
    position[unit_sequence(problem)] = np.arange(len(legal))
    return _cut(parent, child, work, position, most)


def _cut(parent: Int64, child: Int64, work: NDArray[np.float64], position: Int64, most: int) -> Int64:
    """Cuts each parent into runs of children with about as much work, ``[units]``.

    Args:
        parent: Of each unit.
        child: Of each unit; one that lies in several parents is one in each.
        work: Of each unit.
        position: Of each unit in an order; children stand where their first unit does.
        most: Runs at most.
    """
    child = _together(parent, child)
    first = np.full(child.max() + 1, len(position))
    np.minimum.at(first, child, position)
    parent_of = np.empty(len(first), np.int64)
    parent_of[child] = parent
    weight = np.bincount(child, work)

    total, children = np.bincount(parent_of, weight), np.bincount(parent_of)
    share = total / max(total.sum(), 1.0)
    runs = np.minimum(1 + (share * (most - len(total))).astype(np.int64), children)

    order = np.lexsort((first, parent_of))
    sorted_parent = parent_of[order]
    middle = np.cumsum(weight[order]) - weight[order] / 2
    begin = np.cumsum(total) - total
    along = (middle - begin[sorted_parent]) / np.maximum(total[sorted_parent], 1e-9)
    run = np.empty(len(first), np.int64)
    run[order] = np.clip((along * runs[sorted_parent]).astype(np.int64), 0, runs[sorted_parent] - 1)
    return _together(parent, run[child])


def _labels(level: Level) -> Int64:
    """Cluster of each unit."""
    label = np.empty(len(level.unit), np.int64)
    label[level.unit] = np.repeat(np.arange(len(level)), np.diff(level.ptr))
    return label


def _together(*labels: NDArray[np.integer]) -> Int64:
    """One label for each combination of labels."""
    found = np.unique(np.stack(labels, axis=1), axis=0, return_inverse=True)[1]
    return found.ravel().astype(np.int64)
