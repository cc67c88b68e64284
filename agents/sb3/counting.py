"""Which solutions the episodes of a vector environment evaluate, one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...outcome import Outcome
from ...problems import AnyProblem, Evaluator, Order, Placement, program_order
from ...problems.budget import BudgetExhausted, CurvePoint
from .vec_env import GymnasiumVecEnv

Solution = Placement | Order


@dataclass(frozen=True)
class Evaluated:
    """A solution that was evaluated.

    Attributes:
        outcome: What it came to.
        solution: Makes it; it has the outcome's value to the bit.
    """

    outcome: Outcome
    solution: Callable[[], Solution]


class Evaluations:
    """Finds the evaluations in what a vector environment says of one problem.

    An episode is one evaluation, at its end; but the game ``refine`` judges the whole placement whenever a step
    changes it, and each of those is one, and so is every start.

    Args:
        vector: The environment.
        problem: What all of its slots are about.
        options: Those of the environment.
    """

    def __init__(self, vector: GymnasiumVecEnv, problem: AnyProblem, options: Mapping[str, Any]) -> None:
        self._vector = vector
        self._every_move = options.get("mode") == "refine"
        #: Where each slot began, and where it was last. A start that is always the same is judged once.
        self._start: list[Outcome | None] = [None] * vector.num_envs
        self._last: list[Outcome | None] = [None] * vector.num_envs
        self._priority = program_order(problem.graph) if options.get("order") == "program" else None

    def of_reset(self) -> Iterator[Evaluated]:
        """Of the starts, after a reset."""
        if self._every_move:
            for slot in range(self._vector.num_envs):
                yield from self._of_start(slot)

    def of_step(self) -> Iterator[Evaluated]:
        """Of the last step, in the order of the slots."""
        if not self._every_move:
            for _, info in self._vector.ended:
                yield Evaluated(info["outcome"], lambda info=info: self._solution(info))  # type: ignore[misc]
            return
        ended = dict(self._vector.ended)
        for slot in range(self._vector.num_envs):
            if slot not in ended:
                yield from self._of_move(slot, self._vector.last_infos["outcome"][slot])
                continue
            final = ended[slot]
            if final["outcome"] is not self._last[slot]:
                yield Evaluated(final["outcome"], lambda info=final: self._solution(info))  # type: ignore[misc]
            yield from self._of_start(slot)

    def _of_start(self, slot: int) -> Iterator[Evaluated]:
        outcome = self._vector.last_infos["outcome"][slot]
        if outcome is self._start[slot]:
            self._last[slot] = outcome
        else:
            self._start[slot] = outcome
            yield from self._of_move(slot, outcome)

    def _of_move(self, slot: int, outcome: Outcome) -> Iterator[Evaluated]:
        """Of where a slot is now: an outcome that is not the one before was measured anew."""
        if outcome is not self._last[slot]:
            self._last[slot] = outcome
            yield Evaluated(outcome, lambda: self._placement(self._vector.get_attr("device", [slot])[0]))

    def _solution(self, info: Mapping[str, Any]) -> Solution:
        if "order" in info:
            return Order(np.array(info["order"], np.int32))
        return self._placement(info["device"])

    def _placement(self, device: Sequence[int]) -> Placement:
        return Placement(np.array(device, np.int64), self._priority)


class Spending:
    """How much of a budget is left to a search whose evaluations happen in an environment.

    Args:
        evaluator: Counts.
        default_evaluations: The limit where the budget states none.
    """

    def __init__(self, evaluator: Evaluator[Any], default_evaluations: int) -> None:
        self._evaluator = evaluator
        budget = evaluator.budget
        self._seconds, self._limit = budget.seconds, budget.evaluations
        if budget.evaluations is None and budget.seconds is None:
            self._limit = default_evaluations
        if self.over:
            raise BudgetExhausted(f"the budget of {budget} is spent")

    @property
    def left(self) -> int | None:
        """Evaluations that are left; ``None`` without a limit."""
        return None if self._limit is None else max(0, self._limit - self._evaluator.evaluations)

    @property
    def over(self) -> bool:
        """Whether no evaluation is left."""
        return self.left == 0 or self._evaluator.exhausted

    @property
    def share_left(self) -> float:
        """Of the budget, by what is nearest to its end, 1 .. 0."""
        spent = 0.0
        if self._limit is not None:
            spent = self._evaluator.evaluations / self._limit
        if self._seconds is not None:
            spent = max(spent, self._evaluator.seconds / max(self._seconds, 1e-9))
        return max(0.0, 1.0 - spent)

    def count(self, evaluated: Iterator[Evaluated]) -> bool:
        """Counts evaluations up to the end of the budget; what comes after it is as if it had not been.

        Returns:
            Whether some budget is left.
        """
        evaluator = self._evaluator
        for each in evaluated:
            if self.over:
                return False
            outcome, now = each.outcome, evaluator.seconds
            better = outcome.better_than(evaluator.best_outcome)
            curve = [CurvePoint(1, 0.0, outcome.value)] if better and outcome.ok else []
            evaluator.account(1, curve, each.solution() if better else None, now)
        return not self.over
