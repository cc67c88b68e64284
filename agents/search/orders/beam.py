"""Beam search over the sets of ops that have run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .... import _core
from ....graphs.core_graph import core_graph
from ....problems import Evaluator, Order, SchedulingProblem
from ...registry import register
from ...solver import Remark, SchedulingSolver
from ..options import at_least
from .native import STARTS, evaluate_starts, run_order_search, target_of

#: Pairs that a beam looks at without a budget: some ten seconds.
_MOST_PAIRS = 10**9
_MOST_OPS = 20_000
#: Width of the beam before the wide one: it often finds a peak that the wide one then need not look above.
_NARROW = 16


@register
@dataclass(frozen=True)
class Beam(SchedulingSolver):
    """Builds orders op by op and keeps the best partial ones of each length: smallest peak, then least live bytes.

    Partial orders of the same ops are one state, with the smaller peak of the two (dominance). An op that neither
    raises the peak nor leaves more bytes than it found runs at once: nothing better is lost. What cannot beat the
    best order known is dropped; if nothing else was, the best order is proven to be optimal.

    Looking at as many (state, next op) pairs as the graph has ops is one evaluation: an evaluation of an order looks
    at as many. Not random.

    Attributes:
        width: Partial orders of one length that are kept.
        evaluations: Evaluations where the budget states no limit; fewer where that would be over 10^9 pairs.
    """

    width: int = 256
    evaluations: int = 100_000

    name: ClassVar[str] = "beam"
    summary: ClassVar[str] = "beam search over sets of ops that have run, with dominance"

    def __post_init__(self) -> None:
        at_least(1, width=self.width, evaluations=self.evaluations)

    def skip_reason(self, problem: SchedulingProblem) -> str | None:
        """Why not to try it: a graph so large that a beam takes minutes."""
        reason = super().skip_reason(problem)
        if reason is None and len(problem.ops) > _MOST_OPS:
            reason = f"{len(problem.ops)} ops to order; at most {_MOST_OPS}"
        return reason

    def _search(
        self, problem: SchedulingProblem, evaluator: Evaluator[Order], rng: np.random.Generator
    ) -> Remark:
        most = max(1, min(self.evaluations, _MOST_PAIRS // len(problem.ops)))
        [(_, order), *_] = evaluate_starts(problem, evaluator, STARTS, most)
        widths = [width for width in (_NARROW,) if width < self.width] + [self.width]
        search = _core.OrderBeam(core_graph(problem.graph), order, target_of(problem), widths)
        proven = run_order_search(evaluator, search, most)
        return Remark(f"width {self.width}", proven)
