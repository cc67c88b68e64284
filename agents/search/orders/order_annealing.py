"""Simulated annealing on orders."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .... import _core
from ....graphs.core_graph import core_graph
from ....problems import Evaluator, Order, SchedulingProblem
from ...registry import register
from ...solver import Remark, SchedulingSolver
from ..native import evaluations_left, seed_of
from ..options import at_least, share
from .native import STARTS, evaluate_starts, remark, run_order_search, target_of


@register
@dataclass(frozen=True)
class OrderAnnealing(SchedulingSolver):
    """Simulated annealing on orders (Kirkpatrick et al. 1983) with the peak computed incrementally.

    A move takes an op to a later place and what depends on it along, or to an earlier place with what it depends on.
    Most moves aim at something that is live at the peak and need not be: its producer goes behind the peak, or its
    last reader before it. A worse order is accepted with probability ``exp(-(worse - now) / T)``, where a tenth of
    the change in mean memory counts beside the peak, and ``T`` falls from ``temperature`` x the peak to 0 with the
    square of what is left of a round. Rounds start from the orders of the heuristics, best first, then from random
    orders: where a round starts decides more than how long it is.

    One tried move is one evaluation; its peak is known exactly. Without ``seconds`` in the budget the course depends
    on the generator alone.

    Attributes:
        evaluations: Evaluations where the budget states no limit; those of the heuristics are among them.
        temperature: Of the start of a round, as a share of the peak.
        moves_per_op: Moves of a round for each op of the graph; a smaller budget is one round.
    """

    evaluations: int = 200_000
    temperature: float = 0.02
    moves_per_op: int = 30

    name: ClassVar[str] = "order-annealing"
    summary: ClassVar[str] = "simulated annealing on orders in rounds, from the heuristics' orders"
    anytime: ClassVar[bool] = True

    def __post_init__(self) -> None:
        at_least(1, evaluations=self.evaluations, moves_per_op=self.moves_per_op)
        share(temperature=self.temperature)

    def _search(
        self, problem: SchedulingProblem, evaluator: Evaluator[Order], rng: np.random.Generator
    ) -> Remark:
        starts = evaluate_starts(problem, evaluator, STARTS, self.evaluations)
        round_length = self.moves_per_op * len(problem.ops)
        left = evaluations_left(evaluator, self.evaluations)
        if left is not None:  # rounds of equal length that fill the budget
            rounds = max(1, left // round_length)
            round_length = max(1, -(-left // rounds))
        search = _core.OrderAnnealing(
            core_graph(problem.graph),
            np.stack([order for _, order in starts]),
            seed_of(rng),
            target_of(problem),
            self.temperature,
            round_length,
        )

        def fit_into_time(evaluations_per_second: float) -> None:
            if evaluator.budget.seconds is not None:
                fits = evaluations_per_second * (evaluator.budget.seconds - evaluator.seconds)
                search.set_round_length(max(1, min(round_length, int(fits))))

        proven = run_order_search(evaluator, search, self.evaluations, on_first_call=fit_into_time)
        return remark(starts[0][0], proven)
