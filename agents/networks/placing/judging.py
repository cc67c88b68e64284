"""From a placement to a reward, and to an evaluation that counts."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ....envs.placement.reward import reference_of
from ....outcome import Outcome
from ....problems import BudgetExhausted, Evaluator, Placement, PlacementProblem, program_order
from ...search.native import evaluations_left

#: Reward of a placement that does not fit (Zhou et al. 2019, section 3.3; Mirhoseini et al. 2018 count it as 100 s).
INVALID_REWARD = -10.0

#: Judges the devices of ops, ``[ops] uint8``.
Judge = Callable[[NDArray[np.uint8]], Outcome]


@dataclass(frozen=True)
class Reward:
    """Minus the square root of a value, over that of a reference; -10 for what does not fit.

    Attributes:
        reference: All work on the fastest single device: its placements have the reward -1.
    """

    reference: float

    @classmethod
    def of(cls, problem: PlacementProblem) -> Reward:
        """That of a problem; costs at most one evaluation, which is not counted: it is no placement that is tried."""
        return cls(reference_of(problem).value)

    def __call__(self, outcome: Outcome) -> float:
        return -math.sqrt(outcome.value / self.reference) if outcome.ok else INVALID_REWARD


def uncounted(problem: PlacementProblem) -> Judge:
    """Judges without a budget, as trainings do."""
    return lambda device: problem.evaluate(Placement(device))


class Counted:
    """Judges within a budget; the best placement so far is tried in the order of the program, too.

    What is learned from is the value with the priorities of the critical path alone.

    Args:
        problem: What is solved.
        evaluator: Counts.
        default: Evaluations where the budget states no limit.
    """

    def __init__(self, problem: PlacementProblem, evaluator: Evaluator[Placement], default: int) -> None:
        self._evaluator, self._default = evaluator, default
        self._program = program_order(problem.graph) if problem.objective.simulated else None

    def __call__(self, device: NDArray[np.uint8]) -> Outcome:
        """Judges devices of ops.

        Raises:
            BudgetExhausted: Nothing is left of the budget.
        """
        self._require_budget()
        outcome = self._evaluator.evaluate(Placement(device))
        if self._program is not None and self._evaluator.best_outcome is outcome and not self.over:
            self._evaluator.evaluate(Placement(device, self._program))
        return outcome

    @property
    def over(self) -> bool:
        """Whether nothing is left of the budget."""
        return self._evaluator.exhausted or evaluations_left(self._evaluator, self._default) == 0

    def _require_budget(self) -> None:
        if self.over:
            raise BudgetExhausted("the default number of evaluations is spent")
