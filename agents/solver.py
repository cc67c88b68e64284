"""The one door to every agent: ``solve(problem, budget, rng) -> Result``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from ..errors import InvalidProblemError
from ..outcome import Outcome
from ..problems import (
    Budget,
    BudgetExhausted,
    CurvePoint,
    Evaluator,
    Objective,
    Order,
    Placement,
    PlacementProblem,
    Problem,
    ProgressCallback,
    SchedulingProblem,
    program_order,
)

SolutionT = TypeVar("SolutionT")
ProblemT = TypeVar("ProblemT", bound=Problem[Any])


@dataclass(frozen=True)
class Result(Generic[SolutionT]):
    """What a solver found and what it spent.

    Attributes:
        solver: Name of the solver.
        solution: The best placement or order.
        outcome: Its outcome.
        evaluations: Evaluations spent, starting points included.
        seconds: Wall time spent.
        curve: Every new best value, with what had been spent by then.
        proven_optimal: Whether the solver proved that nothing (in its search space, named in ``note``) is better.
        note: What a reader should know about this result.
        bound: A value that the run proved no solution (in its search space) can beat, where it proved one; equal to
            the value of the solution if that is proven optimal.
    """

    solver: str
    solution: SolutionT
    outcome: Outcome
    evaluations: int
    seconds: float
    curve: tuple[CurvePoint, ...]
    proven_optimal: bool = False
    note: str = ""
    bound: float | None = None


class Solver(ABC, Generic[ProblemT, SolutionT]):
    """A solver of one type of problem. Subclasses give a name and ``_search``.

    Subclasses are frozen dataclasses whose fields are their options.
    """

    #: The name by which ``agents.make`` finds it.
    name: ClassVar[str]
    #: One line for ``--help`` and tables.
    summary: ClassVar[str]
    #: The problems it solves.
    problem_types: ClassVar[tuple[type[Any], ...]]
    #: Whether it goes on improving until the budget is spent (else it stops by itself).
    anytime: ClassVar[bool] = False
    #: Whether it is there to be compared with; tables leave it out unless it is asked for by name.
    control: ClassVar[bool] = False
    #: Whether tables leave it out unless they are asked for proofs: it may take long to prove what others have found.
    proves: ClassVar[bool] = False

    def skip_reason(self, problem: ProblemT) -> str | None:
        """Why this solver should not be tried on a problem (wrong type, too large), or ``None``."""
        if not isinstance(problem, self.problem_types):
            return f"does not solve a {type(problem).__name__}"
        return None

    def solve(
        self,
        problem: ProblemT,
        budget: Budget | None = None,
        rng: np.random.Generator | None = None,
        progress: ProgressCallback | None = None,
    ) -> Result[SolutionT]:
        """Searches within a budget.

        Args:
            problem: What to solve.
            budget: Most evaluations and seconds; an anytime solver without one uses its own default.
            rng: Source of all randomness; ``default_rng(0)`` where absent.
            progress: Called after every evaluation.

        Raises:
            InvalidProblemError: The solver does not apply to the problem, or the budget allows no evaluation.
        """
        reason = self.skip_reason(problem)
        if reason is not None:
            raise InvalidProblemError(f"solver {self.name!r}: {reason}")
        evaluator: Evaluator[SolutionT] = Evaluator(problem, budget, progress)
        try:
            remark = self._search(problem, evaluator, rng or np.random.default_rng(0))
        except BudgetExhausted:
            remark = None
        if evaluator.best is None or evaluator.best_outcome is None:
            raise InvalidProblemError(f"solver {self.name!r} evaluated nothing within {evaluator.budget}")
        remark = remark or Remark()
        return Result(
            self.name, evaluator.best, evaluator.best_outcome, evaluator.evaluations, evaluator.seconds,
            tuple(evaluator.curve), remark.proven_optimal, remark.note,
            evaluator.best_outcome.value if remark.proven_optimal else remark.bound,
        )  # fmt: skip

    @abstractmethod
    def _search(
        self, problem: ProblemT, evaluator: Evaluator[SolutionT], rng: np.random.Generator
    ) -> Remark | None:
        """Evaluates solutions through ``evaluator``; the best one becomes the result."""


class PlacementSolver(Solver[PlacementProblem, Placement]):
    """A solver of placement problems."""

    problem_types = (PlacementProblem,)
    #: Objectives it can work on.
    objectives: ClassVar[frozenset[Objective]] = frozenset(Objective)

    def skip_reason(self, problem: PlacementProblem) -> str | None:
        """Why this solver should not be tried on a problem (too large, wrong objective), or ``None``."""
        reason = super().skip_reason(problem)
        if reason is None and problem.objective not in self.objectives:
            reason = f"does not optimise {problem.objective}"
        return reason


class SchedulingSolver(Solver[SchedulingProblem, Order]):
    """A solver of scheduling problems."""

    problem_types = (SchedulingProblem,)


@dataclass(frozen=True)
class Remark:
    """What a search says beside its solution."""

    note: str = ""
    proven_optimal: bool = False
    bound: float | None = None


def evaluate_device(
    problem: PlacementProblem, evaluator: Evaluator[Placement], device: np.ndarray
) -> Outcome:
    """Evaluates a device map with the better of critical-path and program priorities.

    The order matters as much as the placement (program order costs up to 1.66x), so no heuristic is judged by one
    order alone. Two evaluations, one where the objective does not see the order.
    """
    outcome = evaluator.evaluate(Placement(device))
    if problem.objective.simulated and not evaluator.exhausted:
        other = evaluator.evaluate(Placement(device, program_order(problem.graph)))
        outcome = other if other.better_than(outcome) else outcome
    return outcome
