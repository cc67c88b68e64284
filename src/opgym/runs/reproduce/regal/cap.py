"""How little memory leaves most to gain in ``regal-time``: ``opgym reproduce regal-cap``.

Measured on validation graphs, none of which is in the test of a suite.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ....agents import make
from ....datasets import read
from ....errors import InvalidProblemError
from ....graphs import Cluster
from ....problems import Budget, PlacementProblem
from ....statistics import clustered_mean
from ...parallel import in_order
from ...references.reference import heuristic_names
from ...references.regal_suites import CAP_EVALUATIONS, SETTINGS, easy_peak, generated

#: Memory of a device, as a multiple of the peak that BRKGA finds where it has no limit.
FACTORS = (1.0, 1.05, 1.1, 1.2, 1.35)
SEEDS = (0, 1)
#: What makes the best-known value beside BRKGA and the heuristics.
_EVALUATIONS, _TEMPERATURES = 50_000, (0.004, 0.02)


def run(
    graphs: int = 24, workers: int = 1, progress: Callable[[int, int], None] | None = None
) -> list[dict[str, Any]]:
    """The table.

    Args:
        graphs: The first of the validation graphs.
        workers: Processes; the result does not depend on how many.
        progress: Told how many of how many graphs are done.

    Returns:
        For each factor: ``runs`` of BRKGA and how many of them are ``feasible``, the mean of 1 - best known / value
        over these with its interval (``left``), and on how many of the ``graphs`` some heuristic is feasible
        (``heuristic_feasible``).

    Raises:
        InvalidProblemError: There are fewer graphs.
    """
    rule = generated("validation")
    if graphs > len(rule):
        raise InvalidProblemError(f"{graphs:,} validation graphs; there are {len(rule):,}")
    ids = [rule[index] for index in range(graphs)]
    rows: list[list[dict[str, Any]]] = []
    for row in in_order(measure, ids, workers):
        rows.append(row)
        if progress is not None:
            progress(len(rows), len(ids))
    return [_line(factor, [row[i] for row in rows], ids) for i, factor in enumerate(FACTORS)]


def measure(id: str) -> list[dict[str, Any]]:
    """What is found of a graph with each factor: ``brkga`` by seed, ``heuristic`` and ``best``; ``None``: nothing."""
    imported = read(id)
    setting = SETTINGS["regal-time"]
    cluster = Cluster.parse(setting.clusters["synthetic"])
    peak = easy_peak(imported, cluster.name).outcome.value
    assert imported.costs is not None
    rows = []
    for factor in FACTORS:
        problem = PlacementProblem(
            imported.graph,
            cluster.with_capacity(math.floor(factor * peak)),
            setting.objective,
            imported.costs,
        )
        brkga = [_value(problem, "brkga", CAP_EVALUATIONS, seed) for seed in SEEDS]
        heuristics = [_value(problem, name, None, 0) for name in heuristic_names(PlacementProblem)]
        longer = [
            _value(problem, "pair-annealing", _EVALUATIONS, 0, temperature=temperature, starts=("single",))
            for temperature in _TEMPERATURES
        ]
        heuristic = min((value for value in heuristics if value is not None), default=None)
        best = min((v for v in (*brkga, heuristic, *longer) if v is not None), default=None)
        rows.append({"brkga": brkga, "heuristic": heuristic, "best": best})
    return rows


def _value(
    problem: PlacementProblem, solver: str, evaluations: int | None, seed: int, **options: Any
) -> float | None:
    found = make(solver, **options)
    if found.skip_reason(problem) is not None:
        return None
    outcome = found.solve(problem, Budget(evaluations), np.random.default_rng(seed)).outcome
    return float(outcome.value) if outcome.ok else None


def _line(factor: float, rows: Sequence[dict[str, Any]], ids: Sequence[str]) -> dict[str, Any]:
    left, graph = [], []
    for row, id in zip(rows, ids, strict=True):
        for value in row["brkga"]:
            if value is not None:
                left.append(1 - row["best"] / value)
                graph.append(id)
    return {
        "factor": factor,
        "graphs": len(rows),
        "runs": len(rows) * len(SEEDS),
        "feasible": len(left),
        "left": clustered_mean(left, graph).document() if left else None,
        "heuristic_feasible": sum(row["heuristic"] is not None for row in rows),
    }
