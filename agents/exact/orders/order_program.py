"""The least peak over all orders on one device, by exact search over down-sets."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from .... import _core
from ....graphs.core_graph import core_graph
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
#: The program and the local search take turns: work of one, evaluations of the other, some four to one in time.
_TURN_WORK, _TURN_EVALUATIONS = 2**18, 2**14
#: Random moves of a kick of the local search, and moves for each op without a better peak before one.
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

    Starts from the best of the heuristics and a local search, which then takes turns with it: a better peak is a
    lower limit to ask for. Their evaluations count, as do those of the orders that the program finds. The limit just
    below the best peak comes first, then those between the bounds, with more effort from round to round. Ends with a
    proof, or with a bound when memory or the budget is spent; where the budget limits evaluations alone, it looks at
    no more sets than these times the ops. Deterministic for a generator, but for where a budget of seconds cuts it
    off. Graphs of more than 10,000 ops are not searched: the bound is that of the graph.

    Attributes:
        max_bytes: Most memory for sets of ops from which the search failed.
        evaluations: Evaluations of heuristics and local search before the first turn.
    """

    max_bytes: int = 2**30
    evaluations: int = 20_000

    name: ClassVar[str] = "dp-order"
    summary: ClassVar[str] = "order of least peak memory, proven by search over sets of ops that have run"
    proves: ClassVar[bool] = True

    def __post_init__(self) -> None:
        at_least(1, max_bytes=self.max_bytes, evaluations=self.evaluations)

    def _search(
        self, problem: SchedulingProblem, evaluator: Evaluator[Order], rng: np.random.Generator
    ) -> Remark:
        lower = target_of(problem)
        [(_, order), *_] = evaluate_starts(problem, evaluator, STARTS, self.evaluations)
        note = f"more than {_MOST_OPS} ops; not searched"
        if len(problem.ops) <= _MOST_OPS:
            local = _LocalSearch(problem, evaluator, seed_of(rng), order)
            local.run(self.evaluations)
            program = _core.OrderProgram(core_graph(problem.graph), local.order, lower, self.max_bytes)
            most_work = _most_work(problem, evaluator)
            while not (program.over or evaluator.exhausted) and program.work < most_work:
                if _run(program, evaluator, min(_TURN_WORK, most_work - program.work)):
                    local.start(program.best_order)
                elif not program.over:
                    local.run(_TURN_EVALUATIONS)
                    program.offer(local.order)
            lower, note = program.lower, f"{program.work} sets of ops looked at, or as much work"
        best = evaluator.best_outcome
        return Remark(note, best is not None and best.value <= lower, float(lower))


def _most_work(problem: SchedulingProblem, evaluator: Evaluator[Order]) -> int:
    """Sets to look at where only evaluations are limited: as many for each as it takes to evaluate an order."""
    budget = evaluator.budget
    if budget.evaluations is None or budget.seconds is not None:
        return sys.maxsize
    return budget.evaluations * len(problem.ops)


def _run(program: _core.OrderProgram, evaluator: Evaluator[Order], work: int) -> bool:
    """Goes on with the program for so much work, or until it finds a better order: whether it does."""
    goal, known = program.work + work, program.upper
    while program.work < goal and not (program.over or evaluator.exhausted):
        program.run(goal - program.work, min(_CALL_SECONDS, _seconds_left(evaluator)))
        if program.upper < known:
            if not evaluator.exhausted:
                evaluator.evaluate(Order(program.best_order))
            return True
    return False


class _LocalSearch:
    """Iterated local search in turns; of the evaluations left at each, half are for the program's orders."""

    def __init__(
        self, problem: SchedulingProblem, evaluator: Evaluator[Order], seed: int, order: NDArray[np.int32]
    ) -> None:
        self._problem = problem
        self._evaluator = evaluator
        self._seed = seed
        self.start(order)

    def start(self, order: NDArray[np.int32]) -> None:
        """Goes on from another order."""
        graph, patience = core_graph(self._problem.graph), _PATIENCE * len(self._problem.ops)
        self._search = _core.OrderDescent(graph, order, self._seed, target_of(self._problem), patience, _KICK)

    @property
    def order(self) -> NDArray[np.int32]:
        """The best order so far."""
        return self._search.best_order

    def run(self, evaluations: int) -> None:
        """Goes on for so many evaluations, and at most half of the seconds left."""
        evaluator, left = self._evaluator, evaluations
        if evaluator.remaining is not None:
            left = min(left, evaluator.remaining // 2)
        until = evaluator.seconds + _seconds_left(evaluator) / 2
        while left > 0 and not self._search.over and evaluator.seconds < until:
            began = evaluator.seconds
            spent = self._search.run(left, min(_CALL_SECONDS, until - began))
            curve = [CurvePoint(done, at, float(peak)) for done, at, peak in self._search.improvements]
            evaluator.account(spent, curve, Order(self.order) if curve else None, began)
            left -= spent


def _seconds_left(evaluator: Evaluator[Order]) -> float:
    limit = evaluator.budget.seconds
    return math.inf if limit is None else max(0.0, limit - evaluator.seconds)
