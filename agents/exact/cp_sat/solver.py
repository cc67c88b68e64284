"""``cp-sat``: small problems of both types, by a solver of constraints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ....problems import Evaluator, Objective, Order, Placement, PlacementProblem, SchedulingProblem
from ...registry import register
from ...search.options import MOST_THREADS, at_least, share
from ...solver import Remark, Solver
from .engine import MISSING, installed
from .order_proof import prove_order, too_large
from .placement_proof import not_modelled, prove_placement


@register
@dataclass(frozen=True)
class CpSat(Solver[PlacementProblem | SchedulingProblem, Placement | Order]):
    """OR-tools' CP-SAT, from the best solution of a search down and from the bound up; needs ``opgym[solvers]``.

    For orders (at most 1,000 ops), the model decides of two ops which comes first; what it says of peaks is exact,
    in-place ops included. Peaks of most graphs of 50 ops are proven within ten seconds, those of many with 100 ops
    within a minute.

    For placements (``step_time`` and ``peak_memory``; at most 60 ops, and 240 ops times devices), every run of the
    simulator is a solution of the model, so the bound holds for every placement and every schedule. The simulator
    never lets a device wait while an op is ready, the model may: a placement is proven to be optimal only if its
    simulated value meets the bound.

    The result has the proven bound even where a gap is left. One worker and no ``seconds`` in the budget: the same
    seed gives the same result on every machine. Every solution that the model finds is one evaluation.

    Attributes:
        effort: Most work of CP-SAT where the budget states no seconds, in its deterministic time: some seconds a unit.
        workers: Threads of CP-SAT; with more than one, results differ from run to run.
        start_evaluations: Most evaluations of the search that comes first: ``order-search`` or ``pair-annealing``.
    """

    effort: float = 5.0
    workers: int = 1
    start_evaluations: int = 20_000

    name: ClassVar[str] = "cp-sat"
    summary: ClassVar[str] = "small problems to a proven optimum, or a proven bound, by OR-tools' CP-SAT"
    proves: ClassVar[bool] = True
    problem_types: ClassVar[tuple[type[Any], ...]] = (PlacementProblem, SchedulingProblem)
    #: Objectives of placements it can work on.
    objectives: ClassVar[frozenset[Objective]] = frozenset({Objective.STEP_TIME, Objective.PEAK_MEMORY})

    def __post_init__(self) -> None:
        at_least(1, most=MOST_THREADS, workers=self.workers)
        at_least(1, start_evaluations=self.start_evaluations)
        share(effort=self.effort)

    def skip_reason(self, problem: PlacementProblem | SchedulingProblem) -> str | None:
        """Why not to try it: OR-tools is absent, or the model would be too large or would not say what is meant."""
        reason = super().skip_reason(problem)
        if reason is not None:
            return reason
        if not installed():
            return MISSING
        if isinstance(problem, SchedulingProblem):
            return too_large(problem)
        if problem.objective not in self.objectives:
            return f"does not optimise {problem.objective}"
        return not_modelled(problem)

    def _search(
        self,
        problem: PlacementProblem | SchedulingProblem,
        evaluator: Evaluator[Any],
        rng: np.random.Generator,
    ) -> Remark:
        options: dict[str, Any] = {
            "effort": self.effort,
            "workers": self.workers,
            "start_evaluations": self.start_evaluations,
        }
        if isinstance(problem, SchedulingProblem):
            return prove_order(problem, evaluator, rng, **options)
        return prove_placement(problem, evaluator, rng, **options)
