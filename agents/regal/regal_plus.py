"""``regal-plus``: proposals from where ops stand in good solutions, learned by expert iteration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ...problems import AnyProblem, Evaluator
from ..learner import Monitor
from ..networks.documentation import lists_all_options
from ..registry import register
from ..search.options import at_least, of_type, share
from ..solver import Remark
from .base import ProposalLearner
from .learned import Learned
from .plus.shape import Shape

if TYPE_CHECKING:
    from .plus.proposals import Placing

#: Ops of the largest graph that it looks at: attention takes memory and time with the square.
MOST_OPS = 5_000


@register
@lists_all_options
@dataclass(frozen=True)
class RegalPlus(ProposalLearner):
    """Our own REGAL: proposals from where a network expects each op in a good solution, and how sure it is.

    The network says the position of each op in the order, its spread, and the probability of each device. It learns by
    expert iteration: annealing improves on what is drawn from it, what the search has changed without need is taken
    back, and the network learns the result. So of the many good solutions of a graph it learns one, that which is
    nearest to what it says already; their average would be none of them. ``fit`` makes one such search per step.
    Proposals are for mutants and for the first generation. Untrained, it runs BRKGA without proposals.

    Attributes:
        layers: Rounds of messages and attention.
        for_mutants: Whether proposals are for mutants, too.
        spread: Factor on the standard deviation of what is drawn.
        uniform_share: Share of chromosomes that are drawn uniformly all the same.
        flips: In training, share of groups that are drawn on the less likely device.
        moves: In training, moves of a search for an order.
        search_evaluations: In training, evaluations of a search for devices and priorities.
        temperature: Of these searches at their start, as a share of the value.
        reconcile: Whether what a search has changed without need is taken back.
        nearness: How much worse a solution may be, as a share of its value, for being nearer to what the network says:
            weight of the mean distance of positions and devices.
        distilled: Share of the training, its beginning, in which the policy learns, instead, what a teacher finds of
            each problem: once, and far from anything learned.
        lessons: Moves or evaluations of each search of the teacher.
        policy_gradient: Weight of the loss of REINFORCE on the positions that are drawn.
        messages: Whether the network has messages along edges beside its attention.
    """

    initial: bool = True
    samples: int = 32
    validate_every: int = 200
    layers: int = 5
    for_mutants: bool = True
    spread: float = 1.0
    uniform_share: float = 0.25
    flips: float = 0.05
    moves: int = 5_000
    search_evaluations: int = 1_500
    temperature: float = 0.005
    reconcile: bool = True
    nearness: float = 0.1
    distilled: float = 0.0
    lessons: int = 60_000
    policy_gradient: float = 0.0
    messages: bool = True

    name: ClassVar[str] = "regal-plus"
    summary: ClassVar[str] = "brkga that draws where a graph neural network expects ops in good solutions"
    network_type = Shape

    def __post_init__(self) -> None:
        of_type(bool, "true or false", for_mutants=self.for_mutants, reconcile=self.reconcile)
        share(
            uniform_share=self.uniform_share, flips=self.flips, nearness=self.nearness,
            temperature=self.temperature, spread=self.spread, distilled=self.distilled,
            policy_gradient=self.policy_gradient,
        )  # fmt: skip
        at_least(
            1,
            most=2**31 - 1,
            moves=self.moves,
            search_evaluations=self.search_evaluations,
            lessons=self.lessons,
        )
        super().__post_init__()

    def skip_reason(self, problem: AnyProblem) -> str | None:
        """Why not to try it: as of every learner of proposals, and graphs that are too large."""
        reason = super().skip_reason(problem)
        ops = problem.graph.num_ops
        if reason is None and ops > MOST_OPS:
            reason = f"looks at graphs of at most {MOST_OPS:,} ops, and this one has {ops:,}"
        return reason

    def network(self) -> Shape:
        return Shape(self.width, self.layers, self.messages)

    def placing(self) -> Placing:
        """Where BRKGA uses what the network expects."""
        from .plus.proposals import Placing

        return Placing(self.initial, self.for_mutants, self.spread, self.uniform_share)

    @classmethod
    def policy_type(cls) -> Any:
        from .plus.policy import Policy

        return Policy

    def solve_trained(
        self, learned: Learned, problem: AnyProblem, evaluator: Evaluator[Any], rng: np.random.Generator
    ) -> Remark:
        from .plus.fitting import solve

        return solve(self, learned, problem, evaluator, rng)

    def solve_untrained(
        self, problem: AnyProblem, evaluator: Evaluator[Any], rng: np.random.Generator
    ) -> Remark:
        remark = self.brkga()._search(problem, evaluator, rng)
        return replace(remark, note=f"untrained, so no proposals: {remark.note}")

    def train(
        self,
        problems: Sequence[AnyProblem],
        validation: Sequence[AnyProblem],
        steps: int,
        seed: int,
        monitor: Monitor | None,
    ) -> tuple[Mapping[str, NDArray[Any]], int, float | None]:
        from .plus.fitting import fit

        return fit(self, problems, validation, steps, seed, monitor)
