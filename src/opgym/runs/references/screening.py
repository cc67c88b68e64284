"""The suites whose rows are found by search: ``opgym datasets screen``.

Both look at the same graphs with the same searches, so one measurement serves both, and its lines are the first
reference lines of their rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from ...datasets import zoo
from ...datasets.reference import Line
from ...datasets.suites import Candidate, Row, Screening, Suite
from ...datasets.suites.roles import LEAST_GAP
from ...datasets.zoo.manifest import Entry
from ...problems import Objective
from .reference import ORDER_EVALUATIONS, Task, lines_of

#: Larger graphs are not looked at: exact search is out of reach there within seconds.
MOST_OPS = 5_000
#: Smaller graphs are no test of an exact solver.
LEAST_EXACT_OPS = 100
#: Most seconds of search on one graph.
SECONDS = 12.0


@dataclass(frozen=True)
class Rule:
    """What makes a graph a row.

    Attributes:
        summary: What the suite is for.
        text: The rule in words.
        accepts: The rule.
    """

    summary: str
    text: str
    accepts: Callable[[Line], bool]


def _leaves_a_gap(line: Line) -> bool:
    return line.gap is not None and line.gap >= LEAST_GAP


def _is_proven(line: Line) -> bool:
    return line.proven and line.ops >= LEAST_EXACT_OPS


RULES: Mapping[str, Rule] = MappingProxyType(
    {
        "memory-order": Rule(
            "orders of one device where search finds a lower peak than every heuristic",
            f"real graphs of at most {MOST_OPS:,} ops where the best heuristic's peak is at least "
            f"{LEAST_GAP:.0%} above the best known one; parts are the zoo's splits",
            _leaves_a_gap,
        ),
        "small-exact": Rule(
            "orders of one device whose least peak is proven",
            f"real graphs of {LEAST_EXACT_OPS} to {MOST_OPS:,} ops whose least peak is proven within seconds, by a "
            f"bound that an order meets or by exact search; `control` where the best heuristic is within "
            f"{LEAST_GAP:.0%} of it; parts are the zoo's splits",
            _is_proven,
        ),
    }
)


def candidates(most_ops: int = MOST_OPS) -> list[Entry]:
    """The graphs that are looked at."""
    return [entry for _, entry in sorted(zoo.manifest().entries.items()) if entry.ops <= most_ops]


def order_row(entry: Entry, role: str) -> Row:
    """The problem of a graph: the order of one device."""
    return Row(
        zoo.PREFIX + entry.name, entry.fingerprint, "", Objective.PEAK_MEMORY.value, None, entry.split, role
    )


def screen(
    entries: Sequence[Entry],
    rows_path: Path | None = None,
    *,
    seconds: float | None = SECONDS,
    evaluations: int | None = None,
    workers: int = 1,
    progress: Callable[[int, int, str], None] | None = None,
) -> list[Line]:
    """Searches every graph.

    Args:
        entries: Graphs of the zoo.
        rows_path: File of rows, of earlier runs too; ``None``: nothing is stored.
        seconds: Most seconds of search on one graph; ``None``: until the exact search has spent its memory.
        evaluations: Of each search.
        workers: Processes.
        progress: Told how many of how many graphs are done, and the name of the last.
    """
    tasks = [Task(order_row(entry, "unscreened"), evaluations, seconds) for entry in entries]
    return lines_of(tasks, rows_path, workers, progress)


def method(seconds: float | None = SECONDS, evaluations: int | None = None) -> str:
    """What :func:`screen` does, in words."""
    limit = "without a limit of seconds" if seconds is None else f"at most {seconds:g} seconds in all"
    return (
        f"heuristics; order-annealing with 100 and 5,000 evaluations; order-search and order-annealing with "
        f"{evaluations or ORDER_EVALUATIONS:,} each, then dp-order: {limit}; nothing more once the optimum is proven"
    )


def suite_of(name: str, entries: Sequence[Entry], lines: Sequence[Line], how: str, version: int = 1) -> Suite:
    """The suite of what was found.

    Args:
        name: One of ``RULES``.
        entries: The graphs that were searched.
        lines: What was found of each.
        how: :func:`method` of the search.
        version: Of the suite.
    """
    rule = RULES[name]
    rows, looked_at = [], []
    for entry, line in zip(entries, lines, strict=True):
        accepted = rule.accepts(line)
        if accepted:
            rows.append(order_row(entry, "task" if _leaves_a_gap(line) else "control"))
        assert line.best is not None  # every order fits
        assert line.best_heuristic is not None
        looked_at.append(
            Candidate(
                zoo.PREFIX + entry.name, line.fingerprint, line.ops, line.best_heuristic, line.best.value,
                line.best.found_by, line.bound, line.bound_by, accepted,
            )
        )  # fmt: skip
    screening = Screening(how, tuple(looked_at))
    return Suite(name, version, rule.summary, rule.text, tuple(rows), screening)
