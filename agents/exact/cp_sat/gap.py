"""Closes the gap between a bound and the best value: from below by refutation, from above by better solutions."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ....problems import Evaluator
from .engine import Engine

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

#: Refutations that come first, how much of the allowance each may take, and how far up from the bound each aims.
_STEPS, _STEP_SHARE, _FIRST_AIM = 4, 0.1, 0.5


@dataclass
class Gap:
    """What is proven and what is found.

    Attributes:
        low: No solution has a smaller value.
        high: Value of the best solution; one more than any value where there is none.
        unit: All values are multiples of it.
    """

    low: int
    high: int
    unit: int = 1

    @property
    def closed(self) -> bool:
        """Whether nothing better can exist."""
        return self.low >= self.high


def close_gap(
    gap: Gap,
    engine: Engine,
    evaluator: Evaluator[Any],
    instance: Callable[[Gap, int, bool], cp_model.CpModel],
    see: Callable[[Any], None],
) -> None:
    """Solves models until the gap is closed or the allowance is spent.

    Args:
        gap: Narrowed; ``see`` sets its ``high``.
        engine: Solves the models.
        evaluator: Its limits hold.
        instance: A model of the solutions between ``gap.low`` and a target, and whether the best of them is wanted.
        see: Evaluates a solution of a model; called while an evaluation is left.
    """

    def watch(values: Any) -> bool:
        if not evaluator.exhausted:
            see(values)
        return not evaluator.exhausted

    def over() -> bool:
        return gap.closed or engine.exhausted or evaluator.exhausted

    aim = _FIRST_AIM
    for _ in range(_STEPS):
        target = gap.low + int((gap.high - gap.low) * aim)
        if over() or target >= gap.high - 1:
            break
        answer = engine.solve(instance(gap, target, False), _STEP_SHARE, watch)
        if answer.refuted:
            gap.low = target + 1
        elif not answer.found:
            aim /= 2  # the farther from what exists, the shorter the refutation
    if over():
        return
    high = gap.high
    answer = engine.solve(instance(gap, high - 1, True), 1.0, watch)
    if answer.refuted:
        gap.low = max(gap.low, high)
    elif math.isfinite(answer.bound):
        gap.low = max(gap.low, math.ceil(answer.bound - 1e-6) * gap.unit)
