"""Compares agents on problems at an equal number of evaluations: ``opgym evaluate``.

Every agent gets the same budget, its solutions are judged again by code that it never sees, and whatever it does on
one problem costs no other its result.
"""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ...agents import Solver
from ...agents.learner import Learner
from ...errors import InvalidProblemError
from ...problems import Budget, Progress
from ..parallel import Died, as_they_finish
from ..row_file import RowFile
from .cases import Case
from .contestants import Contestant
from .judging import Posed, feasible_points, judged, posed_case
from .result_tables import (
    CURVES,
    FAILED,
    KEY,
    NOT_APPLICABLE,
    NOTHING,
    OTHER_GRAPHS,
    RESULT_COLUMNS,
    RESULTS,
    THIS_GRAPH,
    UNKNOWN_GRAPHS,
    read_table,
    require_pyarrow,
    write_table,
)

#: Raised when what a stored row holds changes its meaning: rows of other versions are measured anew.
ROW_VERSION = 2
ROWS = "rows.jsonl"
_MOST_CHARACTERS = 500


@dataclass(frozen=True)
class Run:
    """One agent on one problem with one seed.

    Attributes:
        case: The problem.
        contestant: The agent.
        seed: Of its generator.
        budget: Most evaluations.
        seconds: Most seconds of wall time; ``None``: no limit, and then the result does not depend on the machine.
    """

    case: Case
    contestant: Contestant
    seed: int
    budget: int
    seconds: float | None

    @property
    def key(self) -> str:
        """What a stored row must share to stand for this run; part and role of a row decide nothing."""
        case = asdict(self.case)
        for what in ("part", "role"):
            del case["row"][what]
        return json.dumps(
            {
                "version": ROW_VERSION,
                "case": case,
                "agent": self.contestant.name,
                "options": self.contestant.digest,
                "seed": self.seed,
                "budget": self.budget,
                "seconds": self.seconds,
            },
            sort_keys=True,
        )

    @property
    def label(self) -> str:
        """What progress bars and messages call it."""
        return f"{self.contestant.name} on {self.case.row.name}, seed {self.seed}"


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
        if self.budget < 1:
            raise InvalidProblemError(f"a budget of {self.budget} evaluations; expected at least 1")
        if not self.seeds or len(set(self.seeds)) < len(self.seeds) or min(self.seeds) < 0:
            raise InvalidProblemError(f"seeds {list(self.seeds)}; expected different whole numbers from 0 on")
        if self.seconds is not None and not self.seconds > 0:
            raise InvalidProblemError(f"{self.seconds} seconds; expected more than 0, or no limit")

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
        row = _died(run, found) if isinstance(found, Died) else found
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


def measure(run: Run) -> dict[str, Any]:
    """Runs one agent once; whatever it does, there is a row.

    Returns:
        ``{run, result, curve, trace}``: the key of the run, the row of the table of results, the points of its curve
        as lists of evaluations, seconds and value, and the traceback of an error.
    """
    result = _unmeasured(run)
    curve: list[list[float]] = []
    trace = ""
    try:
        posed = posed_case(run.case)
        result |= {"unit": posed.unit, "bound": posed.bound, "reference": posed.reference}
        solver = run.contestant.make()
        result["trained_on"] = _trained_on(solver, posed.problem.graph.fingerprint)
        reason = solver.skip_reason(posed.problem)
        if reason is not None:
            result |= {"verdict": NOT_APPLICABLE, "error": reason, "deterministic": True}
        else:
            _solve(run, solver, posed, result, curve)
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:  # also SystemExit: an agent may be third-party
        result |= _failure(f"{type(error).__name__}: {error}")
        trace = traceback.format_exc()
    return {"run": run.key, "result": result, "curve": curve, "trace": trace}


