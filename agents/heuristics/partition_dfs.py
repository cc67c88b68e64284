"""Graph partitioning, then depth-first order: a baseline of REGAL."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ...graphs import Graph
from ...problems import Evaluator, Objective, Order, Placement, PlacementProblem, SchedulingProblem
from ..registry import register
from ..solver import Remark, Solver
from .metis import MEMORY_WEIGHTS, partition
from .orders import DepthFirst


@register
@dataclass(frozen=True)
class PartitionDfs(Solver[PlacementProblem | SchedulingProblem, Placement | Order]):
    """Splits the graph between the devices with METIS, and runs the ops of each depth first; ``dfs`` on one device.

    The baseline "graph partitioning + DFS" of REGAL (Paliwal et al. 2020). Parts are those of ``metis``, priorities the
    positions in the order of ``dfs``, whatever the devices. Parts are balanced by bytes where peak memory is the
    objective; for step time by time, then by both and by bytes alone, until something fits.

    Attributes:
        seed: METIS's own; the result does not depend on the solver's generator.
    """

    seed: int = 1

    name: ClassVar[str] = "partition-dfs"
    summary: ClassVar[str] = "a part of the graph for each device (METIS), in depth-first order"
    control: ClassVar[bool] = True
    problem_types = (PlacementProblem, SchedulingProblem)
    #: Objectives of placements that see the order.
    objectives: ClassVar[frozenset[Objective]] = frozenset({Objective.STEP_TIME, Objective.PEAK_MEMORY})

    def skip_reason(self, problem: PlacementProblem | SchedulingProblem) -> str | None:
        """Why not to try it: an objective that is not simulated, which has no use for an order."""
        reason = super().skip_reason(problem)
        if (
            reason is None
            and isinstance(problem, PlacementProblem)
            and problem.objective not in self.objectives
        ):
            reason = f"does not optimise {problem.objective}"
        return reason

    def _search(
        self,
        problem: PlacementProblem | SchedulingProblem,
        evaluator: Evaluator[Placement | Order],
        rng: np.random.Generator,
    ) -> Remark:
        if isinstance(problem, SchedulingProblem):
            evaluator.evaluate(Order(DepthFirst().order(problem)))
            return Remark()
        priority = depth_first_priority(problem.graph)
        weights = MEMORY_WEIGHTS[-1:] if problem.objective is Objective.PEAK_MEMORY else MEMORY_WEIGHTS
        for memory_weight in weights:
            outcome = evaluator.evaluate(Placement(partition(problem, memory_weight, self.seed), priority))
            if outcome.ok or evaluator.exhausted:
                break
        return Remark("balanced by " + {0.0: "time", 1.0: "bytes"}.get(memory_weight, "time and bytes"))


def depth_first_priority(graph: Graph) -> NDArray[np.float64]:
    """Priorities that run ops in the order of ``dfs``, ``[ops]``; variables, which take no time, come first."""
    order = DepthFirst().order(SchedulingProblem(graph))
    priority = np.ones(graph.num_ops)
    priority[order] = -np.arange(len(order), dtype=np.float64)
    return priority
