"""Random orders: what an equal budget finds without any idea."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .... import _core
from ....graphs.core_graph import core_graph
from ....problems import Evaluator, Order, SchedulingProblem
from ...registry import register
from ...solver import Remark, SchedulingSolver
from ..native import seed_of
from ..options import at_least
from .native import run_order_search, target_of


@register
@dataclass(frozen=True)
class RandomOrder(SchedulingSolver):
    """The best of k independent orders, each built by running one of the ready ops, all equally likely.

    k is the budget.

    Attributes:
        evaluations: k where the budget states no limit.
    """

    evaluations: int = 1_000

    name: ClassVar[str] = "random-order"
    summary: ClassVar[str] = "best of k random orders"
    anytime: ClassVar[bool] = True

    def __post_init__(self) -> None:
        at_least(1, evaluations=self.evaluations)

    def _search(
        self, problem: SchedulingProblem, evaluator: Evaluator[Order], rng: np.random.Generator
    ) -> Remark:
        search = _core.RandomOrders(core_graph(problem.graph), seed_of(rng), target_of(problem))
        proven = run_order_search(evaluator, search, self.evaluations)
        return Remark(f"best of {evaluator.evaluations} orders", proven)
