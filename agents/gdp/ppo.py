"""Proximal policy optimization of GDP's policy: one decision for each unit, one reward for all of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...problems import PlacementProblem
from .. import metrics
from ..networks.placing.baseline import Baselines, standardised
from ..networks.placing.drawing import drawn
from ..networks.placing.judging import INVALID_REWARD, Judge
from ..networks.placing.placer import Placer
from .instance import Instance
from .policy import Policy
from .shape import Shape

#: Norm to which gradients are shortened.
_MOST_GRADIENT = 1.0
#: Spread of rewards below which placements are about as good.
_LEAST_SPREAD = 1e-3
#: Advantages beyond so many spreads count as that many: a placement that does not fit is far off the others.
_MOST_ADVANTAGE = 3.0


@dataclass(frozen=True)
class Recipe:
    """How to learn.

    Attributes:
        samples: Placements tried in an update.
        epochs: Steps of the optimizer in an update.
        clip: How far the ratio of probabilities may move before it stops to count.
        ratio: Of what: ``"graph"``, the whole placement, or ``"op"``, each unit by itself.
        learning_rate: Step size of Adam.
        entropy: Weight of the entropy of decisions.
    """

    samples: int
    epochs: int
    clip: float
    ratio: str
    learning_rate: float
    entropy: float


class Ppo(Placer[Instance]):
    """A policy of GDP that learns by PPO (Schulman et al. 2017).

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
        self._baselines = Baselines()

    def instance(self, problem: PlacementProblem) -> Instance:
        return Instance.of(problem, self._shape, self._device)

    def greedy(self, instance: Instance) -> NDArray[np.uint8]:
        with torch.inference_mode():
            return instance.units.device_of_ops(self.policy(instance).argmax(1).cpu().numpy())

    def update(
        self, instance: Instance, judge: Judge, rng: np.random.Generator
    ) -> tuple[int, dict[str, float]]:
        recipe = self._recipe
        says = self.policy(instance)
        probability = says.detach().exp().cpu().numpy()
        chosen = drawn(probability, rng.random((recipe.samples, len(probability)), np.float32))
        outcomes = [judge(device) for device in instance.units.device_of_ops(chosen)]
        rewards = torch.tensor([instance.reward(outcome) for outcome in outcomes])
        advantage = self._baselines.advantages(instance.key, rewards)
        advantage = standardised(advantage, _LEAST_SPREAD).clamp(-_MOST_ADVANTAGE, _MOST_ADVANTAGE)
        line = self._learned(instance, says, torch.from_numpy(chosen), advantage)
        return recipe.samples, line | {
            metrics.REWARD.name: float(rewards.mean()),
            metrics.FEASIBLE_SHARE.name: float((rewards > INVALID_REWARD).float().mean()),
        }

    def _learned(
        self, instance: Instance, says: Tensor, chosen: Tensor, advantage: Tensor
    ) -> dict[str, float]:
        """Goes where placements were good; metrics.

        Args:
            instance: The problem.
            says: Logarithms of the probabilities that they were drawn by, ``[units, devices]``, with gradient.
            chosen: Devices of units that were tried, ``[samples, units] int64``.
            advantage: How good they were, ``[samples]``.
        """
        recipe = self._recipe
        at, advantage = chosen.T.to(says.device), advantage.to(says.device)
        old = says.detach().gather(1, at)
        moved = torch.zeros(())
        for epoch in range(recipe.epochs):
            if epoch:
                says = self.policy(instance)
            change = says.gather(1, at) - old
            ratio = (change.sum(0) if recipe.ratio == "graph" else change).exp()
            kept = ratio.clamp(1 - recipe.clip, 1 + recipe.clip)
            policy_loss = -torch.minimum(ratio * advantage, kept * advantage).mean()
            # Of the same decisions as the ratio: of all together, or of each. (0 x -inf is no number, so where a unit
            # may not run there is no entropy.)
            entropy = -(says.exp() * says.masked_fill(~instance.allowed, 0)).sum(1)
            decided = entropy.sum() if recipe.ratio == "graph" else entropy.mean()
            loss = policy_loss - recipe.entropy * decided
            self.descend(loss, _MOST_GRADIENT)
            moved = (kept != ratio).float().mean()
        return {
            metrics.POLICY_LOSS.name: float(policy_loss.detach()),
            metrics.ENTROPY.name: float(entropy.detach().mean()),
            metrics.TOTAL_LOSS.name: float(loss.detach()),
            metrics.CLIP_FRACTION.name: float(moved),
        }

    def state(self) -> dict[str, Any]:
        return {"baselines": self._baselines.state()}

    def set_state(self, state: dict[str, Any]) -> None:
        self._baselines.set_state(state["baselines"])
