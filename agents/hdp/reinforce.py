"""REINFORCE on HDP's policy: groupings and placements of them learn from the same rewards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from ...problems import PlacementProblem
from .. import metrics
from ..networks.placing.baseline import Baselines
from ..networks.placing.judging import INVALID_REWARD, Judge
from ..networks.placing.placer import Placer
from .drawing import Noise, drawn
from .grouped import allowed_of_groups, device_of_units, grouped
from .instance import Instance
from .policy import Policy


@dataclass(frozen=True)
class Recipe:
    """How to learn.

    Attributes:
        samples: Placements tried in an update.
        groupings: Groupings tried in an update, each with as many placements.
        learning_rate: Step size of Adam.
        entropy: Weight of the entropy of decisions.
        noise: Of preferences, as a share of them.
        noise_updates: Updates with noise.
        baseline_decay: Weight of earlier rewards in the baseline when those of an update come.
        most_gradient: Norm to which gradients are shortened.
    """

    samples: int
    groupings: int
    learning_rate: float
    entropy: float
    noise: float
    noise_updates: int
    baseline_decay: float
    most_gradient: float


@dataclass(frozen=True, eq=False)
class Tried:
    """What was drawn in an update.

    Attributes:
        grouping: Logarithms of probabilities of groups, ``[groupings or 1, units, groups]``, with gradient.
        group: Of each unit, ``[groupings, units] int64``.
        placing: Logarithms of probabilities of devices, ``[samples, groups, devices]``, with gradient.
        device: Of each group, ``[samples, groups] int64``.
    """

    grouping: Tensor
    group: Tensor
    placing: Tensor
    device: Tensor

    def log_probability(self) -> Tensor:
        """Of each placement, and of the grouping that it is of, ``[samples]``."""
        of_groups = self.grouping.expand(len(self.group), -1, -1).gather(2, self.group[..., None]).sum((1, 2))
        of_devices = self.placing.gather(2, self.device[..., None]).sum((1, 2))
        return of_groups.repeat_interleave(len(self.device) // len(self.group)) + of_devices

    def entropy(self) -> Tensor:
        """Mean over units that of their groups, and mean over groups that of their devices."""
        of_groups = -(self.grouping.exp() * self.grouping).sum(2).mean()
        # 0 x -inf is no number: where a group may not run there is no entropy
        finite = self.placing.masked_fill(self.placing == -torch.inf, 0)
        return of_groups - (self.placing.exp() * finite).sum(2).mean()


class Reinforce(Placer[Instance]):
    """A policy of HDP that learns by REINFORCE (Williams 1992; Mirhoseini et al. 2018, section 3).

    Args:
        policy: The policy; changed in place.
        recipe: How to learn.
        device: Of torch.
    """

    def __init__(self, policy: Policy, recipe: Recipe, device: str) -> None:
        self.policy: Policy = policy.to(device)
        self._recipe, self._device = recipe, device
        self.optimizer = torch.optim.Adam(policy.parameters(), lr=recipe.learning_rate)
        self.learning_rate = recipe.learning_rate
        self._baselines = Baselines(recipe.baseline_decay)
        self._updates = 0

    def instance(self, problem: PlacementProblem) -> Instance:
        return Instance.of(problem, self.policy.shape, self._device)

    @torch.no_grad()
    def greedy(self, instance: Instance) -> NDArray[np.uint8]:
        policy = self.policy
        group = policy.grouper(instance).argmax(1)[None]
        read = policy.placer.read(grouped(instance, group, policy.shape))
        allowed = allowed_of_groups(instance, group, policy.shape.groups)
        device = policy.placer.place(read, allowed, Noise(), None)
        return instance.units.device_of_ops(device_of_units(instance, group, device)[0].cpu().numpy())

    def update(
        self, instance: Instance, judge: Judge, rng: np.random.Generator
    ) -> tuple[int, dict[str, float]]:
        generator = torch.Generator(self._device).manual_seed(int(rng.integers(2**63)))
        tried, device = self._drawn(instance, generator)
        outcomes = [judge(of_ops) for of_ops in instance.units.device_of_ops(device)]
        rewards = torch.tensor([instance.reward(outcome) for outcome in outcomes])
        line = self._learned(tried, self._advantages(instance.key, rewards).to(self._device))
        self._updates += 1
        return len(outcomes), line | {
            metrics.REWARD.name: float(rewards.mean()),
            metrics.FEASIBLE_SHARE.name: float((rewards > INVALID_REWARD).float().mean()),
        }

    def _drawn(self, instance: Instance, generator: torch.Generator) -> tuple[Tried, NDArray[np.int64]]:
        """Draws groupings and placements of them, and devices of units, ``[samples, units] int64``."""
        recipe, shape, placer = self._recipe, self.policy.shape, self.policy.placer
        share = recipe.noise if self._updates < recipe.noise_updates else 0.0
        each = recipe.samples // recipe.groupings

        logits = self.policy.grouper(instance)
        noise = Noise.of((recipe.groupings, *logits.shape), share, generator)
        says = functional.log_softmax(noise.added(logits[None], logits.square().mean().sqrt()), dim=2)
        with torch.no_grad():
            group = drawn(says.expand(recipe.groupings, -1, -1), generator)

        fields = grouped(instance, group, shape)
        allowed = allowed_of_groups(instance, group, shape.groups).repeat_interleave(each, dim=0)
        read = placer.read(fields).repeated(each)
        noise = Noise.of(tuple(allowed.shape), share, generator)
        device = placer.place(read, allowed, noise, generator)
        of_units = device_of_units(instance, group.repeat_interleave(each, dim=0), device)
        placing = placer.log_probabilities(read, allowed, device, noise)
        return Tried(says, group, placing, device), of_units.cpu().numpy()

    def _advantages(self, key: str, rewards: Tensor) -> Tensor:
        """By how much each reward is above the baseline, which moves once for all of an update, by their mean."""
        mean = rewards.mean()
        return rewards - mean + self._baselines.advantages(key, mean[None])

    def _learned(self, tried: Tried, advantage: Tensor) -> dict[str, float]:
        """Goes where placements were good, by their advantages, ``[samples]``; metrics."""
        recipe = self._recipe
        policy_loss = -(advantage * tried.log_probability()).mean()
        with torch.set_grad_enabled(recipe.entropy > 0):
            decided = tried.entropy()
        loss = policy_loss - recipe.entropy * decided
        self.descend(loss, recipe.most_gradient)
        return {
            metrics.POLICY_LOSS.name: float(policy_loss.detach()),
            metrics.ENTROPY.name: float(decided.detach()),
            metrics.TOTAL_LOSS.name: float(loss.detach()),
        }

    def state(self) -> dict[str, Any]:
        return {"baselines": self._baselines.state(), "updates": self._updates}

    def set_state(self, state: dict[str, Any]) -> None:
        self._baselines.set_state(state["baselines"])
        self._updates = state["updates"]
