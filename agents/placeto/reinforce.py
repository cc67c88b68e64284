"""REINFORCE on Placeto's policy: a return for each decision, compared with the same step of other episodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from ...problems import PlacementProblem
from .. import metrics
from ..networks.placing.baseline import standardised
from ..networks.placing.judging import Judge
from ..networks.placing.placer import Placer
from .baseline import StepBaselines
from .episodes import Episodes, Trials, play, play_greedily, returns_of, states_of
from .instance import Instance
from .policy import Policy
from .shape import Shape

#: Norm to which gradients are shortened, as in the released code.
_MOST_GRADIENT = 1.25
#: Spread of returns below which decisions are about as good.
_LEAST_SPREAD = 1e-4
#: Advantages beyond so many spreads count as that many.
_MOST_ADVANTAGE = 3.0
#: Groups in states that the network is differentiated at, at once: more take more memory than time.
_MOST_ROWS = 2**14
#: Seed of the random start of the most likely placement.
_GREEDY_SEED = 0


@dataclass(frozen=True)
class Recipe:
    """How to learn.

    Attributes:
        groups: What is placed as one.
        samples: Episodes of an update.
        start: Where they begin: ``"single"`` or ``"random"``.
        reward: ``"improvement"`` of each step, or ``"final"``.
        discount: What a reward is worth a step earlier.
        baseline_window: Updates whose returns are the baseline.
        standardise: Whether advantages are taken over their root mean square.
        learning_rate: Step size of Adam.
        entropy: Weight of the entropy of decisions.
        entropy_updates: Updates in which that falls to 0; 0: it stays.
    """

    groups: str
    samples: int
    start: str
    reward: str
    discount: float
    baseline_window: int
    standardise: bool
    learning_rate: float
    entropy: float
    entropy_updates: int


class Reinforce(Placer[Instance]):
    """A policy of Placeto that learns by REINFORCE (Williams 1992).

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
        self._baselines = StepBaselines(recipe.baseline_window)
        self._updates = 0

    def instance(self, problem: PlacementProblem) -> Instance:
        return Instance.of(problem, self._recipe.groups, self._shape, self._device)

    def greedy(self, instance: Instance) -> NDArray[np.uint8]:
        start = self._start(instance, np.random.default_rng(_GREEDY_SEED))
        return instance.coarse.device_of_ops(play_greedily(self.policy, instance, start))

    def update(
        self, instance: Instance, judge: Judge, rng: np.random.Generator
    ) -> tuple[int, dict[str, float]]:
        recipe = self._recipe
        trials = Trials(instance, judge)
        episodes = play(
            self.policy, instance, self._start(instance, rng), recipe.samples, trials,
            rng, every_step=recipe.reward == "improvement",
        )  # fmt: skip
        returns = returns_of(episodes.costs, len(instance.coarse), recipe.discount)
        advantage = torch.from_numpy(self._baselines.advantages(instance.key, returns)).float()
        if recipe.standardise:
            advantage = standardised(advantage, _LEAST_SPREAD).clamp(-_MOST_ADVANTAGE, _MOST_ADVANTAGE)
        line = self._learned(instance, episodes, advantage)
        return trials.count, line | {
            metrics.EPISODIC_RETURN.name: float(returns[0].mean()),
            metrics.REWARD.name: float(np.mean([instance.reward(end) for end in episodes.ends])),
            metrics.FEASIBLE_SHARE.name: float(np.mean([end.ok for end in episodes.ends])),
        }

    def _start(self, instance: Instance, rng: np.random.Generator) -> NDArray[np.int64]:
        coarse = instance.coarse
        return coarse.single if self._recipe.start == "single" else coarse.drawn(rng)

    def _learned(self, instance: Instance, episodes: Episodes, advantage: Tensor) -> dict[str, float]:
        """Goes where decisions were good; metrics.

        Args:
            instance: The problem.
            episodes: What was decided.
            advantage: How good that was, ``[groups, episodes]``.
        """
        says = self._says(instance, episodes)
        at = says.device
        chosen = torch.from_numpy(episodes.chosen).flatten().to(at)
        likely = says.gather(1, chosen[:, None])[:, 0]
        policy_loss = -(advantage.flatten().to(at) * likely).mean()
        # 0 x -inf is no number: where a group may not run there is no entropy
        decided = -(says.exp() * says.masked_fill(says == -torch.inf, 0)).sum(1).mean()
        loss = policy_loss - self._entropy * decided
        self.descend(loss, _MOST_GRADIENT)
        self._updates += 1
        return {
            metrics.POLICY_LOSS.name: float(policy_loss.detach()),
            metrics.ENTROPY.name: float(decided.detach()),
            metrics.TOTAL_LOSS.name: float(loss.detach()),
        }

    def _says(self, instance: Instance, episodes: Episodes) -> Tensor:
        """Logarithms of probabilities at each step of each episode, ``[groups x episodes, devices]``.

        What a part of the steps needs to be differentiated is computed anew for each, so that memory does not grow with
        their number.
        """
        groups, count = episodes.chosen.shape
        steps = max(1, _MOST_ROWS // (groups * count))
        said = [
            self._part(instance, episodes, first, min(first + steps, groups))
            for first in range(0, groups, steps)
        ]
        return torch.cat(said)

    def _part(self, instance: Instance, episodes: Episodes, first: int, last: int) -> Tensor:
        """The same at steps ``first .. last - 1``."""
        at = instance.allowed.device
        device, current = (torch.from_numpy(array).to(at) for array in states_of(episodes, first, last))
        if last - first == len(instance.coarse):
            said: Tensor = self.policy(instance, device, current)
        else:
            said = checkpoint(
                self.policy, instance, device, current, use_reentrant=False, preserve_rng_state=False
            )
        return said

    @property
    def _entropy(self) -> float:
        recipe = self._recipe
        left = 1 - self._updates / recipe.entropy_updates if recipe.entropy_updates else 1.0
        return recipe.entropy * max(0.0, left)

    def state(self) -> dict[str, Any]:
        return {"baselines": self._baselines.state(), "updates": self._updates}

    def set_state(self, state: dict[str, Any]) -> None:
        self._baselines.set_state(state["baselines"])
        self._updates = state["updates"]
