"""Random placements: what an equal budget finds without any idea."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ...errors import InvalidProblemError
from ...problems import Evaluator, Placement, PlacementProblem, program_order
from ...problems.grouping import colocation_units, of_units
from ..registry import register
from ..solver import PlacementSolver, Remark


@register
@dataclass(frozen=True)
class BestOfRandom(PlacementSolver):
    """The best of k independent placements, each unit on a device drawn uniformly from those that support it.

    k is the budget. The first placement is judged with critical-path and with program priorities, the others with
    whichever was better.

    Attributes:
        evaluations: k where the budget states no limit.
    """

    evaluations: int = 100

    name: ClassVar[str] = "random"
    summary: ClassVar[str] = "best of k random placements"
    anytime: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.evaluations < 1:
            raise InvalidProblemError(f"{self.evaluations} evaluations; expected at least 1")

    def _search(
        self, problem: PlacementProblem, evaluator: Evaluator[Placement], rng: np.random.Generator
    ) -> Remark:
        unit = colocation_units(problem.graph)
        allowed = of_units(problem.allowed, unit)
        budget = evaluator.budget
        limit = self.evaluations if budget.evaluations is None and budget.seconds is None else None
        spent_before = evaluator.evaluations
        draws = 0
        priority: NDArray[np.float64] | None = None
        while not evaluator.exhausted and (limit is None or evaluator.evaluations - spent_before < limit):
            device = random_units(allowed, rng)[unit]
            outcome = evaluator.evaluate(Placement(device, priority))
            draws += 1
            room = limit is None or evaluator.evaluations - spent_before < limit
            if draws == 1 and room and problem.objective.simulated and not evaluator.exhausted:
                in_order = program_order(problem.graph)
                if evaluator.evaluate(Placement(device, in_order)).better_than(outcome):
                    priority = in_order
        order = "critical-path" if priority is None else "program"
        return Remark(
            f"best of {draws} placements" + (f", {order} order" if problem.objective.simulated else "")
        )


def random_units(allowed: NDArray[np.bool_], rng: np.random.Generator) -> NDArray[np.uint8]:
    """A device for each unit, uniform over those it may use, ``[units] uint8``."""
    choices = allowed.sum(axis=1)
    pick = (rng.random(len(allowed)) * choices).astype(np.int64)
    nth = np.cumsum(allowed, axis=1) > np.minimum(pick, choices - 1)[:, None]
    device: NDArray[np.uint8] = nth.argmax(axis=1).astype(np.uint8)
    return device
