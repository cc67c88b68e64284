"""Which devices share the work, and how placements that ignore the rules are made legal."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...problems import Objective, PlacementProblem
from ...problems.grouping import colocation_units, of_units

#: A device this many times slower than the fastest one only gets ops that nobody else supports.
_SLOWEST = 4.0


def relative_time(problem: PlacementProblem) -> NDArray[np.float64]:
    """How much slower each device is on the ops it supports than the fastest devices for them, ``[devices]``.

    ``inf`` for a device that supports nothing.
    """
    cost = problem.cost_ns.astype(np.float64)
    fastest = np.where(problem.allowed, cost, np.inf).min(axis=1)
    own = np.where(problem.allowed, cost, 0.0).sum(axis=0)
    best = np.where(problem.allowed, fastest[:, None], 0.0).sum(axis=0)
    slowness = np.where(best > 0, own / np.maximum(best, 1e-300), 1.0)
    slowness[~problem.allowed.any(axis=0)] = np.inf
    return slowness


def workers(problem: PlacementProblem) -> NDArray[np.int64]:
    """The devices that a person would split a model over: all but those several times slower than others.

    A CPU beside GPUs is none. All devices are workers where time does not count (``peak_memory``).
    """
    slowness = relative_time(problem)
    if problem.objective is Objective.PEAK_MEMORY:
        return np.flatnonzero(np.isfinite(slowness))
    return np.flatnonzero(slowness <= _SLOWEST * slowness.min())


def legalised(problem: PlacementProblem, device: NDArray[np.integer]) -> NDArray[np.uint8]:
    """Makes a device map legal, ``[ops] uint8``.

    A colocation group follows its first op. A group or op on a device that does not support it goes to the one
    where its own time on top of what is there already is least.
    """
    unit = colocation_units(problem.graph)
    home = of_units(np.asarray(device), unit).astype(np.int64)
    allowed = of_units(problem.allowed, unit)
    lost = np.flatnonzero(~allowed[np.arange(len(home)), home])
    if len(lost):
        cost = np.zeros((len(home), len(problem.cluster)))
        np.add.at(cost, unit, problem.cost_ns)
        load = np.zeros(len(problem.cluster))
        settled = np.ones(len(home), dtype=bool)
        settled[lost] = False
        np.add.at(load, home[settled], cost[settled, home[settled]])
        for u in lost:
            home[u] = int(np.argmin(np.where(allowed[u], load + cost[u], np.inf)))
            load[home[u]] += cost[u, home[u]]
    return home[unit].astype(np.uint8)
