"""The best contiguous split of a pipeline, by dynamic programming over down-sets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar
from weakref import WeakKeyDictionary

import numpy as np

from ...problems import Evaluator, Objective, Placement, PlacementProblem
from ..registry import register
from ..solver import PlacementSolver, Remark
from .split_program import SplitProgram

#: Most pairs of a down-set and the devices used for it; 16 bytes each.
_MAX_STATES = 2**24
#: Programs by problem and limit: a question about their size comes before each solution.
_programs: WeakKeyDictionary[PlacementProblem, dict[int, SplitProgram]] = WeakKeyDictionary()


@register
@dataclass(frozen=True)
class Contiguous(PlacementSolver):
    """Minimises the load of the busiest device over all contiguous splits, and proves it.

    Tarnawski et al. 2020, "Efficient algorithms for device placement of DNN graph operators", section 5: a
    state is a down-set of the contracted forward graph with the devices used for it; a transition gives the
    ops between two nested down-sets to one more device, accelerator or CPU. Exponential in the width of the
    graph, so graphs with more than ``max_down_sets`` down-sets are refused.

    Attributes:
        max_down_sets: Most down-sets that are tried.
    """

    max_down_sets: int = 50_000

    name: ClassVar[str] = "dp"
    summary: ClassVar[str] = "best contiguous split by dynamic programming (Tarnawski et al. 2020)"
    objectives: ClassVar[frozenset[Objective]] = frozenset({Objective.MAX_LOAD})

    def skip_reason(self, problem: PlacementProblem) -> str | None:
        """See :meth:`PlacementSolver.skip_reason`."""
        reason = super().skip_reason(problem)
        if reason is not None:
            return reason
        micro_batches = problem.pipeline.micro_batches
        if micro_batches is not None:
            return f"minimises the load of an endless stream, not the step of {micro_batches} micro-batches"
        program = _program(problem, self.max_down_sets)
        if not program.complete:
            return f"more than {program.down_sets} down-sets; up to {self.max_down_sets} are tried"
        if program.states > _MAX_STATES:
            return f"{program.states} states ({program.down_sets} down-sets); up to {_MAX_STATES} are tried"
        return None

    def _search(
        self, problem: PlacementProblem, evaluator: Evaluator[Placement], rng: np.random.Generator
    ) -> Remark:
        limit = evaluator.budget.seconds

        def seconds_left() -> float:
            return float("inf") if limit is None else max(0.0, limit - evaluator.seconds)

        program = _program(problem, self.max_down_sets)
        split = program.solve(problem, seconds_left())
        proven = split.finished
        if program.joined.any():
            # Joining blocks is exact unless memory is short, and no split beats the one without joined
            # memory.
            bound = program.solve(problem, seconds_left(), weightless=program.joined)
            proven = split.finished and bound.finished and bound.load_ns == split.load_ns
            if not proven:
                plain = SplitProgram(problem, self.max_down_sets, reduce=False)
                if plain.complete:
                    other = plain.solve(problem, seconds_left())
                    split, proven = min(split, other, key=lambda s: s.load_ns), other.finished
        if split.device is None:
            roomiest = int(problem.cluster.capacity_bytes.argmax())
            evaluator.evaluate(Placement(np.full(problem.graph.num_ops, roomiest)))
            return Remark("no contiguous split fits the devices" if proven else "found no split that fits")
        evaluator.evaluate(Placement(split.device))
        if proven:
            return Remark(f"among contiguous splits ({program.down_sets} down-sets)", proven_optimal=True)
        return Remark("a contiguous split, not proven to be the best one")


def _program(problem: PlacementProblem, max_down_sets: int) -> SplitProgram:
    by_limit = _programs.setdefault(problem, {})
    if max_down_sets not in by_limit:
        by_limit[max_down_sets] = SplitProgram(problem, max_down_sets)
    return by_limit[max_down_sets]
