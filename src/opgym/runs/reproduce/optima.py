"""The least peak memory of graphs with 50 ops and more, proven, and who reaches it: ``opgym reproduce optima``.

A proof is a bound that meets the value of an order: one of the graph itself, or of an exact solver. Graphs of up to
60 ops are handed to both exact solvers, which share no code, and have to agree.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import geometric_mean
from types import MappingProxyType
from typing import Any

import numpy as np

from ...agents import Result, make
from ...datasets import example, load, onnx_light
from ...datasets.reference import ProvenPeak
from ...datasets.synthetic import FAMILIES, SEEDS
from ...problems import Budget, SchedulingProblem
from ..parallel import in_order

EVALUATIONS = 5_000


@dataclass(frozen=True)
class Column:
    """A solver and its budget."""

    solver: str
    evaluations: int = EVALUATIONS


#: What is compared, in the order of the table. The last one has the budget that the solver gives itself.
COLUMNS: Mapping[str, Column] = MappingProxyType(
    {
        **{
            name: Column(name)
            for name in (
                "program-order", "bfs", "dfs", "post-order", "sethi-ullman", "greedy-freed-bytes", "best-of-three",
                "random-order", "beam", "key-search", "order-annealing", "order-search", "brkga",
            )
        },
        "order-search-200k": Column("order-search", 200_000),
    }
)  # fmt: skip
MIN_OPS = 50
SIZES, SEEDS_EACH = (50, 75, 100), 4
#: Families that stay within reach of the exact solvers at 200 ops.
LARGE_FAMILIES, LARGE_SIZE, LARGE_SEEDS = ("layered", "cells", "fork-join"), 200, 2
#: Up to this many ops the second exact solver has to confirm the first.
CONFIRMED_OPS = 60
#: Limits of the exact solvers that do not depend on the machine.
_PROVERS: Mapping[str, Mapping[str, Any]] = {"dp-order": {"max_bytes": 2**27}, "cp-sat": {"effort": 2.0}}


def instances(*, quick: bool = False) -> list[str]:
    """Ids of the graphs, real ones first: all with at least 50 ops, and of each synthetic family the first test seeds.

    Args:
        quick: One graph of 50 ops of each family, and the real ones below 200 ops.
    """
    real = [*example.ids(), *onnx_light.ids()]
    counts = {id: len(SchedulingProblem(load(id)).ops) for id in real}
    found = [id for id, count in counts.items() if count >= MIN_OPS and not (quick and count > 200)]
    sizes, count = (SIZES[:1], 1) if quick else (SIZES, SEEDS_EACH)
    found += [_id(family, n, seed) for family in FAMILIES for n in sizes for seed in SEEDS["test"][:count]]
    if not quick:
        seeds = SEEDS["test"][:LARGE_SEEDS]
        found += [_id(family, LARGE_SIZE, seed) for family in LARGE_FAMILIES for seed in seeds]
    return found


def _id(family: str, n: int, seed: int) -> str:
    return f"synthetic/{family}?n={n}&seed={seed}"


def measure(graph: str) -> dict[str, Any]:
    """Proves what can be proven of a graph, and runs every solver on it.

    Returns:
        The row: ``graph``, ``fingerprint``, ``ops``, ``best_bytes``, ``bound_bytes``, ``proven_by`` (empty if the two
        differ), ``seconds`` of the proof, ``values`` (solver to bytes), ``order`` (of the best), ``contradictions``
        (texts; a value below a bound).
    """
    problem = SchedulingProblem(load(graph))
    results: dict[str, Result[Any]] = {}
    for label, column in COLUMNS.items():
        budget = Budget(evaluations=column.evaluations)
        results[label] = make(column.solver).solve(problem, budget, np.random.default_rng(0))
    best = min(results.values(), key=lambda result: result.outcome.value)
    bound = problem.lower_bound()
    bounds = {f"bound: {bound.name}": int(bound.value)}
    began = time.perf_counter()
    for name, options in _PROVERS.items():
        solver = make(name, **options)
        if solver.skip_reason(problem) is not None:
            continue
        needed = max(bounds.values()) < int(best.outcome.value)
        if needed or len(problem.ops) <= CONFIRMED_OPS:
            proof: Result[Any] = solver.solve(problem, rng=np.random.default_rng(0))
            results[name] = proof
            if proof.bound is not None:
                bounds[name] = int(proof.bound)
            best = min(best, proof, key=lambda result: result.outcome.value)
    least, high = int(best.outcome.value), max(bounds.values())
    return {
        "graph": graph,
        "fingerprint": problem.graph.fingerprint,
        "ops": len(problem.ops),
        "best_bytes": least,
        "bound_bytes": min(high, least),
        "proven_by": [name for name, value in bounds.items() if value == least],
        "seconds": time.perf_counter() - began,
        "values": {label: int(results[label].outcome.value) for label in COLUMNS},
        "order": np.asarray(best.solution.op).tolist(),
        "contradictions": _contradictions(graph, bounds, results),
    }


def _contradictions(graph: str, bounds: Mapping[str, int], results: Mapping[str, Result[Any]]) -> list[str]:
    """Orders that are better than something that was proven: there must be none."""
    return [
        f"{graph}: {label} has {result.outcome.value:.0f} bytes, below {value} bytes by {name}"
        for label, result in results.items()
        for name, value in bounds.items()
        if result.outcome.value < value
    ]


def run(
    *,
    quick: bool = False,
    workers: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:
    """Measures all graphs.

    Args:
        quick: A tenth of the graphs.
        workers: Processes; nothing but seconds depends on how many.
        progress: Told how many of how many graphs are done.

    Returns:
        ``rows`` (of :func:`measure`), ``summary`` and ``contradictions``.
    """
    graphs = instances(quick=quick)
    rows: list[dict[str, Any]] = []
    for row in in_order(measure, graphs, workers):
        rows.append(row)
        if progress is not None:
            progress(len(rows), len(graphs))
    return {
        "evaluations": EVALUATIONS,
        "rows": rows,
        "summary": summary(rows),
        "contradictions": [text for row in rows for text in row["contradictions"]],
    }


def summary(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """How much is proven, and how often each solver reaches the optimum.

    A graph is trivial if its program order is optimal already; shares are given for all proven graphs and for those
    that are not trivial.
    """
    proven = [row for row in rows if row["proven_by"]]
    hard = [row for row in proven if not trivial(row)]
    return {
        "graphs": len(rows),
        "proven": len(proven),
        "confirmed": sum(len(solvers_of(row)) > 1 for row in proven),
        "by_graph_bound": sum(any(name.startswith("bound") for name in row["proven_by"]) for row in proven),
        "trivial": len(proven) - len(hard),
        "open": [
            {"graph": row["graph"], "bound_ratio": row["bound_bytes"] / row["best_bytes"]}
            for row in rows
            if not row["proven_by"]
        ],
        "real_from_100_ops": _counts(
            rows, lambda row: not row["graph"].startswith("synthetic/") and row["ops"] >= 100
        ),
        "beam_or_order_search": {
            "short": _reached(proven, hard, ("beam", "order-search")),
            "long": _reached(proven, hard, ("beam", "order-search-200k")),
        },
        "solvers": [
            {"solver": name, **_reached(proven, hard, (name,)), **_ratios(hard, name)} for name in COLUMNS
        ],
    }


def trivial(row: Mapping[str, Any]) -> bool:
    """Whether the program order has the best peak."""
    return bool(row["values"]["program-order"] == row["best_bytes"])


def solvers_of(row: Mapping[str, Any]) -> list[str]:
    """The exact solvers that proved the optimum of a row."""
    return [name for name in row["proven_by"] if name in _PROVERS]


def proven_peaks(rows: Sequence[Mapping[str, Any]]) -> list[ProvenPeak]:
    """What was proven, to be stored."""
    return [
        ProvenPeak(
            row["graph"],
            row["fingerprint"],
            row["best_bytes"],
            tuple(row["proven_by"]),
            np.asarray(row["order"]),
        )
        for row in rows
        if row["proven_by"]
    ]


def _counts(rows: Sequence[Mapping[str, Any]], chosen: Callable[[Mapping[str, Any]], bool]) -> dict[str, int]:
    found = [row for row in rows if chosen(row)]
    return {"graphs": len(found), "proven": sum(bool(row["proven_by"]) for row in found)}


def _reached(
    proven: Sequence[Mapping[str, Any]], hard: Sequence[Mapping[str, Any]], names: Sequence[str]
) -> dict[str, float | None]:
    """Share of graphs on which one of some solvers reaches the optimum."""

    def share(rows: Sequence[Mapping[str, Any]]) -> float | None:
        hits = [min(row["values"][name] for name in names) == row["best_bytes"] for row in rows]
        return sum(hits) / len(hits) if hits else None

    return {"reached": share(proven), "reached_where_not_trivial": share(hard)}


def _ratios(rows: Sequence[Mapping[str, Any]], name: str) -> dict[str, float | None]:
    """Value over optimum."""
    ratios = [row["values"][name] / row["best_bytes"] for row in rows if row["best_bytes"]]
    if not ratios:
        return {"mean_ratio": None, "worst_ratio": None}
    return {"mean_ratio": geometric_mean(ratios), "worst_ratio": max(ratios)}
