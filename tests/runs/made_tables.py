"""Tables of evaluations with known numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from opgym.runs.evaluate.result_tables import CURVES, KEY, RESULTS, write_table

NONE = ("value", "bound", "best_known", "reference", "ratio_to_bound", "ratio_to_best_known", "ratio_to_reference",
        "seconds_limit", "evaluations", "seconds", "peak_bytes", "step_time_ns")  # fmt: skip
#: Names of the pictures of a section.
PICTURES: dict[str, list[str]] = {what: [] for what in ("means", "profile", "anytime", "memory")}
#: Six problems of six families. By hand: a's seeds are 100 and 110, b is 120 throughout, c finds nothing on p5.
PROBLEMS = [f"p{number}" for number in range(6)]


def result(row: str, agent: str, value: float | None, seed: int = 0, **others: Any) -> dict[str, Any]:
    """A row of the table of results: an order of a real graph, whose best known value is 100."""
    known = {
        **dict.fromkeys(NONE),
        "suite": "made", "row": row, "graph": f"zoo/{row}", "family": row, "twins": row, "cluster": "",
        "objective": "peak_memory", "agent": agent, "options": "0123456789ab", "seed": seed, "budget": 10,
        "value": value, "unit": "bytes", "verdict": "ok", "best_known": 100.0, "evaluations": 10, "seconds": 0.5,
        "trained_on": "nothing", "deterministic": False, "error": "",
    }  # fmt: skip
    if value is None:
        known |= {"verdict": "failed", "evaluations": None, "seconds": None}
    return known | others


def write(
    folder: Path,
    results: Iterable[Mapping[str, Any]],
    points: Iterable[tuple[Mapping[str, Any], list[Any]]] = (),
) -> Path:
    """Writes both tables; of curves each run's ``(evaluations, seconds, value)``."""
    folder.mkdir(exist_ok=True)
    write_table(folder, RESULTS, list(results))
    curves = [
        {column.name: run[column.name] for column in KEY}
        | dict(zip(("evaluations", "seconds", "value"), point, strict=True))
        for run, curve in points
        for point in curve
    ]
    write_table(folder, CURVES, curves)
    return folder


def made() -> list[dict[str, Any]]:
    """Rows of three agents on ``PROBLEMS``."""
    rows = []
    for problem in PROBLEMS:
        rows += [result(problem, "a", 100.0 + 10 * seed, seed) for seed in (0, 1)]
        rows.append(result(problem, "b", 120.0, deterministic=True, evaluations=1))
        rows += [result(problem, "c", 105.0 + 10 * seed, seed) for seed in (0, 1)]
    last = [row for row in rows if row["row"] == "p5" and row["agent"] == "c"]
    last[0].update(value=300.0, verdict="out_of_memory")
    last[1].update(result("p5", "c", None, 1, error="RuntimeError: lost"))
    return rows
