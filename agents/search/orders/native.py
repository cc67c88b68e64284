"""Runs the searches of the core under a budget, call by call."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from .... import _core
from ....problems import CurvePoint, Evaluator, Order, SchedulingProblem
from ...heuristics.orders import (
    BreadthFirst,
    DepthFirst,
    GreedyFreedBytes,
    PostOrder,
    ProgramOrder,
    SethiUllman,
)
from ...heuristics.orders.one_order import OneOrder
from ...solver import Remark

#: Rules whose orders searches start from.
STARTS: tuple[type[OneOrder], ...] = (
    ProgramOrder,
    GreedyFreedBytes,
    PostOrder,
    DepthFirst,
    SethiUllman,
    BreadthFirst,
)
#: A call to the core takes about this long, so that progress is shown and interrupts are heard.
_CALL_SECONDS = 0.05
_FIRST_CALL = 256


def evaluations_left(evaluator: Evaluator[Order], default: int) -> int | None:
    """How many evaluations a search may spend: what the budget leaves; the default if it states no limit at all."""
    if evaluator.budget.evaluations is None and evaluator.budget.seconds is None:
        return max(0, default - evaluator.evaluations)
    return evaluator.remaining


def evaluate_starts(
    problem: SchedulingProblem, evaluator: Evaluator[Order], rules: Sequence[type[OneOrder]], default: int
) -> list[tuple[str, NDArray[np.int32]]]:
    """Evaluates the orders of some rules; their names and orders, best first, each order once."""
    found: list[tuple[float, str, NDArray[np.int32]]] = []
    for rule in rules:
        if evaluator.exhausted or evaluations_left(evaluator, default) == 0 or _proven(problem, evaluator):
            break
        order = rule().order(problem)
        value = evaluator.evaluate(Order(order)).value
        if not any(np.array_equal(order, other) for _, _, other in found):
            found.append((value, rule.name, order))
    found.sort(key=lambda row: row[0])
    return [(name, order) for _, name, order in found]


def run_native(
    problem: SchedulingProblem,
    evaluator: Evaluator[Order],
    search: _core.OrderSearch,
    default: int,
    *,
    on_first_call: Callable[[float], None] | None = None,
) -> bool:
    """Runs a search until the budget is spent, or nothing better can exist.

    Args:
        problem: The problem.
        evaluator: Counts, and keeps the best order.
        search: The search.
        default: Evaluations where the budget states no limit.
        on_first_call: Told the evaluations per second of the first call.

    Returns:
        Whether the best order is proven to be optimal.
    """
    size = _FIRST_CALL
    while not (search.over or evaluator.exhausted):
        left = evaluations_left(evaluator, default)
        if left == 0:
            break
        began, call = evaluator.seconds, time.perf_counter()
        if evaluator.evaluations == 0 or evaluator.budget.seconds is None:
            seconds = np.inf  # the first evaluation is granted whatever the clock says
        else:
            seconds = max(0.0, evaluator.budget.seconds - began)
        allowed = size if left is None else min(size, left)
        spent = search.run(1 if evaluator.evaluations == 0 else allowed, seconds)
        took = max(time.perf_counter() - call, 1e-9)
        new = search.improvements
        curve = [CurvePoint(evaluations, at, float(peak)) for evaluations, at, peak in new]
        evaluator.account(spent, curve, Order(search.best_order) if new else None, began)
        if on_first_call is not None:
            on_first_call(spent / took)
            on_first_call = None
        size = max(1, min(2 * size, int(size * _CALL_SECONDS / took)))
    return search.proven


def remark(started_from: str, proven: bool) -> Remark:
    """What a search says of itself."""
    return Remark(f"started from {started_from}", proven)


def seed_of(rng: np.random.Generator) -> int:
    """A seed of the core's generators."""
    return int(rng.integers(2**63))


def target_of(problem: SchedulingProblem) -> int:
    """The peak at which a search ends."""
    return int(problem.lower_bound().value)


def _proven(problem: SchedulingProblem, evaluator: Evaluator[Order]) -> bool:
    best = evaluator.best_outcome
    return best is not None and best.ok and best.value <= problem.lower_bound().value
