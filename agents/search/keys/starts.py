"""Solutions of other solvers, from which searches over keys start."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from ....errors import InvalidProblemError
from ....problems import BudgetExhausted, CurvePoint, Evaluator, Order, Placement
from ...registry import solver_class
from ..native import NativeSearch, evaluations_left, run_native
from .encoding import KeyEncoding

KeyEvaluator = Evaluator[Any]


def evaluate_starts(
    encoding: KeyEncoding,
    evaluator: KeyEvaluator,
    names: Sequence[str],
    rng: np.random.Generator,
    default: int,
) -> list[tuple[str, Placement | Order]]:
    """Runs solvers within the budget; their names and solutions, best first.

    Args:
        encoding: Of the problem.
        evaluator: Counts what they spend.
        names: Of solvers; one that does not apply to the problem is left out.
        rng: For those that draw.
        default: Evaluations where the budget states no limit.
    """
    problem: Any = encoding.problem
    found: list[tuple[tuple[int, float, float], str, Placement | Order]] = []
    for name in names:
        solver = solver_class(name)()
        left = evaluations_left(evaluator, default)
        if evaluator.exhausted or left == 0:
            break
        if solver.skip_reason(problem) is not None:
            continue
        # One that gives up half-way leaves what it has found.
        with suppress(BudgetExhausted, InvalidProblemError), evaluator.share(left) as own:
            solver._search(problem, own, rng)
        if own.best is not None and own.best_outcome is not None:
            found.append((own.best_outcome.sort_key, name, own.best))
    found.sort(key=lambda row: row[0])
    return [(name, solution) for _, name, solution in found]


def run_key_search(
    encoding: KeyEncoding, evaluator: KeyEvaluator, search: Any, default: int, **options: Any
) -> bool:
    """:func:`~agents.search.native.run_native` for searches over keys."""

    def found() -> tuple[list[CurvePoint], Placement | Order | None]:
        new = search.improvements
        curve = [CurvePoint(n, at, float(value)) for n, at, overflow, value in new if overflow <= 0]
        return curve, encoding.decode(search.best_keys) if new else None

    native: NativeSearch = search
    return run_native(evaluator, native, default, found, **options)
