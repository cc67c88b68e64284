"""What XLA does by default: three rules, the best order of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ....problems import Evaluator, Order, SchedulingProblem
from ...registry import register
from ...solver import Remark, SchedulingSolver
from .freed_bytes import GreedyFreedBytes
from .one_order import OneOrder
from .traversals import DepthFirst, PostOrder

_RULES: tuple[type[OneOrder], ...] = (GreedyFreedBytes, DepthFirst, PostOrder)


@register
@dataclass(frozen=True)
class BestOfThree(SchedulingSolver):
    """List scheduling by freed bytes, depth first and post-order; three evaluations, ties to the earlier rule.

    XLA's ``DefaultMemoryScheduler``.
    """

    name: ClassVar[str] = "best-of-three"
    summary: ClassVar[str] = "best of greedy-freed-bytes, dfs and post-order (XLA's default)"

    def _search(
        self, problem: SchedulingProblem, evaluator: Evaluator[Order], rng: np.random.Generator
    ) -> Remark:
        best = ""
        for rule in _RULES:
            if evaluator.exhausted:
                break
            order = Order(rule().order(problem))
            evaluator.evaluate(order)
            if evaluator.best is order:
                best = rule.name
        return Remark(f"order of {best}")
