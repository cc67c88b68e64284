"""Local search on priority keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .... import _core
from ....graphs.core_graph import core_graph
from ....problems import Evaluator, Order, SchedulingProblem
from ...heuristics.orders import GreedyFreedBytes
from ...registry import register
from ...solver import Remark, SchedulingSolver
from ..native import seed_of
from ..options import at_least
from .native import evaluate_starts, remark, run_order_search, target_of


@register
@dataclass(frozen=True)
class KeySearch(SchedulingSolver):
    """Local search on one key per op: the device runs the ready op of the highest key.

    The same representation as BRKGA's, so the two compare at equal evaluations. It starts with the positions of
    ``greedy-freed-bytes``; a move gives one to three ops a random key or shifts theirs by up to 0.05 of the range, and
    stays if the peak is not larger.

    Attributes:
        evaluations: Evaluations where the budget states no limit; that of the start is among them.
    """

    evaluations: int = 5_000

    name: ClassVar[str] = "key-search"
    summary: ClassVar[str] = "local search on priority keys, from greedy-freed-bytes"
    anytime: ClassVar[bool] = True

    def __post_init__(self) -> None:
        at_least(1, evaluations=self.evaluations)

    def _search(
        self, problem: SchedulingProblem, evaluator: Evaluator[Order], rng: np.random.Generator
    ) -> Remark:
        [(name, order)] = evaluate_starts(problem, evaluator, (GreedyFreedBytes,), self.evaluations)
        search = _core.KeyDescent(core_graph(problem.graph), order, seed_of(rng), target_of(problem))
        proven = run_order_search(evaluator, search, self.evaluations)
        return remark(name, proven)
