"""Runs the searches of the core under a budget, call by call."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol, TypeVar

import numpy as np

from ...problems import CurvePoint, Evaluator

SolutionT = TypeVar("SolutionT")

#: A call to the core takes about this long, so that progress is shown and interrupts are heard.
_CALL_SECONDS = 0.05
_FIRST_CALL = 256


class NativeSearch(Protocol):
    """A search whose loop runs in the core; it goes on where the last call left it."""

    @property
    def over(self) -> bool:
        """Whether there is nothing left to do."""
        ...

    @property
    def proven(self) -> bool:
        """Whether nothing better can exist."""
        ...

    def run(self, evaluations: int, seconds: float) -> int:
        """Spends up to this many evaluations within a time; returns how many it spent."""
        ...


def evaluations_left(evaluator: Evaluator[SolutionT], default: int) -> int | None:
    """How many evaluations a search may spend: what the budget leaves; the default if it states no limit at all."""
    if evaluator.budget.evaluations is None and evaluator.budget.seconds is None:
        return max(0, default - evaluator.evaluations)
    return evaluator.remaining


def run_native(
    evaluator: Evaluator[SolutionT],
    search: NativeSearch,
    default: int,
    found: Callable[[], tuple[list[CurvePoint], SolutionT | None]],
    *,
    on_first_call: Callable[[float], None] | None = None,
) -> bool:
    """Runs a search until the budget is spent, or nothing better can exist.

    Args:
        evaluator: Counts, and keeps the best solution.
        search: The search.
        default: Evaluations where the budget states no limit.
        found: What the last call found: its curve, and its best solution if there is a new one.
        on_first_call: Told the evaluations per second of the first call.

    Returns:
        Whether the best solution is proven to be optimal.
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
        evaluator.account(spent, *found(), began)
        if on_first_call is not None:
            on_first_call(spent / took)
            on_first_call = None
        size = max(1, min(2 * size, int(size * _CALL_SECONDS / took)))
    return search.proven


def seed_of(rng: np.random.Generator) -> int:
    """A seed of the core's generators."""
    return int(rng.integers(2**63))
