"""The least peak over all orders on one device, by exact search over down-sets."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from .... import _core
from ....graphs.simulate import core_graph
from ....problems import CurvePoint, Evaluator, Order, SchedulingProblem
from ...registry import register
from ...search.native import seed_of
from ...search.options import at_least
from ...search.orders.native import STARTS, evaluate_starts, target_of
from ...solver import Remark, SchedulingSolver

#: A call to the core takes about this long, so that interrupts are heard and budgets kept.
_CALL_SECONDS = 0.05
#: Largest graph that is searched: pairs of ops that come one before the other are kept as bits.
_MOST_OPS = 10_000
#: Random moves of a kick of the local search at the start, and moves for each op without a better peak before one.
_KICK, _PATIENCE = 30, 4


@register
@dataclass(frozen=True)
class DpOrder(SchedulingSolver):
    """Finds an order of least peak memory and proves it, or proves a bound.

    What is live depends on which ops have run (a down-set of the graph), not on their order. So the question
    whether an order is within a limit is one of reachability among down-sets; Ahn et al. 2020, "Ordering chaos:
    memory-aware scheduling of irregularly wired neural networks for edge devices", answer it layer by layer. Here
    it is a depth-first search that keeps the sets from which it failed, forwards and backwards in time, whichever
    ends first.

    Live bytes are a submodular function of the down-set, and that is why it needs few sets. If another set can be
    reached from one that leaves no more live, then no order loses by going first to the set between the two that
    leaves least (a minimum cut), and no choice on the way there is looked at again: on any graph what Liu 1987,
    "An application of generalized tree pebbling to sparse matrix factorization", does with hills and valleys on
    trees. What must have run before an op, and what cannot, gives by another minimum cut the least memory that it
    can run in; within a limit, that also tells of other ops that they must come before or after it.

    Starts from the best of the heuristics and a short local search, whose evaluations count, as do those of the
    orders it finds. Limits below the best peak are asked first, then those between the bounds, with more effort
    from round to round. Deterministic for a generator, but for where a limit of time cuts it off.

    Attributes:
        max_bytes: Most memory for sets of ops from which the search failed.
        evaluations: Evaluations of heuristics and local search at the start.
    """

    max_bytes: int = 2**30
    evaluations: int = 20_000

    name: ClassVar[str] = "dp-order"
    summary: ClassVar[str] = "order of least peak memory, proven by search over sets of ops that have run"

    def __post_init__(self) -> None:
        at_least(1, max_bytes=self.max_bytes, evaluations=self.evaluations)

    def _search(
        self, problem: SchedulingProblem, evaluator: Evaluator[Order], rng: np.random.Generator
    ) -> Remark:
        lower = target_of(problem)
        [(_, order), *_] = evaluate_starts(problem, evaluator, STARTS, self.evaluations)
        note = f"more than {_MOST_OPS} ops; not searched"
        if len(problem.ops) <= _MOST_OPS:
            order = self._improved(problem, evaluator, seed_of(rng), order)
            search = _core.OrderProgram(core_graph(problem.graph), order, lower, self.max_bytes)
            while not (search.over or evaluator.exhausted):
                known = search.upper
                search.run(min(_CALL_SECONDS, _seconds_left(evaluator)))
                if search.upper < known and not evaluator.exhausted:
                    evaluator.evaluate(Order(search.best_order))
            lower, note = search.lower, f"{search.work} sets of ops looked at, or as much work"
        best = evaluator.best_outcome
        return Remark(note, best is not None and best.value <= lower, float(lower))

    def _improved(
        self, problem: SchedulingProblem, evaluator: Evaluator[Order], seed: int, order: NDArray[np.int32]
    ) -> NDArray[np.int32]:
        """The order after a short local search; half of what the budget leaves is for the exact one."""
        patience = _PATIENCE * len(problem.ops)
        search = _core.OrderDescent(
            core_graph(problem.graph), order, seed, target_of(problem), patience, _KICK
        )
        left = self.evaluations
        if evaluator.remaining is not None:
            left = min(left, evaluator.remaining // 2)
        until = evaluator.seconds + _seconds_left(evaluator) / 2
        while left > 0 and not search.over and evaluator.seconds < until:
            began = evaluator.seconds
            spent = search.run(left, min(_CALL_SECONDS, until - began))
            curve = [CurvePoint(done, at, float(peak)) for done, at, peak in search.improvements]
            evaluator.account(spent, curve, Order(search.best_order) if curve else None, began)
            left -= spent
        return search.best_order


def _seconds_left(evaluator: Evaluator[Order]) -> float:
    limit = evaluator.budget.seconds
    return math.inf if limit is None else max(0.0, limit - evaluator.seconds)
