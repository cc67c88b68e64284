"""REINFORCE on a bandit: a graph is a context, a proposal an action, a run of BRKGA with it the reward."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ....problems import AnyProblem
from ... import metrics
from ...search.keys import Proposal
from ..training import ProposalTraining
from ..trials import Trial, Trials
from .beta_heads import decisions_of
from .instance import Instance, proposal_of
from .policy import Batch, Policy
from .shape import Shape

#: Advantages beyond so many standard deviations count as that many: an end that does not fit is far off the others.
_MOST_ADVANTAGE = 3.0
#: Spread of the rewards of a graph below which all its proposals are about as good: half a per cent.
_LEAST_SPREAD = 0.005
#: Weight of the loss of the value head.
_VALUE_WEIGHT = 0.5
#: Streams of random numbers.
_WEIGHTS, _ORDER, _UPDATE = range(3)


@dataclass(frozen=True)
class Recipe:
    """How to train.

    Attributes:
        network: Shape of the policy.
        initial: Whether proposals are for the first generation, too.
        graphs: Graphs of an update.
        samples: Proposals drawn for each of them.
        learning_rate: Step size of Adam.
        anneal: Whether it falls to 0 in the course of the training.
        entropy: Weight of the entropy of decisions, in what is maximised.
        validate_every: Updates between two looks at the validation problems.
        groups: What shares a device, as of ``brkga``.
        transfer_keys: Whether transfers have keys, as of ``brkga``.
    """

    network: Shape
    initial: bool
    graphs: int
    samples: int
    learning_rate: float
    anneal: bool
    entropy: float
    validate_every: int
    groups: str | None
    transfer_keys: bool


def new_policy(network: Shape, seed: int) -> Policy:
    """A policy with random weights."""
    return Policy.untrained(network, _torch_seed(np.random.default_rng([seed, _WEIGHTS])))


class Reinforce(ProposalTraining[Instance]):
    """Training by REINFORCE.

    Args:
        recipe: How to train.
        policy: What to train; changed in place.
        problems: What to learn from; read where they are drawn, so they may be a sequence that makes them.
        validation: What to choose weights by; empty: the last ones are taken.
        trials: Makes the runs.
        steps: Proposals to try; the last update is taken to its end.
        seed: Of all randomness.
    """

    def __init__(
        self,
        recipe: Recipe,
        policy: Policy,
        problems: Sequence[AnyProblem],
        validation: Sequence[AnyProblem],
        trials: Trials,
        steps: int,
        seed: int,
    ) -> None:
        self._recipe, self._policy, self._problems = recipe, policy, problems
        super().__init__(
            policy,
            torch.optim.Adam(policy.parameters(), lr=recipe.learning_rate),
            [self._instance(problem) for problem in validation],
            trials,
            steps=steps,
            steps_per_update=recipe.graphs * recipe.samples,
            validate_every=recipe.validate_every,
            seed=seed,
        )

    def _proposal(self, instance: Instance) -> Proposal:
        return proposal_of(instance, self._policy.propose(instance), self._recipe.initial)

    def _update(self) -> dict[str, float]:
        recipe, rng = self._recipe, np.random.default_rng([self._seed, _UPDATE, self._updates])
        instances = [
            self._instance(self._problems[i]) for i in self._drawn(len(self._problems), recipe.graphs, _ORDER)
        ]
        batch = Batch.of(instances)
        nodes = self._policy.encoder(batch.graphs)
        generator = torch.Generator().manual_seed(_torch_seed(rng))
        with torch.no_grad():
            bins = self._policy.heads.sample(nodes, batch.two_devices, recipe.samples, generator)
        rewards, fits = self._rewards(instances, bins, rng)
        advantage, value_loss = self._advantage(batch, nodes, rewards)
        log_prob, entropy = self._policy.heads.log_prob(nodes, batch.two_devices, bins)
        # Per decision, so that a large graph does not count for more than a small one.
        share = batch.mean_of(decisions_of(batch.two_devices))
        policy_loss = -(advantage * batch.mean_of(log_prob) / share).mean()
        decided = (batch.mean_of(entropy) / share).mean()
        loss = policy_loss - recipe.entropy * decided + _VALUE_WEIGHT * value_loss
        self._step(loss, recipe.learning_rate * (self._left if recipe.anneal else 1.0))
        line = {
            metrics.REWARD.name: float(rewards.mean()),
            metrics.FEASIBLE_SHARE.name: fits,
            metrics.LEARNING_RATE.name: float(self._optimizer.param_groups[0]["lr"]),
            metrics.UPDATES.name: float(self._updates),
            metrics.POLICY_LOSS.name: float(policy_loss.detach()),
            metrics.ENTROPY.name: float(decided.detach()),
            metrics.TOTAL_LOSS.name: float(loss.detach()),
        }
        if self._policy.value is not None:
            line[metrics.VALUE_LOSS.name] = float(value_loss.detach())
        return line

    def _rewards(
        self, instances: Sequence[Instance], bins: Tensor, rng: np.random.Generator
    ) -> tuple[Tensor, float]:
        """Minus the costs of proposals, ``[samples, instances]``, and the share of runs that fit.

        The samples of a graph and its plain run share random numbers.
        """
        sizes = [len(instance.features.nodes) for instance in instances]
        of_instance = [part.numpy() for part in torch.split(bins, sizes, dim=1)]
        trials = []
        for instance, decided in zip(instances, of_instance, strict=True):
            seed = int(rng.integers(2**63))
            proposals = [proposal_of(instance, sample, self._recipe.initial) for sample in decided]
            trials += [Trial(instance, seed), *(Trial(instance, seed, proposal) for proposal in proposals)]
        ends = self._timed(trials)
        rows = [ends[i : i + 1 + len(bins)] for i in range(0, len(ends), 1 + len(bins))]
        cost = [[end.cost(row[0]) for end in row[1:]] for row in rows]
        fits = float(np.mean([end.overflow_share <= 0 for row in rows for end in row[1:]]))
        return -torch.tensor(cost, dtype=torch.float32).T, fits

    def _advantage(self, batch: Batch, nodes: Tensor, rewards: Tensor) -> tuple[Tensor, Tensor]:
        """How much better each reward is than what was expected, and the loss of the value head, if there is one."""
        if self._policy.value is None:
            others = (rewards.sum(0) - rewards) / (len(rewards) - 1)
            advantage, loss = rewards - others, torch.zeros(())
            # Of each graph by itself: where some runs do not fit, rewards differ ten times as much as elsewhere.
            spread = rewards.std(0, correction=0)
        else:
            expected = (
                self._policy.value(batch.mean_of(nodes.T).T).squeeze(-1) - 1
            )  # at first it expects parity
            advantage, loss = rewards - expected.detach(), ((rewards - expected) ** 2).mean()
            advantage = advantage - advantage.mean()
            spread = advantage.std(correction=0)
        advantage = advantage / spread.clamp(min=_LEAST_SPREAD)
        return advantage.clamp(-_MOST_ADVANTAGE, _MOST_ADVANTAGE), loss

    def _instance(self, problem: AnyProblem) -> Instance:
        return Instance.of(problem, self._recipe.groups, transfer_keys=self._recipe.transfer_keys)


def _torch_seed(rng: np.random.Generator) -> int:
    return int(rng.integers(2**63))
