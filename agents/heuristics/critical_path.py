"""List scheduling by upward rank."""

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
class CriticalPath(PlacementSolver):
    """Takes the ready op with the longest path to the end, and starts it on the device where it can start first.

    HLFET of Adam, Chandy, Dickson 1974 ("A comparison of list schedules for parallel processing systems"), with
    channels, memory and colocation. On unequal devices the time an op loses against its fastest device counts as a
    delay.
    """

    name: ClassVar[str] = "critical-path"
    summary: ClassVar[str] = "list scheduling by upward rank, on the device of the earliest start"
    objectives: ClassVar[frozenset[Objective]] = frozenset({Objective.STEP_TIME, Objective.PEAK_MEMORY})

    def _search(
        self, problem: PlacementProblem, evaluator: Evaluator[Placement], rng: np.random.Generator
    ) -> Remark:
        core, unit, rank = problem.simulator.core, colocation_units(problem.graph), mean_upward_rank(problem)
        return search_plans(
            problem,
            evaluator,
            lambda room: _core.highest_level_first(core, problem.allowed, unit, room, rank),
        )
