"""Counted evaluations: one wrapper that every solver goes through, so that comparisons are at equal budgets."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Generic, Protocol, TypeVar

from ..errors import OpgymError
from ..outcome import Outcome

Solution = TypeVar("Solution")
SolutionIn = TypeVar("SolutionIn", contravariant=True)


class Problem(Protocol[SolutionIn]):
    """Immutable data plus a pure evaluation."""

    def evaluate(self, solution: SolutionIn) -> Outcome:
        """Judges one solution; an illegal one gets a verdict, never an exception."""
        ...


@dataclass(frozen=True)
class Budget:
    """What a solver may spend; ``None`` is unlimited.

    Attributes:
        evaluations: Most evaluations of the problem, those of starting points included.
        seconds: Wall time after which no new evaluation starts.
    """

    evaluations: int | None = None
    seconds: float | None = None


@dataclass(frozen=True)
class Progress:
    """What a progress callback is told after an evaluation."""

    evaluations: int
    seconds: float
    best: Outcome


ProgressCallback = Callable[[Progress], None]


@dataclass(frozen=True)
class CurvePoint:
    """A new best value, what had been spent when it was found, and whether it is that of a feasible solution."""

    evaluations: int
    seconds: float
    value: float
    feasible: bool = True


class BudgetExhausted(OpgymError):
    """Raised by :meth:`Evaluator.evaluate` instead of exceeding the budget; solvers let it pass or stop before."""


class Evaluator(Generic[Solution]):
    """Evaluates solutions of one problem, counts them, keeps the best and its curve.

    Args:
        problem: The problem.
        budget: The limit; :meth:`evaluate` raises :class:`BudgetExhausted` rather than passing it.
        progress: Called after every evaluation.
    """

    def __init__(
        self,
        problem: Problem[Solution],
        budget: Budget | None = None,
        progress: ProgressCallback | None = None,
    ) -> None:
        self.problem = problem
        self.budget = budget or Budget()
        self.evaluations = 0
        self.best: Solution | None = None
        self.best_outcome: Outcome | None = None
        self.curve: list[CurvePoint] = []
        self._progress = progress
        self._started = time.perf_counter()

    @property
    def seconds(self) -> float:
        """Wall time since the evaluator was made."""
        return time.perf_counter() - self._started

    @property
    def remaining(self) -> int | None:
        """Evaluations left; ``None`` without a limit."""
        return None if self.budget.evaluations is None else self.budget.evaluations - self.evaluations

    @property
    def exhausted(self) -> bool:
        """Whether the next evaluation would be refused (the first one is granted whatever the clock says)."""
        if self.remaining is not None and self.remaining <= 0:
            return True
        return (
            self.evaluations > 0 and self.budget.seconds is not None and self.seconds >= self.budget.seconds
        )

    def evaluate(self, solution: Solution) -> Outcome:
        """Judges a solution, counts it and remembers it if it is the best so far."""
        if self.exhausted:
            raise BudgetExhausted(f"the budget of {self.budget} is spent")
        outcome = self.problem.evaluate(solution)
        self.evaluations += 1
        if outcome.better_than(self.best_outcome):
            self.best, self.best_outcome = solution, outcome
            self.curve.append(CurvePoint(self.evaluations, self.seconds, outcome.value, outcome.ok))
        if self._progress is not None and self.best_outcome is not None:
            self._progress(Progress(self.evaluations, self.seconds, self.best_outcome))
        return outcome

    @contextmanager
    def share(self, evaluations: int | None) -> Iterator[Evaluator[Solution]]:
        """An evaluator for another search on the same problem, whose spending and findings become ours in the end.

        Args:
            evaluations: Most evaluations that it may spend; ``None`` without a limit of its own.
        """
        limits = [limit for limit in (evaluations, self.remaining) if limit is not None]
        began, seconds = self.seconds, self.budget.seconds
        own = Evaluator(
            self.problem,
            Budget(min(limits, default=None), None if seconds is None else max(0.0, seconds - began)),
        )
        try:
            yield own
        finally:
            self.account(own.evaluations, own.feasible_curve, own.best, began)

    @property
    def feasible_curve(self) -> Sequence[CurvePoint]:
        """The curve from its first feasible value on: an infeasible one, lower or higher, says nothing of it."""
        return [point for point in self.curve if point.feasible]

    def account(
        self, evaluations: int, curve: Sequence[CurvePoint], solution: Solution | None, began: float
    ) -> None:
        """Takes over what a loop outside Python spent and found, as if it had called :meth:`evaluate`.

        Its best solution is judged again, uncounted: a loop that errs about a value is found out at once.

        Args:
            evaluations: How many it spent.
            curve: Every new best value of its own among feasible solutions, with evaluations and seconds since it
                began.
            solution: The best of them; needed if its value is better than what is known here. Without a feasible one,
                the best of all.
            began: Our :attr:`seconds` when it began.

        Raises:
            OpgymError: It spent more than was left, or the solution has another value than it says.
        """
        if self.remaining is not None and evaluations > self.remaining:
            raise OpgymError(f"a search spent {evaluations} evaluations where {self.remaining} were left")
        known = (
            self.best_outcome.value if self.best_outcome is not None and self.best_outcome.ok else math.inf
        )
        new = [point for point in curve if point.value < known]
        if solution is not None and (new or math.isinf(known)):
            outcome = self.problem.evaluate(solution)
            if new and (not outcome.ok or outcome.value != new[-1].value):
                raise OpgymError(
                    f"a search says {new[-1].value} of a solution worth {outcome.value}; please report it"
                )
            if outcome.better_than(self.best_outcome):
                self.best, self.best_outcome = solution, outcome
                new = new or [CurvePoint(evaluations, self.seconds - began, outcome.value, outcome.ok)]
                self.curve += [
                    replace(
                        point,
                        evaluations=self.evaluations + point.evaluations,
                        seconds=began + point.seconds,
                    )
                    for point in new
                ]
        self.evaluations += evaluations
        if self._progress is not None and self.best_outcome is not None:
            self._progress(Progress(self.evaluations, self.seconds, self.best_outcome))
