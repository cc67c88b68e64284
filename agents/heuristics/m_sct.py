"""m-SCT: small communication times under memory limits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ... import _core
from ...problems import Evaluator, Objective, Placement, PlacementProblem
from ...problems.grouping import colocation_units
from ..registry import register
from ..solver import PlacementSolver, Remark
from .favourite_children import favourite_children, only_children, op_edges
from .list_planning import mean_cost_ns, mean_transfer_ns, mean_upward_rank, search_plans


@register
@dataclass(frozen=True)
class MSct(PlacementSolver):
    """m-ETF in which a device waits for the favourite child of its last op if that can start nowhere sooner.

    Jeon et al. 2020 ("Baechi", section 3.3) on Hanen and Munier 1995 ("An approximation algorithm for scheduling
    dependent tasks on m processors with small communication delays"). Favourite children come from a linear
    program; while a device waits, only ops whose inputs are everywhere in time may use it.

    Attributes:
        largest_program: Most edges of the linear program; chains count as one op.
    """

    largest_program: int = 10_000

    name: ClassVar[str] = "m-sct"
    summary: ClassVar[str] = "earliest task first that waits for favourite children (Baechi)"
    objectives: ClassVar[frozenset[Objective]] = frozenset({Objective.STEP_TIME, Objective.PEAK_MEMORY})

    def skip_reason(self, problem: PlacementProblem) -> str | None:
        """Says if the linear program would be too large."""
        reason = super().skip_reason(problem)
        if reason is not None:
            return reason
        edges = op_edges(problem.graph, np.zeros(problem.graph.num_tensors, np.int64))
        size = int((~only_children(problem.graph, edges)).sum())
        if size <= self.largest_program:
            return None
        return (
            f"its linear program has {size:,} edges; above {self.largest_program:,} it may take minutes "
            "(option largest_program)"
        )

    def _search(
        self, problem: PlacementProblem, evaluator: Evaluator[Placement], rng: np.random.Generator
    ) -> Remark:
        core, unit, rank = problem.simulator.core, colocation_units(problem.graph), mean_upward_rank(problem)
        favourite = favourite_children(problem.graph, mean_cost_ns(problem), mean_transfer_ns(problem))
        return search_plans(
            problem,
            evaluator,
            lambda room: _core.earliest_task_first(core, problem.allowed, unit, room, rank, favourite),
        )
