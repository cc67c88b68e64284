"""m-ETF: earliest task first under memory limits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ... import _core
from ...problems import Evaluator, Objective, Placement, PlacementProblem
from ...problems.grouping import colocation_units
from ..registry import register
from ..solver import PlacementSolver, Remark
from .list_planning import mean_upward_rank, search_plans


@register
@dataclass(frozen=True)
class MEtf(PlacementSolver):
    """Again and again starts the (ready op, device) pair that can start first, among devices with room.

    Jeon et al. 2020 ("Baechi: fast device placement of machine learning graphs", section 3.2) on Hwang et al. 1989
    ("Scheduling precedence graphs in systems with interprocessor communication times"). Ours: starts model the
    cluster's channels; ties go to the higher upward rank; memory is freed when all consumers of a tensor are
    decided; on unequal devices the time an op loses against its fastest device counts as a delay.
    """

    name: ClassVar[str] = "m-etf"
    summary: ClassVar[str] = "earliest task first under memory limits (Baechi)"
    objectives: ClassVar[frozenset[Objective]] = frozenset({Objective.STEP_TIME, Objective.PEAK_MEMORY})

    def _search(
        self, problem: PlacementProblem, evaluator: Evaluator[Placement], rng: np.random.Generator
    ) -> Remark:
        core, unit, rank = problem.simulator.core, colocation_units(problem.graph), mean_upward_rank(problem)
        return search_plans(
            problem,
            evaluator,
            lambda room: _core.earliest_task_first(core, problem.allowed, unit, room, rank),
        )
