"""Rows of runs with known values, as they would be stored."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from opgym.runs.reproduce.gdp import methods
from opgym.runs.reproduce.gdp.methods import Method
from opgym.runs.reproduce.gdp.plan import Settings
from opgym.runs.reproduce.gdp.reproduction import Measured
from opgym.runs.reproduce.gdp.store import Store, identity
from opgym.runs.reproduce.gdp.workloads import Workload, unscreened, workloads

Row = dict[str, Any]


def workload(label: str) -> Workload:
    """A row by what tables call it."""
    [found] = [each for each in (*workloads(), *unscreened()) if each.label == label]
    return found


def method(name: str) -> Method:
    """A method by its name."""
    every = (*methods.heuristics(), *methods.searches(), *methods.learners(), *methods.ablations())
    by_name = {each.name: each for each in every}
    if name in by_name:
        return by_name[name]
    weights, _, kind = name.rpartition(" ")
    return {"zero-shot": methods.zero_shot, "fine-tuned": methods.fine_tuned}[kind](weights)


def row(
    label: str,
    name: str | Method,
    found: float | Sequence[Any] | None,
    seed: int = 0,
    spent: int = 10,
    **other: Any,
) -> Row:
    """A stored row.

    Args:
        label: Of the workload.
        name: Of the method.
        found: Best values with the evaluations that found them; a value alone: found at once; ``None``: nothing fits.
        seed: Of the run.
        spent: Its evaluations.
        **other: What else is to be so.
    """
    at, how = workload(label), method(name) if isinstance(name, str) else name
    points = found if isinstance(found, list) else [[1, found]]
    how = how.on(at)
    return {
        "key": identity(at, how, seed), "row": at.name, "method": how.name, "seed": seed, "ops": at.ops,
        "evaluations": spent, "seconds": spent / 10, "peak_bytes": None,
        "curve": [[evaluations, evaluations / 10, value] for evaluations, value in points],
        "verdict": "out_of_memory" if points[-1][1] is None else "ok", "note": "", "weights": how.weights,
        "seen": False,
    } | other  # fmt: skip


def rules(label: str, human: float, others: float = 400.0, **other: Any) -> list[Row]:
    """All heuristics on a row: the human expert, and the others with one value."""
    return [
        row(label, name, human if name == methods.HUMAN else others, spent=2, **other)
        for name in methods.HEURISTICS
    ]


def measured(stored: Iterable[Row], **settings: Any) -> Measured:
    """What is known if these rows are all that is stored."""
    return Measured(Settings(**settings), Store(stored))
