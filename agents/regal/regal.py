"""REGAL as published, and its graph-as-sequence baseline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ...errors import unknown_id
from ...problems import AnyProblem, Evaluator
from ..learner import Monitor
from ..networks.documentation import lists_all_options
from ..registry import register
from ..search.options import at_least, of_type, share
from ..solver import Remark
from .base import ProposalLearner
from .learned import Learned
from .published.shape import MESSAGES, SEQUENCE, Shape

#: What rewards are compared with: the other samples of the same graph, or what a value head expects.
BASELINES = ("samples", "value")


@dataclass(frozen=True)
class ReinforceLearner(ProposalLearner):
    """A learner by REINFORCE.

    It proposes the Beta distributions that it expects most. Untrained, it learns on the problem that it is given:
    every sampled proposal is tried with a short run of BRKGA, until the budget is spent. ``fit`` learns by REINFORCE,
    a step being one proposal tried with a run of ``evaluations_per_run``; rewards are relative to a plain run from the
    same random numbers.

    Attributes:
        evaluations_per_sample: Untrained, of each run that tries a proposal.
        autoregressive: Whether a decision about an op sees its earlier ones.
        baseline: What rewards are compared with: ``"samples"``, the mean of the others of the graph, or ``"value"``,
            what a value head expects.
        anneal: Whether the learning rate falls to 0 in the course of the training.
        entropy: Weight of the entropy of decisions.
    """

    evaluations_per_sample: int = 500
    autoregressive: bool = True
    baseline: str = "samples"
    anneal: bool = True
    entropy: float = 3e-3

    network_type = Shape

    def __post_init__(self) -> None:
        at_least(1, evaluations_per_sample=self.evaluations_per_sample)
        if self.baseline not in BASELINES:
            raise unknown_id("baseline", str(self.baseline), list(BASELINES))
        at_least(2 if self.baseline == "samples" else 1, samples=self.samples)
        share(entropy=self.entropy)
        of_type(bool, "true or false", anneal=self.anneal)
        super().__post_init__()

    @classmethod
    def policy_type(cls) -> Any:
        from .published.policy import Policy

        return Policy

    def solve_trained(
        self, learned: Learned, problem: AnyProblem, evaluator: Evaluator[Any], rng: np.random.Generator
    ) -> Remark:
        from .published.solving import solve_trained

        return solve_trained(self, learned, problem, evaluator, rng)

    def solve_untrained(
        self, problem: AnyProblem, evaluator: Evaluator[Any], rng: np.random.Generator
    ) -> Remark:
        from .published.solving import solve_untrained

        return solve_untrained(self, problem, evaluator, rng)

    def train(
        self,
        problems: Sequence[AnyProblem],
        validation: Sequence[AnyProblem],
        steps: int,
        seed: int,
        monitor: Monitor | None,
    ) -> tuple[Mapping[str, NDArray[Any]], int, float | None]:
        from .published.fitting import fit

        return fit(self, problems, validation, steps, seed, monitor)


@register
@lists_all_options
@dataclass(frozen=True)
class Regal(ReinforceLearner):
    """REGAL (Paliwal et al. 2020): a graph neural network proposes from where BRKGA draws its mutants.

    Attributes:
        rounds: Rounds of messages.
        edge_messages: Whether messages see the bytes of their edge.
    """

    rounds: int = 4
    edge_messages: bool = True

    name: ClassVar[str] = "regal"
    summary: ClassVar[str] = "brkga whose mutants are drawn where a graph neural network expects good keys"

    def network(self) -> Shape:
        return Shape(
            MESSAGES,
            self.width,
            self.rounds,
            self.edge_messages,
            self.autoregressive,
            self.baseline == "value",
        )


@register
@lists_all_options
@dataclass(frozen=True)
class GraphAsSequence(ReinforceLearner):
    """REGAL with the graph as a sequence (Paliwal et al. 2020, baseline GAS): an LSTM over ops in topological order.

    The control of the graph neural network: everything else is the same.

    Attributes:
        layers: Of the LSTM.
    """

    layers: int = 1

    name: ClassVar[str] = "gas"
    summary: ClassVar[str] = "regal with a recurrent network over the ops instead of messages along edges"
    control: ClassVar[bool] = True

    def network(self) -> Shape:
        at_least(1, layers=self.layers)
        return Shape(SEQUENCE, self.width, self.layers, False, self.autoregressive, self.baseline == "value")
