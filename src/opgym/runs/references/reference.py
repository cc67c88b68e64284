"""What the rows of a suite are measured against: ``opgym datasets reference``.

Heuristics and annealing with few evaluations never see a clock, so their values are the same on every machine. The
searches that make the best-known value may be given a limit of seconds; a line says under which one it was found.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from ...agents import Result, make, names
from ...agents.registry import HEURISTICS, family, solver_class
from ...datasets.reference import Best, Line, Lines, load_named, versions
from ...datasets.suites import Row, Suite
from ...errors import InvalidDatasetError, InvalidProblemError
from ...problems import Budget, Objective, PlacementProblem, SchedulingProblem
from ..parallel import in_order
from ..row_file import RowFile

#: Raised when what a row of the row file holds changes its meaning: rows of other versions are measured anew.
ROW_VERSION = 1
#: Evaluations of annealing that have a column of their own.
ANNEALING = (100, 5_000)
#: Evaluations of each search for the best-known value: those of placements simulate the whole graph.
ORDER_EVALUATIONS, PLACEMENT_EVALUATIONS = 200_000, 50_000
#: Memory for failed sets of the exact search: with it, where the search ends does not depend on the machine.
_PROOF_BYTES = 2**27
_POLISHER = "pair-annealing"
#: Low, since what is polished is good: as a share of its value.
_POLISHING_TEMPERATURE = 0.0005

Problem = SchedulingProblem | PlacementProblem


@dataclass(frozen=True)
class Search:
    """One search for a best-known value.

    Attributes:
        solver: Name of the solver.
        evaluations: Its budget; ``None``: it stops by itself.
        options: Its options.
        seed: Of its generator.
        polishes: Whether it starts from the best solution so far; the solver has an option ``start``.
    """

    solver: str
    evaluations: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    polishes: bool = False


def searches(problem: Problem, evaluations: int | None = None) -> list[Search]:
    """What searches a problem for its best-known value, beside heuristics and annealing with few evaluations.

    Placements: annealing with and without the structure of the network, and then, where the order matters, annealing
    of single ops and priorities from the better of the two on.
    """
    if isinstance(problem, SchedulingProblem):
        count = evaluations or ORDER_EVALUATIONS
        return [
            Search("order-search", count),
            Search("order-annealing", count),
            Search("dp-order", None, {"max_bytes": _PROOF_BYTES}),
        ]
    count = evaluations or PLACEMENT_EVALUATIONS
    found = [Search("annealing", count), Search("annealing-metis", count), polishing(count)]
    if problem.objective is Objective.MAX_LOAD:
        found.append(Search("dp"))
    return [search for search in found if make(search.solver).skip_reason(problem) is None]


def named_searches(
    row: Row, solvers: Sequence[str], evaluations: int | None = None, seed: int = 0
) -> tuple[Search, ...]:
    """Searches of a row by the names of their solvers; the one that polishes starts from the best so far.

    Raises:
        UnknownIdError: With the nearest names.
    """
    count = evaluations or (PLACEMENT_EVALUATIONS if row.cluster else ORDER_EVALUATIONS)
    return tuple(
        polishing(count, seed=seed)
        if name == _POLISHER
        else Search(name, count if solver_class(name).anytime else None, seed=seed)
        for name in solvers
    )


def polishing(evaluations: int, temperature: float = _POLISHING_TEMPERATURE, seed: int = 0) -> Search:
    """Improves the best placement so far, op by op."""
    options = {"groups": "op", "temperature": temperature}
    return Search(_POLISHER, evaluations, options, seed, polishes=True)


#: What the key of a task has that columns do not depend on.
_OF_SEARCHES = ("evaluations", "seconds", "searches")


@dataclass(frozen=True)
class Task:
    """One row of a suite, and how long it is searched.

    Attributes:
        row: The row.
        evaluations: Of each search; ``None``: as many as its type of problem gets.
        seconds: Most wall time of all searches of the row; ``None``: no limit.
        annealer: Solver of the columns of annealing; ``None``: that of its type of problem.
        brkga: Evaluations of BRKGA that have a column of their own.
        searches: What searches for the best-known value; ``None``: :func:`searches` of its type of problem.
        known: The line that earlier runs made of the row, whose columns are then not measured again, and whose best
            value and bound stay where nothing better is found.
    """

    row: Row
    evaluations: int | None = None
    seconds: float | None = None
    annealer: str | None = None
    brkga: tuple[int, ...] = ()
    searches: tuple[Search, ...] | None = None
    known: Line | None = None

    @property
    def key(self) -> dict[str, Any]:
        """What a stored row must share to stand for this task."""
        key = {"version": ROW_VERSION, **asdict(replace(self, known=None))}
        del key["known"]
        for what in ("part", "role"):  # they decide nothing about the problem
            del key["row"][what]
        for what in (
            "annealer",
            "brkga",
            "searches",
        ):  # rows of tasks without them were stored before they existed
            if not key[what]:
                del key[what]
        for search in key.get("searches", ()):
            for what in ("seed", "polishes"):  # nor did these
                if not search[what]:
                    del search[what]
        return key

    @property
    def columns_key(self) -> dict[str, Any]:
        """What a stored row must share to have the same columns, whatever searched for its best-known value."""
        return {key: value for key, value in self.key.items() if key not in _OF_SEARCHES}


def measure(task: Task) -> dict[str, Any]:
    """Runs everything on one row.

    Returns:
        ``{task, line, seconds}``, the line as a row of a file of reference lines.
    """
    began = time.perf_counter()
    problem = task.row.problem()
    bound = problem.lower_bound()
    value, proved_by = float(bound.value), f"bound: {bound.name}"
    best: Best | None = None

    def offer(
        result: Result[Any], evaluations: int, seconds: float | None, started_from: Best | None = None
    ) -> float | None:
        """Keeps what is better; the value, if it is feasible."""
        nonlocal best
        if not result.outcome.ok:
            return None
        if best is None or result.outcome.value < best.value:
            found_by = result.solver
            if started_from is not None:
                found_by += f" from {started_from.found_by}"
                evaluations += started_from.evaluations
            best = Best.of(problem, result.solution, found_by, evaluations, seconds)
        return float(result.outcome.value)

    heuristics: dict[str, float | None] = {}
    annealing: dict[int, float | None] = {}
    brkga: dict[int, float | None] = {}
    if task.known is not None:
        heuristics, best = dict(task.known.heuristics), task.known.best
        annealing, brkga = dict(task.known.annealing), dict(task.known.brkga)
        searched = task.known.searched
        if task.known.bound > value:
            value, proved_by = task.known.bound, task.known.bound_by
    else:
        for name in heuristic_names(type(problem)):
            result = run_search(problem, Search(name), None)
            heuristics[name] = None if result is None else offer(result, result.evaluations, None)
        annealer = task.annealer or (
            "order-annealing" if isinstance(problem, SchedulingProblem) else "annealing"
        )
        for count in ANNEALING:
            result = run_search(problem, Search(annealer, count), None)
            annealing[count] = None if result is None else offer(result, count, None)
        for count in task.brkga:
            result = run_search(problem, Search("brkga", count), None)
            brkga[count] = None if result is None else offer(result, count, None)
        searched = sum(ANNEALING) + sum(task.brkga)
    until = None if task.seconds is None else time.perf_counter() + task.seconds
    todo = searches(problem, task.evaluations) if task.searches is None else task.searches
    for position, search in enumerate(todo):
        if best is not None and best.value <= value:
            break  # proven: nothing is left to find
        # What is left is shared evenly, and what one does not use is for the next.
        seconds = None if until is None else (until - time.perf_counter()) / (len(todo) - position)
        polished = best if search.polishes else None
        result = run_search(problem, search, seconds, polished)
        if result is None:
            continue
        offer(result, search.evaluations or result.evaluations, task.seconds, polished)
        searched += result.evaluations
        if solver_class(search.solver).proves and result.bound is not None and result.bound > value:
            value, proved_by = float(result.bound), search.solver
    ops = len(problem.ops) if isinstance(problem, SchedulingProblem) else problem.graph.num_ops
    unit = problem.unit if isinstance(problem, SchedulingProblem) else bound.unit
    line = Line(
        task.row.name, task.row.fingerprint, ops, unit, value, proved_by, heuristics, annealing, best, brkga,
        searched,
    )  # fmt: skip
    if best is not None and best.value < value:
        raise InvalidDatasetError(
            f"{task.row.name}: {best.found_by} has {best.value:g}, below {value:g} by {proved_by}; one of them errs, "
            "please report it"
        )
    return {"task": task.key, "line": line.row(), "seconds": time.perf_counter() - began}


def heuristic_names(problem_type: type[Any]) -> list[str]:
    """Rules that stop by themselves."""
    return [
        name
        for name in names(problem_type)
        if family(name) == HEURISTICS and not solver_class(name).anytime and not solver_class(name).control
    ]


def run_search(
    problem: Problem, search: Search, seconds: float | None, start: Best | None = None
) -> Result[Any] | None:
    """The result of a search; ``None`` where its solver does not apply, or has nothing to polish."""
    if search.polishes and start is None:
        return None
    given = {} if start is None else {"start": start.solution}
    solver = make(search.solver, **search.options, **given)
    if solver.skip_reason(problem) is not None:
        return None
    budget = Budget(search.evaluations, None if seconds is None else max(seconds, 0.0))
    try:
        return solver.solve(problem, budget, np.random.default_rng(search.seed))
    except InvalidProblemError:  # it found out on its way that it cannot start
        return None


def lines_of(
    tasks: Sequence[Task],
    rows_path: Path | None = None,
    workers: int = 1,
    progress: Callable[[int, int, str], None] | None = None,
) -> list[Line]:
    """The lines of tasks, those measured that no earlier run has; what one has of their rows is taken up.

    Args:
        tasks: What to measure.
        rows_path: File of rows, of earlier runs too; ``None``: nothing is stored.
        workers: Processes; without a limit of seconds the lines do not depend on how many.
        progress: Told how many of how many tasks are done, and the name of the last.
    """
    file = RowFile(rows_path)
    rows = [row for row in file.rows if isinstance(row.get("task"), dict) and "line" in row]
    done = {_identity(row["task"]): row for row in rows}
    known = _known_columns(list(done.values()), str(rows_path))
    missing = [
        replace(task, known=known.get(_identity(task.columns_key)))
        for task in tasks
        if _identity(task.key) not in done
    ]
    report = progress or (lambda done, total, name: None)
    count = len(tasks) - len(missing)
    report(count, len(tasks), "")
    for row in in_order(measure, missing, workers):
        file.append(row)
        done[_identity(row["task"])] = json.loads(json.dumps(row))
        count += 1
        report(count, len(tasks), row["line"]["problem"])
    return [
        Line.from_row(done[_identity(task.key)]["line"], f"{rows_path}: {task.row.name}") for task in tasks
    ]


def _known_columns(rows: Sequence[Mapping[str, Any]], where: str) -> dict[str, Line]:
    """What stored rows have of the same columns, joined."""
    known: dict[str, Line] = {}
    for row in rows:
        key = _identity({key: value for key, value in row["task"].items() if key not in _OF_SEARCHES})
        line = Line.from_row(row["line"], where)
        known[key] = known[key].joined(line) if key in known else line
    return known


def _identity(key: Any) -> str:
    return json.dumps(key, sort_keys=True)


@dataclass(frozen=True)
class Settled:
    """Lines that are ready to be written.

    Attributes:
        lines: All lines, in the version that they belong to.
        added: Names of problems that had no line.
        changed: Names of problems whose line is another one than in the version before.
        improved: Those of them whose best-known value is better.
    """

    lines: Lines
    added: tuple[str, ...]
    changed: tuple[str, ...]
    improved: tuple[str, ...]


def settle(suite: Suite, measured: Sequence[Line], base: Lines | None) -> Settled:
    """Puts what was measured beside what was published; a published line never changes within its version.

    Args:
        suite: The suite.
        measured: Lines of some of its rows, or of all.
        base: What was published; lines of rows that the suite has no more are left out, which is a change.

    Raises:
        InvalidDatasetError: A value is below a bound that was proven: one of the two is wrong.
    """
    old = dict(base.lines) if base is not None else {}
    new = dict(old)
    added: list[str] = []
    changed: list[str] = []
    improved: list[str] = []
    for line in measured:
        known = old.get(line.problem)
        if known is None or known.fingerprint != line.fingerprint:
            new[line.problem] = line
            (added if known is None else changed).append(line.problem)
            continue
        joined = known.joined(line)
        if joined.best is not None and joined.best.value < joined.bound:
            raise InvalidDatasetError(
                f"{line.problem}: a value of {joined.best.value:g} by {joined.best.found_by} is below the bound of "
                f"{joined.bound:g} by {joined.bound_by}; one of them errs, please report it"
            )
        if replace(joined, searched=known.searched).row() != known.row():
            new[line.problem] = joined
            changed.append(line.problem)
            if joined.best is not known.best:
                improved.append(line.problem)
    ordered = {row.name: new[row.name] for row in suite.rows if row.name in new}
    changed += [name for name in old if name not in ordered]
    version = 1 if base is None else base.reference_version + bool(changed)
    lines = Lines(suite.name, suite.suite_version, version, ordered)
    return Settled(lines, tuple(added), tuple(changed), tuple(improved))


def published(suite: str, *folders: Path) -> Lines | None:
    """The newest lines of a suite in any of some folders; ``None`` where there are none."""
    found = {version: path for folder in folders for version, path in versions(suite, folder).items()}
    return load_named(found[max(found)]) if found else None
