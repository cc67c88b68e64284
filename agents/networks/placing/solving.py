"""How a placer solves one problem: by learning on it, by one look at it, or by one look and learning on from there."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....problems import BudgetExhausted, Evaluator, PlacementProblem
from ...solver import Remark
from .judging import Counted
from .placer import Placer


def solve(
    placer: Placer[Any],
    problem: PlacementProblem,
    evaluator: Evaluator[Any],
    rng: np.random.Generator,
    evaluations: int,
    finetune: int | None,
) -> Remark:
    """Searches until the budget is spent, or the updates are.

    Args:
        placer: What places; it learns.
        problem: What to solve.
        evaluator: Counts.
        rng: Source of all randomness.
        evaluations: Evaluations where the budget states no limit.
        finetune: Most updates of a trained policy; ``None``: it is untrained, and learns until the budget is spent.
    """
    judge, instance = Counted(problem, evaluator, evaluations), placer.instance(problem)
    updates = 0
    try:
        if finetune is not None:
            judge(placer.greedy(instance))
        while (finetune is None or updates < finetune) and not judge.over:
            placer.update(instance, judge, rng)
            updates += 1
    except BudgetExhausted:
        pass
    made = "1 update" if updates == 1 else f"{updates} updates"
    if finetune is None:
        return Remark(f"untrained: {made}")
    return Remark(f"zero-shot, then {made}" if finetune else "zero-shot")
