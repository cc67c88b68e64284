"""Proximal policy optimisation (Schulman et al. 2017)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from ..networks.documentation import lists_all_options
from ..registry import register
from ..search.options import at_least, positive
from .on_policy import OnPolicyLearner, rollout_steps

if TYPE_CHECKING:
    from stable_baselines3.common.base_class import BaseAlgorithm

    from .horizon import Horizon
    from .vec_env import GymnasiumVecEnv


@dataclass(frozen=True)
class ClippedLearner(OnPolicyLearner):
    """PPO with or without masks: several passes over each rollout, none of which goes far from where it was made.

    Attributes:
        batch_size: Steps of a minibatch.
        n_epochs: Passes over each rollout.
        clip_range: How far the ratio of probabilities may leave 1.
        target_kl: Stops the passes early once the divergence is 1.5 times this; ``None``: never.
    """

    batch_size: int = 256
    n_epochs: int = 10
    clip_range: float = 0.2
    target_kl: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(2, batch_size=self.batch_size)
        at_least(1, n_epochs=self.n_epochs)
        positive(clip_range=self.clip_range)
        if self.target_kl is not None:
            positive(target_kl=self.target_kl)

    def _clipped(self, vector: GymnasiumVecEnv, horizon: Horizon, steps: int | None) -> dict[str, Any]:
        n_steps, batch_size = rollout_steps(self.n_steps, self.batch_size, vector.num_envs, steps)
        clip = horizon.falling if self.anneal else horizon.constant
        return {
            "n_steps": n_steps, "batch_size": batch_size, "n_epochs": self.n_epochs,
            "clip_range": clip(self.clip_range), "target_kl": self.target_kl, **self._on_policy(),
        }  # fmt: skip


@register
@lists_all_options
@dataclass(frozen=True)
class PPO(ClippedLearner):
    """PPO that is not told which actions are legal; an illegal one is replaced as the environment says."""

    name: ClassVar[str] = "ppo"
    summary: ClassVar[str] = "learns by proximal policy optimisation (Stable-Baselines3's PPO)"

    def algorithm(
        self, vector: GymnasiumVecEnv, horizon: Horizon, seed: int, steps: int | None, **common: Any
    ) -> BaseAlgorithm:
        """SB3's PPO."""
        from stable_baselines3 import PPO as Algorithm

        return Algorithm(env=vector, seed=seed, **common, **self._clipped(vector, horizon, steps))
