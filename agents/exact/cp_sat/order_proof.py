"""Proves the least peak of an order, or a bound below it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ....problems import Evaluator, Order, SchedulingProblem
from ...search.orders import OrderSearch
from ...solver import Remark
from .engine import Engine, leave_one
from .gap import Gap, close_gap
from .order_model import OrderModel, ancestors, free_triples

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

#: Beyond these the model alone takes more than about ten seconds and some GB.
MAX_OPS, MAX_FREE_TRIPLES = 1_000, 1_000_000


def too_large(problem: SchedulingProblem) -> str | None:
    """Why a problem is too large for the model, or ``None``."""
    if len(problem.ops) > MAX_OPS:
        return f"{len(problem.ops)} ops to order; at most {MAX_OPS}"
    triples = free_triples(ancestors(problem)[1])
    if triples > MAX_FREE_TRIPLES:
        return f"{triples} triples of ops that may run in any order; at most {MAX_FREE_TRIPLES}"
    return None


def prove_order(
    problem: SchedulingProblem,
    evaluator: Evaluator[Order],
    rng: np.random.Generator,
    *,
    effort: float,
    workers: int,
    start_evaluations: int,
) -> Remark:
    """Searches from the best order of ``order-search`` down, and from the problem's bound up."""
    if evaluator.exhausted:
        return Remark()
    began, budget = evaluator.seconds, leave_one(evaluator, start_evaluations)
    start = OrderSearch().solve(problem, budget, rng)
    evaluator.account(start.evaluations, start.curve, start.solution, began)
    best = start.solution.op
    gap = Gap(int(problem.lower_bound().value), int(start.outcome.value))
    if gap.closed:
        return Remark("the start meets the graph's bound", proven_optimal=True)
    if evaluator.exhausted:
        return Remark("nothing was left after the start", bound=gap.low)

    engine = Engine(evaluator, effort, workers, int(rng.integers(2**31)))
    model = OrderModel(problem, engine.module)
    gap.unit = model.unit_bytes

    def instance(gap: Gap, target: int, minimise: bool) -> cp_model.CpModel:
        return model.instance(gap.low, target, best, minimise=minimise)

    def see(values: Any) -> None:
        nonlocal best
        order = model.order(values)
        outcome = evaluator.evaluate(Order(order))
        if outcome.value < gap.high:
            best, gap.high = order, int(outcome.value)

    close_gap(gap, engine, evaluator, instance, see)
    return Remark(start.note, gap.closed, min(gap.low, gap.high))
