"""Local search on orders."""

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
from .native import STARTS, evaluate_starts, remark, run_order_search, target_of


@register
@dataclass(frozen=True)
class OrderSearch(SchedulingSolver):
    """Iterated local search on orders (Lourenco, Martin, Stutzle 2003), with the moves of ``order-annealing``.

    A move that does no harm stays. After ``patience`` moves per op without a better peak, ``kick`` random moves lead
    away from the best order.

    One tried move is one evaluation; its peak is known exactly. Without ``seconds`` in the budget the course depends
    on the generator alone.

    Attributes:
        evaluations: Evaluations where the budget states no limit; those of the heuristics are among them.
        patience: Moves without a better peak before a kick, for each op of the graph.
        kick: Random moves of a kick.
    """

    evaluations: int = 200_000
    patience: int = 4
    kick: int = 30

    name: ClassVar[str] = "order-search"
    summary: ClassVar[str] = "iterated local search on orders, from the best heuristic"
    anytime: ClassVar[bool] = True

    def __post_init__(self) -> None:
        at_least(1, evaluations=self.evaluations, patience=self.patience, kick=self.kick)

    def _search(
        self, problem: SchedulingProblem, evaluator: Evaluator[Order], rng: np.random.Generator
    ) -> Remark:
        starts = evaluate_starts(problem, evaluator, STARTS, self.evaluations)
        search = _core.OrderDescent(
            core_graph(problem.graph),
            starts[0][1],
            seed_of(rng),
            target_of(problem),
            self.patience * len(problem.ops),
            self.kick,
        )
        proven = run_order_search(evaluator, search, self.evaluations)
        return remark(starts[0][0], proven)
