"""Whether reference lines hold: for the rows that they say they are of, and their solutions when evaluated again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ...errors import OpgymError
from ...problems import PlacementProblem, SchedulingProblem
from ..suites import Row, Suite
from ..zoo.verification import Finding
from .suite_lines import Line, Lines

#: How lines name a bound of the problem itself; others were proven by solvers, and are believed.
_BOUND = "bound: "

Problem = SchedulingProblem | PlacementProblem


def verify_lines(
    suite: Suite,
    lines: Lines,
    progress: Callable[[int, int, str], None] | None = None,
    more: Callable[[Problem, Line], Sequence[str]] | None = None,
) -> list[Finding]:
    """Poses the problem of every line, evaluates its solution and recomputes its bound.

    Args:
        suite: The suite as it is now.
        lines: Its reference lines.
        progress: Called with the number of lines checked, that of all, and the name of the last.
        more: Further checks of a line; what is wrong with it.

    Returns:
        What is wrong, by line; rows that have no line are nothing wrong.
    """
    findings = []
    if lines.suite != suite.name or lines.suite_version != suite.suite_version:
        findings.append(
            Finding(
                lines.file_name,
                f"is of {lines.suite}, version {lines.suite_version}; the suite is {suite.name}, version "
                f"{suite.suite_version}",
            )
        )
    rows = {row.name: row for row in suite.rows}
    for i, line in enumerate(lines, 1):
        problems = _problems(rows.get(line.problem), line, more)
        findings += [Finding(lines.file_name, f"{line.problem}: {problem}") for problem in problems]
        if progress is not None:
            progress(i, len(lines), line.problem)
    return findings


def _problems(
    row: Row | None, line: Line, more: Callable[[Problem, Line], Sequence[str]] | None
) -> Iterator[str]:
    if row is None:
        yield "is stale: the suite has no such row"
        return
    if row.fingerprint != line.fingerprint:
        yield (
            f"is stale: it is of a graph with fingerprint {line.fingerprint[:16]}..., the row's is "
            f"{row.fingerprint[:16]}..."
        )
        return
    try:
        problem = row.problem()
    except OpgymError as error:
        yield str(error)
        return
    yield from _contradictions(line)
    yield from _wrong_bound(problem, line)
    ops = len(problem.ops) if isinstance(problem, SchedulingProblem) else problem.graph.num_ops
    if line.ops != ops:
        yield f"ops is {line.ops}; it should be {ops}"
    unit = problem.unit if isinstance(problem, SchedulingProblem) else problem.lower_bound().unit
    if line.unit != unit:
        yield f"unit is {line.unit!r:.40}; it should be {unit!r}"
    if line.best is not None:
        try:
            outcome = problem.evaluate(line.best.solution)  # type: ignore[arg-type]
        except (OpgymError, IndexError, ValueError) as error:  # e.g. a solution of another graph
            yield f"its best solution cannot be evaluated: {error}"
        else:
            if not outcome.ok:
                yield f"its best solution is {outcome.verdict}"
            elif outcome.value != line.best.value:
                yield f"its best solution is worth {outcome.value:g}; the line says {line.best.value:g}"
    if more is not None:
        yield from more(problem, line)


def _contradictions(line: Line) -> Iterator[str]:
    """Columns that are below the bound, or better than the best."""
    columns = {
        **line.heuristics,
        **{f"annealing {count}": value for count, value in line.annealing.items()},
        **{f"brkga {count}": value for count, value in line.brkga.items()},
    }
    for name, value in columns.items():
        if value is None:
            continue
        if value < line.bound:
            yield f"{name} has {value:g}, below the bound of {line.bound:g}"
        if line.best is None or value < line.best.value:
            best = "nothing" if line.best is None else f"{line.best.value:g}"
            yield f"{name} has {value:g}, and the best known is {best}"


def _wrong_bound(problem: Problem, line: Line) -> Iterator[str]:
    bound = problem.lower_bound()
    if line.bound_by.startswith(_BOUND):
        if (line.bound, line.bound_by) != (float(bound.value), f"{_BOUND}{bound.name}"):
            yield (
                f"its bound is {line.bound:g} by {line.bound_by!r}; it should be {bound.value:g} by "
                f"'{_BOUND}{bound.name}'"
            )
    elif line.bound < bound.value:
        yield f"its bound is {line.bound:g} by {line.bound_by!r}; {bound.name!r} alone gives {bound.value:g}"
