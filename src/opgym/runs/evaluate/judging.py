"""Poses a problem, and judges what an agent says that it found there by code that the agent did not run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

from ...agents import Result
from ...datasets.suites import Row
from ...envs.placement.reward import reference_of
from ...errors import OpgymError
from ...outcome import Outcome
from ...problems import CurvePoint, Placement, PlacementProblem, SchedulingProblem
from ...problems.checker import check
from .cases import Case

#: Bounds of times in milliseconds are floating-point sums in another order than that of values.
_ROUNDING = 1e-12

Problem = SchedulingProblem | PlacementProblem


class MisreportedError(OpgymError):
    """An agent says something of its solution or of what it spent that is not so: a defect of the agent."""


class Posed(NamedTuple):
    """A problem that is ready to be solved, and what its values are compared with.

    Attributes:
        problem: The problem.
        unit: Unit of values, bound and reference.
        bound: A value that no solution beats.
        reference: What rewards are relative to.
    """

    problem: Problem
    unit: str
    bound: float
    reference: float


def posed_case(case: Case) -> Posed:
    """The problem of a case; a process keeps the last few, as their rows come one after the other."""
    posed = _posed_row(json.dumps(asdict(case.row)))
    return posed if case.bound is None else posed._replace(bound=max(case.bound, posed.bound))


@lru_cache(maxsize=4)
def _posed_row(text: str) -> Posed:
    problem = Row.from_json(json.loads(text), "row").problem()
    bound = problem.lower_bound()
    if isinstance(problem, SchedulingProblem):
        return Posed(problem, problem.unit, float(bound.value), float(problem.reference_bytes))
    reference = reference_of(problem)
    problem.evaluate(Placement(reference.device))  # what it computes once is on nobody's clock
    return Posed(problem, bound.unit, float(bound.value), float(reference.value))


def judged(posed: Posed, found: Result[Any], budget: int) -> Outcome:
    """The outcome of a solution, by the evaluation of the problem and by the independent checker.

    Args:
        posed: The problem.
        found: What the agent returned.
        budget: Most evaluations that it was given.

    Raises:
        MisreportedError: The agent says something else, or overspent.
    """
    outcome, again = posed.problem.evaluate(found.solution), check(posed.problem, found.solution)
    said = f"{found.outcome.value:.17g} {found.outcome.unit} ({found.outcome.verdict})"
    for by, other in (("evaluation", outcome), ("the checker", again)):
        same = (found.outcome.verdict, found.outcome.unit) == (other.verdict, other.unit)
        if not same or found.outcome.value != other.value:
            raise MisreportedError(
                f"the agent says {said}, and {by} of its solution {other.value:.17g} {other.unit} ({other.verdict})"
            )
    if not 1 <= found.evaluations <= budget:
        raise MisreportedError(f"the agent says that it spent {found.evaluations} evaluations of {budget}")
    if outcome.ok:
        _require_sound_curve(found, outcome.value)
        if outcome.value < posed.bound * (1 - _ROUNDING):
            raise MisreportedError(
                f"the solution is worth {outcome.value:.17g} {outcome.unit}, below the bound of {posed.bound:.17g}; "
                "one of them errs, please report it"
            )
    return outcome


def _require_sound_curve(found: Result[Any], value: float) -> None:
    """Refuses a curve that does not descend, in time and within what was spent, to the value."""
    points = feasible_points(found.curve)
    spent = [point.evaluations for point in points]
    at = [point.seconds for point in points]
    values = [point.value for point in points]
    descends = all(later < earlier for earlier, later in pairwise(values))
    if not points or values[-1] != value or not descends or spent != sorted(spent) or at != sorted(at):
        raise MisreportedError("the curve of the agent does not descend to the value of its solution")
    if not spent[0] >= 1 or spent[-1] > found.evaluations:
        raise MisreportedError("the curve of the agent has points outside of the evaluations that it spent")


def feasible_points(curve: Sequence[CurvePoint]) -> list[CurvePoint]:
    """The points of a curve whose solutions count."""
    return [point for point in curve if point.feasible]
