"""HEFT: heterogeneous earliest finish time."""

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
class Heft(PlacementSolver):
    """Takes ops by upward rank (mean costs and transfers) and puts each into the gap where it ends first.

    Topcuoglu, Hariri, Wu 2002 ("Performance-effective and low-complexity task scheduling for heterogeneous
    computing", section 5). Ours: transfers wait for, and are put into, gaps of the cluster's channels; devices
    without room are closed; colocation.
    """

    name: ClassVar[str] = "heft"
    summary: ClassVar[str] = "earliest finish by upward rank, with insertion"
    objectives: ClassVar[frozenset[Objective]] = frozenset({Objective.STEP_TIME, Objective.PEAK_MEMORY})

    def _search(
        self, problem: PlacementProblem, evaluator: Evaluator[Placement], rng: np.random.Generator
    ) -> Remark:
        core, unit, rank = problem.simulator.core, colocation_units(problem.graph), mean_upward_rank(problem)
        plan = _core.earliest_finish_with_insertion
        return search_plans(problem, evaluator, lambda room: plan(core, problem.allowed, unit, room, rank))