def _solve(
    run: Run, solver: Solver[Any, Any], posed: Posed, result: dict[str, Any], curve: list[list[float]]
) -> None:
    """Runs the agent, judges what it returns, and fills in its row."""
    rng = np.random.default_rng(run.seed)
    before = _state(rng)
    spent = 0

    def count(progress: Progress) -> None:
        nonlocal spent
        spent = progress.evaluations

    try:
        found = solver.solve(posed.problem, Budget(run.budget, run.seconds), rng, count)
    except InvalidProblemError as error:
        if spent:
            raise  # it did start, so the problem is not what is wrong
        result |= {"verdict": NOT_APPLICABLE, "error": _line(str(error)), "deterministic": True}
        return
    outcome = judged(posed, found, run.budget)
    value = float(outcome.value) if np.isfinite(outcome.value) else None
    peaks = outcome.details.get("peak_bytes")
    result |= {
        "value": value,
        "verdict": outcome.verdict.value,
        "evaluations": found.evaluations,
        "seconds": found.seconds,
        "peak_bytes": None if peaks is None else int(max(peaks)),
        "step_time_ns": outcome.details.get("step_time_ns"),
        "deterministic": _state(rng) == before,
    }
    if outcome.ok:
        for what in ("bound", "best_known", "reference"):
            result[f"ratio_to_{what}"] = _ratio(value, result[what])
    else:
        result["error"] = _line(str(outcome.details.get("reason", "")))
    curve += [[point.evaluations, point.seconds, point.value] for point in feasible_points(found.curve)]


def _trained_on(solver: Solver[Any, Any], fingerprint: str) -> str:
    """What an agent has learned from, seen from a graph."""
    if not isinstance(solver, Learner) or not solver.trained:
        return NOTHING
    if solver.trained_on is None:
        return UNKNOWN_GRAPHS
    return THIS_GRAPH if fingerprint in solver.trained_on else OTHER_GRAPHS


def _unmeasured(run: Run) -> dict[str, Any]:
    """The row of a run as far as it is known without running it."""
    case = run.case
    return {
        "suite": case.suite,
        "row": case.row.name,
        "graph": case.row.graph,
        "family": case.family,
        "twins": case.twins,
        "cluster": case.row.cluster,
        "objective": case.row.objective,
        "agent": run.contestant.name,
        "options": run.contestant.digest,
        "seed": run.seed,
        "budget": run.budget,
        "seconds_limit": None if run.seconds is None else float(run.seconds),
        "value": None,
        "unit": "",
        "verdict": FAILED,
        "bound": case.bound,
        "best_known": case.best_known,
        "reference": None,
        "ratio_to_bound": None,
        "ratio_to_best_known": None,
        "ratio_to_reference": None,
        "evaluations": None,
        "seconds": None,
        "peak_bytes": None,
        "step_time_ns": None,
        "trained_on": NOTHING,
        "deterministic": False,
        "error": "",
    }


def _failure(error: str) -> dict[str, Any]:
    nothing = ("value", "evaluations", "seconds", "peak_bytes", "step_time_ns", "ratio_to_bound",
               "ratio_to_best_known", "ratio_to_reference")  # fmt: skip
    return {
        "verdict": FAILED,
        "error": _line(error),
        "deterministic": False,
        **dict.fromkeys(nothing),
    }


def _died(run: Run, died: Died) -> dict[str, Any]:
    result = _unmeasured(run) | _failure(died.reason)
    return {"run": run.key, "result": result, "curve": [], "trace": ""}


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


def _ratio(value: float | None, of: float | None) -> float | None:
    return value / of if value is not None and of else None


def _state(rng: np.random.Generator) -> str:
    """All that drawing from a generator, or spawning others from it, changes."""
    return f"{rng.bit_generator.state} {getattr(rng.bit_generator.seed_seq, 'n_children_spawned', 0)}"


def _line(text: str) -> str:
    """An error on one line, of a length that a table can show."""
    return " ".join(text.split())[:_MOST_CHARACTERS]
