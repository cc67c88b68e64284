"""Structured simulated annealing: the baseline that everything learned has to face."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ...problems import Evaluator, Placement, PlacementProblem
from ..registry import register, solver_class
from ..solver import PlacementSolver, Remark
from .clusters import Level, metis_levels, structured_levels, unit_level, unit_sequence
from .options import at_least, share
from .walk import Schedule, anneal

#: Solvers whose best placement is the start; together a few dozen evaluations.
_STARTS = ("single", "human-expert", "metis", "m-topo", "critical-path", "m-etf", "heft")


@dataclass(frozen=True)
class _AnnealingBase(PlacementSolver):
    """Simulated annealing over placements (Kirkpatrick et al. 1983), from the best heuristic on.

    A move takes a cluster of ops, a stretch of the topological order or a single unit, all of it or its part on one
    device, to a random device or to that of a neighbour; or it exchanges parts of two clusters; or it changes the
    order (critical-path, program, that of the start). A worse placement is accepted with probability
    ``exp(-(worse - now) / T)``, where ``T`` falls from ``temperature`` x the value now to 0 with the square of the
    share of the budget that is left. What does not fit counts as ``1.5 + 5 x overflow share`` times its value, or
    times the best value that fits if that is more, and what fits is always accepted after it. The best placement
    seen is the result; if it meets the lower bound, the search stops.

    Without ``seconds`` in the budget the course depends on the generator alone.

    Attributes:
        evaluations: Evaluations where the budget states no limit; those of the heuristics are among them.
        temperature: Of the start, as a share of the value.
    """

    evaluations: int = 5_000
    temperature: float = 0.004

    anytime: ClassVar[bool] = True
    starts: ClassVar[tuple[str, ...]]

    def __post_init__(self) -> None:
        at_least(1, evaluations=self.evaluations)
        share(temperature=self.temperature)

    def levels(self, problem: PlacementProblem) -> list[Level]:
        """The clusters that moves take."""
        raise NotImplementedError

    def sequence(self, problem: PlacementProblem) -> NDArray[np.int32] | None:
        """Units in an order of which moves take stretches, ``[units]``; ``None``: they take none."""
        return None

    def _search(
        self, problem: PlacementProblem, evaluator: Evaluator[Placement], rng: np.random.Generator
    ) -> Remark:
        schedule = Schedule(evaluator, self.evaluations, self.temperature)
        started_from = self._start(problem, evaluator, rng, schedule)
        if schedule.over:
            return Remark(f"only {started_from} was tried" if evaluator.evaluations else "")
        return anneal(
            problem, evaluator, rng, schedule, self.levels(problem), self.sequence(problem), started_from
        )

    def _start(
        self,
        problem: PlacementProblem,
        evaluator: Evaluator[Placement],
        rng: np.random.Generator,
        schedule: Schedule,
    ) -> str:
        """Runs the heuristics; the name of the best one."""
        best = ""
        for name in self.starts:
            solver = solver_class(name)()
            if solver.skip_reason(problem) is not None:
                continue
            if schedule.over:
                break
            before = evaluator.best
            solver._search(problem, evaluator, rng)
            if evaluator.best is not before:
                best = name
        return best


@register
@dataclass(frozen=True)
class Annealing(_AnnealingBase):
    """Annealing that moves layers, their directions and parameters, and METIS parts."""

    __doc__ = f"{__doc__}\n\n{inspect.getdoc(_AnnealingBase)}"

    name: ClassVar[str] = "annealing"
    summary: ClassVar[str] = (
        "simulated annealing over layers, parameters and METIS parts, from the best heuristic"
    )
    starts: ClassVar[tuple[str, ...]] = _STARTS

    def levels(self, problem: PlacementProblem) -> list[Level]:
        """Blocks by direction and parameter, and METIS parts."""
        return [*structured_levels(problem), *metis_levels(problem), unit_level(problem)]

    def sequence(self, problem: PlacementProblem) -> NDArray[np.int32]:
        """Units by their first forward op in a topological order."""
        return unit_sequence(problem)


@register
@dataclass(frozen=True)
class AnnealingMetis(_AnnealingBase):
    """Annealing that moves METIS parts and single units only, and knows nothing of layers (nor does its start)."""

    name: ClassVar[str] = "annealing-metis"
    summary: ClassVar[str] = (
        "simulated annealing over METIS parts alone, from the best heuristic that knows no layers"
    )
    starts: ClassVar[tuple[str, ...]] = tuple(name for name in _STARTS if name != "human-expert")

    def levels(self, problem: PlacementProblem) -> list[Level]:
        """METIS parts and single units."""
        return [*metis_levels(problem), unit_level(problem)]
