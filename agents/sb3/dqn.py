"""Deep Q-learning (Mnih et al. 2015)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from gymnasium import spaces

from ...errors import InvalidProblemError
from .. import metrics
from ..networks.documentation import lists_all_options
from ..registry import register
from ..search.options import at_least, at_most_one, positive
from .base import SB3Learner

if TYPE_CHECKING:
    from stable_baselines3.common.base_class import BaseAlgorithm

    from .horizon import Horizon
    from .vec_env import GymnasiumVecEnv

_LOSSES = {
    "train/loss": metrics.TD_LOSS,
    "train/learning_rate": metrics.LEARNING_RATE,
    "rollout/exploration_rate": metrics.EXPLORATION_RATE,
}


@register
@lists_all_options
@dataclass(frozen=True)
class DQN(SB3Learner):
    """Deep Q-learning with a replay buffer and a target network, for games of one choice per step.

    It is not told which actions are legal; an illegal one is replaced as the environment says.

    Attributes:
        buffer_size: Steps that the replay buffer holds.
        learning_starts: Steps that are taken at random before the first update.
        batch_size: Steps of a minibatch.
        train_freq: Steps of each environment between updates.
        gradient_steps: Minibatches per update.
        target_update_interval: Steps after which the target network becomes equal to the network.
        exploration_initial_eps: Probability of a random action at the beginning.
        exploration_final_eps: The same after the first ``exploration_fraction`` of the training, and of a trained one
            that samples.
        exploration_fraction: Share of the training in which it falls.
        max_grad_norm: Longest gradient.
    """

    learning_rate: float = 1e-3
    buffer_size: int = 50_000
    learning_starts: int = 500
    batch_size: int = 64
    train_freq: int = 1
    gradient_steps: int = 1
    target_update_interval: int = 1_000
    exploration_initial_eps: float = 1.0
    exploration_final_eps: float = 0.05
    exploration_fraction: float = 0.5
    max_grad_norm: float = 10.0

    name: ClassVar[str] = "dqn"
    summary: ClassVar[str] = "learns by deep Q-learning (Stable-Baselines3's DQN)"

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(0, learning_starts=self.learning_starts)
        at_least(
            1, buffer_size=self.buffer_size, batch_size=self.batch_size, train_freq=self.train_freq,
            gradient_steps=self.gradient_steps, target_update_interval=self.target_update_interval,
        )  # fmt: skip
        at_most_one(
            exploration_initial_eps=self.exploration_initial_eps,
            exploration_final_eps=self.exploration_final_eps,
            exploration_fraction=self.exploration_fraction,
        )
        positive(max_grad_norm=self.max_grad_norm, exploration_fraction=self.exploration_fraction)
        if self.environment.get("mode") == "one_shot":
            raise InvalidProblemError(
                "agent 'dqn' takes one choice per step, and mode='one_shot' takes all at once; use 'maskable-ppo'"
            )

    def algorithm(
        self, vector: GymnasiumVecEnv, horizon: Horizon, seed: int, steps: int | None, **common: Any
    ) -> BaseAlgorithm:
        """SB3's DQN."""
        from stable_baselines3 import DQN as Algorithm

        assert isinstance(vector.action_space, spaces.Discrete)
        algorithm = Algorithm(
            env=vector, seed=seed, **common,
            buffer_size=self.buffer_size if steps is None else min(self.buffer_size, steps),
            learning_starts=self.learning_starts, batch_size=self.batch_size, train_freq=self.train_freq,
            gradient_steps=self.gradient_steps, target_update_interval=self.target_update_interval,
            max_grad_norm=self.max_grad_norm,
        )  # fmt: skip
        algorithm.exploration_schedule = horizon.between(
            self.exploration_initial_eps, self.exploration_final_eps, self.exploration_fraction
        )
        algorithm.exploration_rate = self.exploration_initial_eps
        return algorithm

    def held_observations(self, num_envs: int) -> tuple[int, int]:
        """The replay buffer: what was seen, and what came of it."""
        return self.buffer_size, 2

    def exploring(
        self, actions: np.ndarray[Any, Any], num_actions: int, rng: np.random.Generator
    ) -> np.ndarray[Any, Any]:
        """Some of the actions replaced by random ones."""
        random = rng.integers(num_actions, size=actions.shape)
        return np.where(rng.random(actions.shape) < self.exploration_final_eps, random, actions)

    def losses(self, recorded: Mapping[str, Any]) -> dict[str, float]:
        """What the last update says."""
        return {metric.name: float(recorded[name]) for name, metric in _LOSSES.items() if name in recorded}
