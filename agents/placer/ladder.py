"""The policy with more evaluations: the best of samples, annealing that it starts and guides, and learning on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ...problems import Evaluator, PlacementProblem
from ..networks.documentation import lists_all_options
from ..networks.placing.judging import Counted
from ..registry import register
from ..search.clusters import metis_levels, structured_levels, unit_level, unit_sequence
from ..search.options import at_least, at_most_one, share
from ..search.walk import Schedule, anneal
from ..solver import Remark
from .gdp_plus import GdpPlus

#: Placements that are drawn at once.
_BATCH = 20


@register
@lists_all_options
@dataclass(frozen=True)
class GdpPlusSamples(GdpPlus):
    """The best of 100 placements of ``gdp-plus``: its most likely one, and others that are drawn."""

    evaluations: int = 100

    name: ClassVar[str] = "gdp-plus-100"
    summary: ClassVar[str] = "the best of 100 placements that the policy of gdp-plus draws"

    def _search_with(
        self, placer: Any, problem: PlacementProblem, evaluator: Evaluator[Any], rng: np.random.Generator
    ) -> Remark:
        judge = Counted(problem, evaluator, self.evaluations)
        draw(placer, placer.instance(problem), judge, rng, None)
        return Remark("zero-shot, then drawn")


@register
@lists_all_options
@dataclass(frozen=True)
class GdpPlusAnneal(GdpPlus):
    """Annealing from the best of some placements of ``gdp-plus``, which makes some of the moves, too.

    The other moves are those of ``annealing``; no heuristic is among what it starts from.

    Attributes:
        starts: Placements that are drawn before, at most a tenth of the budget.
        temperature: Of the start, as a share of the value.
        learned_moves: Share of moves that the policy makes.
    """

    starts: int = 100
    temperature: float = 0.004
    learned_moves: float = 0.2

    name: ClassVar[str] = "gdp-plus-anneal"
    summary: ClassVar[str] = "annealing that the policy of gdp-plus starts, and whose moves it makes in part"

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(1, starts=self.starts)
        share(temperature=self.temperature)
        at_most_one(learned_moves=self.learned_moves)

    def _search_with(
        self, placer: Any, problem: PlacementProblem, evaluator: Evaluator[Any], rng: np.random.Generator
    ) -> Remark:
        from .moves import LearnedMoves

        schedule = Schedule(evaluator, self.evaluations, self.temperature)
        instance = placer.instance(problem)
        starts = min(self.starts, max(1, (evaluator.budget.evaluations or self.evaluations) // 10))
        draw(placer, instance, Counted(problem, evaluator, self.evaluations), rng, starts)
        if schedule.over:
            return Remark("zero-shot, then drawn")
        return anneal(
            problem, evaluator, rng, schedule,
            [*structured_levels(problem), *metis_levels(problem), unit_level(problem)], unit_sequence(problem),
            "placements of the policy", LearnedMoves(placer, instance, problem, self.learned_moves),
        )  # fmt: skip


@register
@lists_all_options
@dataclass(frozen=True)
class GdpPlusFinetune(GdpPlus):
    """The policy of ``gdp-plus``, which goes on learning on the problem that it is given."""

    finetune: int = 300

    name: ClassVar[str] = "gdp-plus-finetune"
    summary: ClassVar[str] = "the policy of gdp-plus learns on, on the problem that it is given"


def draw(placer: Any, instance: Any, judge: Counted, rng: np.random.Generator, count: int | None) -> None:
    """Tries the most likely placement, then others that are drawn.

    Args:
        placer: Has the policy.
        instance: The problem as it reads it.
        judge: Counts, and ends the search where nothing is left.
        rng: Source of all randomness.
        count: Placements to try; ``None``: until nothing is left.
    """
    judge(placer.greedy(instance))
    tried = 1
    while not judge.over and (count is None or tried < count):
        batch = _BATCH if count is None else min(_BATCH, count - tried)
        for device in placer.sampled(instance, batch, rng):
            if judge.over:
                return
            judge(device)
        tried += batch
