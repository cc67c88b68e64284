"""Compares agents on problems at an equal number of evaluations: ``opgym evaluate``.

Every agent gets the same budget, its solutions are judged again by code that it never sees, and whatever it does on
one problem costs no other its result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ...errors import InvalidProblemError
from ..parallel import Died, as_they_finish
from ..row_file import RowFile
from .cases import Case
from .contestants import Contestant
from .measuring import Run, died, measure
from .result_tables import (
    CURVES,
    FAILED,
    KEY,
    LEAST_NUMBER,
    MOST_AGENTS,
    MOST_CHARACTERS,
    MOST_NUMBER,
    MOST_PROBLEMS,
    MOST_SEEDS,
    MOST_WHOLE,
    NOT_APPLICABLE,
    RESULT_COLUMNS,
    RESULTS,
    read_table,
    require_pyarrow,
    write_table,
)

ROWS = "rows.jsonl"


@dataclass(frozen=True)
class Comparison:
    """What is to be run.

    Attributes:
        cases: The problems.
        contestants: The agents.
        budget: Most evaluations of each agent on each problem.
        seeds: Seeds of each agent on each problem; one that draws no random number runs the first of them only.
        seconds: Most seconds of each run, for agents that no number of evaluations stops; ``None``: no limit.

    Raises:
        InvalidProblemError: One of them is empty, or out of range.
    """

    cases: Sequence[Case]
    contestants: Sequence[Contestant]
    budget: int
    seeds: Sequence[int]
    seconds: float | None = None

    def __post_init__(self) -> None:
        if not self.cases or not self.contestants:
            raise InvalidProblemError("nothing to compare; expected at least one problem and one agent")
        # What tables could not hold, or a report not compare, is said before hours of work and not after them.
        for what, count, most in (
            ("problems", len(self.cases), MOST_PROBLEMS),
            ("agents", len(self.contestants), MOST_AGENTS),
            ("seeds", len(self.seeds), MOST_SEEDS),
        ):
            if count > most:
                raise InvalidProblemError(f"{count} {what}; at most {most} are compared")
        names = [*(case.row.name for case in self.cases), *(agent.name for agent in self.contestants)]
        longest = max(names, key=len)
        if len(longest) > MOST_CHARACTERS:
            raise InvalidProblemError(
                f"{longest[:60]}...: a name of {len(longest)} characters; at most {MOST_CHARACTERS} are stored"
            )
        if not 1 <= self.budget <= MOST_WHOLE:
            raise InvalidProblemError(f"a budget of {self.budget} evaluations; expected 1 .. {MOST_WHOLE}")
        if not self.seeds or len(set(self.seeds)) < len(self.seeds) or min(self.seeds) < 0:
            raise InvalidProblemError(f"seeds {list(self.seeds)}; expected different whole numbers from 0 on")
        if max(self.seeds) > MOST_WHOLE:
            raise InvalidProblemError(f"seed {max(self.seeds)}; expected at most {MOST_WHOLE}")
        if self.seconds is not None and not LEAST_NUMBER <= self.seconds <= MOST_NUMBER:
            raise InvalidProblemError(
                f"{self.seconds} seconds; expected more than 0, at most {MOST_NUMBER}, or no limit"
            )

    def first_runs(self) -> list[Run]:
        """Each agent on each problem with the first seed; problem by problem, so that each is read once."""
        return [
            Run(case, contestant, self.seeds[0], self.budget, self.seconds)
            for case in self.cases
            for contestant in self.contestants
        ]

    def other_seeds(self, run: Run, row: dict[str, Any]) -> list[Run]:
        """What is left to run of an agent on a problem, now that its first seed is known."""
        if run.seed != self.seeds[0] or row["result"]["deterministic"]:
            return []
        return [replace(run, seed=seed) for seed in self.seeds[1:]]


@dataclass(frozen=True)
class Evaluated:
    """What came of a comparison.

    Attributes:
        results: Rows of the table of results, in the order of problems, agents and seeds.
    """

    results: list[dict[str, Any]]

    @property
    def failed(self) -> list[dict[str, Any]]:
        """Rows without a result, because the agent broke, lied or could not be made."""
        return [row for row in self.results if row["verdict"] == FAILED]

    @property
    def applicable(self) -> list[dict[str, Any]]:
        """Rows of agents that apply to their problem."""
        return [row for row in self.results if row["verdict"] != NOT_APPLICABLE]


def evaluate(
    comparison: Comparison,
    folder: Path | None = None,
    workers: int = 1,
    progress: Callable[[int, int, str], None] | None = None,
    complain: Callable[[str], None] | None = None,
) -> Evaluated:
    """Runs all of a comparison that an earlier run has not done, and writes its tables.

    Args:
        comparison: What to run.
        folder: Existing folder for ``rows.jsonl`` (a line per run, as soon as it is done; another run goes on with
            what is there, and does again what failed) and, in the end, for ``results.parquet`` and
            ``curves.parquet``; ``None``: nothing is stored.
        workers: Processes; values do not depend on how many, unless there is a limit of seconds.
        progress: Told how many of how many runs are done, and the name of the last.
        complain: Told at once of a run that failed.

    Raises:
        OpgymError: The rows of the folder are damaged, or less than one worker.
        MissingExtraError: pyarrow is not installed and there is a folder.
    """
    if folder is not None:
        require_pyarrow()  # found missing now, not after hours
    file = RowFile(None if folder is None else folder / ROWS)
    say, report = complain or (lambda text: None), progress or (lambda done, total, name: None)
    known, missing = _split(comparison, file.rows)
    others = len(comparison.seeds) - 1
    count = len(known)
    # Until an agent is known to draw no random numbers, it is expected to.
    total = count + len(missing) + others * sum(run.seed == comparison.seeds[0] for run in missing)
    report(count, total, "")
    for run, found in as_they_finish(measure, missing, workers, comparison.other_seeds):
        row = died(run, found) if isinstance(found, Died) else found
        file.append(row)
        known[run.key] = row
        count += 1
        if run.seed == comparison.seeds[0]:
            total -= others - len(comparison.other_seeds(run, row))
        if row["result"]["verdict"] == FAILED:
            say(f"{run.label}: {row['result']['error']}")
        report(count, total, run.label)

    rows = _in_order(comparison, known)
    if folder is not None:
        write_table(folder, RESULTS, [row["result"] for row in rows])
        write_table(folder, CURVES, _curve_rows(rows))
    return Evaluated([row["result"] for row in rows])


def stored_results(comparison: Comparison, folder: Path) -> list[dict[str, Any]] | None:
    """The rows of the table of results of a comparison that is all done.

    Returns:
        The rows; ``None``: some runs are missing, or have failed.

    Raises:
        ImportFailedError: The rows of the folder are damaged.
        InvalidDatasetError: One of the two tables is missing or damaged.
    """
    known, missing = _split(comparison, RowFile(folder / ROWS).rows)
    if missing:
        return None
    for name in (RESULTS, CURVES):
        read_table(folder, name)
    return [row["result"] for row in _in_order(comparison, known)]


def _split(
    comparison: Comparison, rows: Sequence[dict[str, Any]]
) -> tuple[dict[str, dict[str, Any]], list[Run]]:
    """Rows that stand for runs of a comparison, by their keys, and the runs that have none."""
    done = {row["run"]: row for row in rows if _is_done(row)}
    known: dict[str, dict[str, Any]] = {}
    missing: list[Run] = []
    todo = comparison.first_runs()
    while todo:  # what earlier runs have says which other seeds there are to run
        run = todo.pop()
        row = done.get(run.key)
        if row is None:
            missing.append(run)
        else:
            known[run.key] = row
            todo += comparison.other_seeds(run, row)
    missing.reverse()
    return known, missing


def _in_order(comparison: Comparison, known: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows of all runs by problem, agent and seed."""
    return [
        known[each.key]
        for run in comparison.first_runs()
        for each in (run, *comparison.other_seeds(run, known[run.key]))
    ]


def _is_done(row: dict[str, Any]) -> bool:
    """Whether a stored row has a result, with all columns of this version and no others."""
    result, curve = row.get("result"), row.get("curve")
    if not isinstance(row.get("run"), str) or not isinstance(result, dict) or not isinstance(curve, list):
        return False
    return result.keys() == {column.name for column in RESULT_COLUMNS} and result["verdict"] != FAILED


def _curve_rows(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {column.name: row["result"][column.name] for column in KEY}
        | dict(zip(("evaluations", "seconds", "value"), point, strict=True))
        for row in rows
        for point in row["curve"]
    ]
