"""Proximal policy optimization of the policy: placements of one problem are compared with each other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...problems import PlacementProblem
from .. import metrics
from ..networks.placing.baseline import standardised
from ..networks.placing.judging import Judge
from ..networks.placing.placer import Placer
from .construction import Construction, followed, most_likely, sampled
from .instance import Instance
from .policy import Policy
from .shape import Shape

#: Norm to which gradients are shortened.
_MOST_GRADIENT = 1.0
#: Spread of gains below which placements are about as good.
_LEAST_SPREAD = 1e-2
#: Advantages beyond so many spreads count as that many.
_MOST_ADVANTAGE = 3.0


@dataclass(frozen=True)
class Recipe:
    """How to learn.

    Attributes:
        samples: Placements tried in an update.
        epochs: Steps of the optimizer in an update.
        clip: How far the ratio of a decision's probabilities may move before it stops to count.
        learning_rate: Step size of Adam.
        entropy: Weight of the entropy of a decision; it falls as the step size does.
    """

    samples: int
    epochs: int
    clip: float
    learning_rate: float
    entropy: float


class Ppo(Placer[Instance]):
    """A policy that learns by PPO (Schulman et al. 2017), decision by decision.

    Every decision of a placement is as good as the placement; the baseline of each is the mean of the others.

    Args:
        policy: The policy; changed in place.
        shape: Its shape.
        recipe: How to learn.
        device: Of torch.
    """

    def __init__(self, policy: Policy, shape: Shape, recipe: Recipe, device: str) -> None:
        self.policy: Policy = policy.to(device)
        self._shape, self._recipe, self._device = shape, recipe, device
        self.optimizer = torch.optim.Adam(policy.parameters(), lr=recipe.learning_rate)
        self.learning_rate = recipe.learning_rate

    def instance(self, problem: PlacementProblem) -> Instance:
        return Instance.of(problem, self._shape, self._device)

    def greedy(self, instance: Instance) -> NDArray[np.uint8]:
        device: NDArray[np.uint8] = most_likely(self.policy, instance).device[0]
        return device

    def sampled(self, instance: Instance, count: int, rng: np.random.Generator) -> NDArray[np.uint8]:
        """Placements that are drawn: device of each op, ``[count, ops] uint8``."""
        return sampled(self.policy, instance, count, rng).device

    def probabilities(self, instance: Instance, device: NDArray[np.integer]) -> NDArray[np.float32]:
        """Probability of each device for each group of a placement, ``[groups, devices] float32``.

        Args:
            instance: The problem.
            device: Of each group, ``[groups] int``.
        """
        found: NDArray[np.float32] = followed(self.policy, instance, device).probability[0]
        return found

    def update(
        self, instance: Instance, judge: Judge, rng: np.random.Generator
    ) -> tuple[int, dict[str, float]]:
        tried = sampled(self.policy, instance, self._recipe.samples, rng)
        outcomes = [judge(device) for device in tried.device]
        gains = torch.tensor([instance.gain(outcome) for outcome in outcomes])
        line = self._learned(instance, tried, advantages(gains))
        return len(outcomes), line | {
            metrics.REWARD.name: float(gains.mean()),
            metrics.FEASIBLE_SHARE.name: float(np.mean([outcome.ok for outcome in outcomes])),
        }

    def _learned(self, instance: Instance, tried: Construction, advantage: Tensor) -> dict[str, float]:
        """Goes where placements were good; metrics."""
        devices, legal, chosen = (
            torch.from_numpy(array).to(self._device) for array in (tried.devices, tried.legal, tried.chosen)
        )
        recipe, advantage = self._recipe, advantage.to(self._device)[:, None]
        old = torch.empty(())
        for epoch in range(recipe.epochs):
            says = self.policy(instance, devices, legal, chosen)
            taken = says.gather(-1, chosen[..., None])[..., 0]
            if epoch == 0:
                old = taken.detach()
            ratio = (taken - old).exp()
            kept = ratio.clamp(1 - recipe.clip, 1 + recipe.clip)
            policy_loss = -torch.minimum(ratio * advantage, kept * advantage).mean()
            # Where a group may not run, the logarithm is far below any that the exponential tells from never.
            entropy = -(says.exp() * says).sum(-1).mean()
            loss = policy_loss - recipe.entropy * self.learning_rate / recipe.learning_rate * entropy
            self.descend(loss, _MOST_GRADIENT)
        return {
            metrics.POLICY_LOSS.name: float(policy_loss.detach()),
            metrics.ENTROPY.name: float(entropy.detach()),
            metrics.TOTAL_LOSS.name: float(loss.detach()),
            metrics.CLIP_FRACTION.name: float((kept != ratio).float().mean()),
        }


def advantages(gains: Tensor) -> Tensor:
    """By how much each gain is above the mean of the others, in spreads, at most three."""
    above = (gains - gains.mean()) * len(gains) / (len(gains) - 1)
    return standardised(above, _LEAST_SPREAD).clamp(-_MOST_ADVANTAGE, _MOST_ADVANTAGE)
