"""Searches over orders: where they start, and how they run."""

from __future__ import annotations

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
from ..native import evaluations_left, run_native

#: Rules whose orders searches start from.
STARTS: tuple[type[OneOrder], ...] = (
    ProgramOrder,
    GreedyFreedBytes,
    PostOrder,
    DepthFirst,
    SethiUllman,
    BreadthFirst,
)


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


def run_order_search(
    evaluator: Evaluator[Order],
    search: _core.OrderSearch,
    default: int,
    *,
    on_first_call: Callable[[float], None] | None = None,
) -> bool:
    """:func:`~agents.search.native.run_native` for searches over orders."""

    def found() -> tuple[list[CurvePoint], Order | None]:
        new = search.improvements
        curve = [CurvePoint(evaluations, at, float(peak)) for evaluations, at, peak in new]
        return curve, Order(search.best_order) if new else None

    return run_native(evaluator, search, default, found, on_first_call=on_first_call)


def remark(started_from: str, proven: bool) -> Remark:
    """What a search says of itself."""
    return Remark(f"started from {started_from}", proven)


def target_of(problem: SchedulingProblem) -> int:
    """The peak at which a search ends."""
    return int(problem.lower_bound().value)


def _proven(problem: SchedulingProblem, evaluator: Evaluator[Order]) -> bool:
    best = evaluator.best_outcome
    return best is not None and best.ok and best.value <= problem.lower_bound().value
