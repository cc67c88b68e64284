"""What the rows of the suites in the manner of REGAL are measured against, and how much BRKGA leaves there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from ... import datasets
from ...datasets import synthetic
from ...datasets.reference import Best, Known, Line, Lines, packaged_best_known
from ...datasets.relatives import relatives
from ...datasets.suites import POPULATIONS, Row, Suite
from ...problems import Objective, Placement
from ...statistics import clustered_mean
from ..reproduce import headroom
from . import best_known
from .reference import Search, Task, polishing
from .regal_suites import SETTINGS, found_by_screening

#: Evaluations of BRKGA that have a column; drawn uniformly, with the settings of the headroom table.
BRKGA = (5_000,)
#: Evaluations of each search for a best-known value where no longer one is stored: moves of orders, and placements.
MOVES = 300_000
EVALUATIONS = {
    Objective.PEAK_MEMORY.value: {"synthetic": 100_000, "real": 20_000},
    Objective.STEP_TIME.value: {"synthetic": 50_000, "real": 20_000},
}


def reference_task(row: Row, evaluations: int | None = None, seconds: float | None = None) -> Task:
    """How the reference line of a row is measured.

    Args:
        row: A row of one of the suites.
        evaluations: Of each search for the best-known value; by default ``MOVES`` or ``EVALUATIONS``.
            Where a longer search is stored there is none.
        seconds: Most seconds of these searches; ``None``: no limit.
    """
    if not row.cluster:
        count = evaluations or MOVES
        searches = [Search("order-search", count), Search("order-annealing", count)]
        known = stored(row) is not None  # orders are worth the same with other costs
        return Task(row, evaluations, seconds, brkga=BRKGA, searches=() if known else tuple(searches))
    count = evaluations or EVALUATIONS[row.objective][row.population]
    temperatures = (0.01, 0.04) if row.objective == Objective.PEAK_MEMORY.value else (0.004, 0.02)
    searches = [
        Search("pair-annealing", count, {"temperature": temperature, "starts": ("single",)})
        for temperature in temperatures
    ]
    if row.population == "real":  # its layers are a structure that moves of single ops do not know
        searches += [Search("annealing", count), polishing(count)]
    known = stored(row) is not None and "costs=bytes" not in row.graph
    return Task(
        row,
        evaluations,
        seconds,
        annealer="pair-annealing",
        brkga=BRKGA,
        searches=() if known else tuple(searches),
    )


# --- What longer searches have found ------------------------------------------------------------------------


def stored(row: Row) -> Known | None:
    """What is stored of the random graph of a row, or of its twin with the other rule of costs."""
    if row.population == "real" or row.objective != Objective.PEAK_MEMORY.value:
        return None
    twin = synthetic.load(row.graph.replace("costs=bytes", "costs=normal")).name
    return _stored().get((twin, row.cluster))


@cache
def _stored() -> dict[tuple[str, str], Known]:
    return {(known.graph, known.cluster): known for known in packaged_best_known()}


def with_known(suite: Suite, rows: Sequence[Row], lines: Sequence[Line]) -> list[Line]:
    """Lines with solutions that are known from elsewhere, where they are better.

    Those are the best-known ones that are stored for peak memory (peaks of orders do not depend on costs, so what is
    known of a random graph holds for its twin with other costs, too; on two devices it is just another solution), and
    what the screening has found.

    Args:
        suite: One of the suites.
        rows: Rows of it.
        lines: The line of each.
    """
    candidates = () if suite.screening is None else suite.screening.candidates
    screened = {candidate.graph: candidate for candidate in candidates}
    better = []
    for row, line in zip(rows, lines, strict=True):
        known = stored(row)
        if known is not None and not line.proven:
            line = _better(
                line, Best.of(row.problem(), known.solution, known.found_by, _evaluations(known), None)
            )
        candidate = screened.get(row.graph)
        if candidate is not None and (line.best is None or candidate.best_known < line.best.value):
            result, evaluations = found_by_screening(row, candidate.found_by)
            solution = result.solution
            if isinstance(solution, Placement):  # transfers are free: their priorities decide nothing
                solution = replace(solution, transfer_priority=None)
            line = _better(line, Best.of(row.problem(), solution, candidate.found_by, evaluations, None))
        better.append(line)
    return better


def _better(line: Line, best: Best) -> Line:
    return replace(line, best=best) if line.best is None or best.value < line.best.value else line


def _evaluations(known: Known) -> int:
    """What the search that found a stored solution was given; see ``opgym reproduce headroom`` and ``best-known``."""
    devices = 2 if known.cluster else 1
    columns = headroom.columns(devices) | headroom.references(devices)
    if known.found_by in columns:
        return columns[known.found_by].evaluations
    return best_known.EVALUATIONS * (1 if known.cluster else best_known.MOVES_PER_SIMULATION)


# --- How much is left ---------------------------------------------------------------------------------------


def report(name: str, suite: Suite | None = None, lines: Lines | None = None) -> dict[str, Any]:
    """How far the columns are above the best-known values on the test of a suite.

    Args:
        name: One of ``SETTINGS``.
        suite: The suite; what comes with opgym by default.
        lines: Its reference lines; what comes with opgym by default.

    Returns:
        ``suite``, ``suite_version``, ``reference_version`` and ``tables``: for each population and role (``"task"`` and
        ``"all"``) the number of ``rows``, of independent ``clusters`` (graphs, or families of real ones, twins as one)
        and of ``proven`` optima, and under ``columns`` of BRKGA, annealing and the best heuristic the mean of
        1 - best known / value with its interval (``left``; without one below ``LEAST_CLUSTERS`` clusters), over the
        rows where it finds something feasible (``feasible``).
    """
    found = datasets.suite(name) if suite is None else suite
    known = datasets.reference.lines(name) if lines is None else lines
    tables = []
    for population in POPULATIONS:
        for role in ("all", "task"):
            rows = [
                row
                for row in found.part("test", population)
                if role in ("all", row.role) and row.name in known.lines
            ]
            if rows:
                tables.append({"population": population, "role": role, **_table(rows, known)})
    return {
        "suite": name,
        "suite_version": found.suite_version,
        "reference_version": known.reference_version,
        "tables": tables,
    }


def _table(rows: Sequence[Row], known: Lines) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    lines = [known[row.name] for row in rows]
    values: dict[str, list[float | None]] = {
        **{f"brkga {count:,}": [line.brkga.get(count) for line in lines] for count in BRKGA},
        **{
            f"annealing {count:,}": [line.annealing[count] for line in lines]
            for count in sorted(lines[0].annealing, reverse=True)
        },
        "best heuristic": [line.best_heuristic for line in lines],
    }
    for column, of_rows in values.items():
        left, cluster = [], []
        for row, line, value in zip(rows, lines, of_rows, strict=True):
            if value is not None and line.best is not None:
                left.append(1 - line.best.value / value)
                cluster.append(relatives(row.graph).twins)
        mean = clustered_mean(left, cluster).document() if left else None
        columns[column] = {"feasible": len(left), "left": mean}
    return {
        "rows": len(rows),
        "clusters": len({relatives(row.graph).twins for row in rows}),
        "proven": sum(line.proven for line in lines),
        "columns": columns,
    }


def report_all() -> list[dict[str, Any]]:
    """:func:`report` of each suite, as it comes with opgym."""
    return [report(name) for name in SETTINGS]
