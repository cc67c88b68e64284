"""What PPO, MaskablePPO and A2C have in common: they learn from rollouts, and forget them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, gcd
from typing import Any

from ...errors import InvalidProblemError
from .. import metrics
from ..search.options import at_least, at_most_one, of_type, positive, share
from .base import SB3Learner

#: SB3's name of what the last update says, ours, and the sign between them.
_LOSSES = {
    "train/policy_gradient_loss": (metrics.POLICY_LOSS, 1),
    "train/policy_loss": (metrics.POLICY_LOSS, 1),
    "train/value_loss": (metrics.VALUE_LOSS, 1),
    "train/entropy_loss": (metrics.ENTROPY, -1),
    "train/loss": (metrics.TOTAL_LOSS, 1),
    "train/approx_kl": (metrics.APPROXIMATE_KL, 1),
    "train/clip_fraction": (metrics.CLIP_FRACTION, 1),
    "train/explained_variance": (metrics.EXPLAINED_VARIANCE, 1),
    "train/learning_rate": (metrics.LEARNING_RATE, 1),
}


@dataclass(frozen=True)
class OnPolicyLearner(SB3Learner):
    """Learns from rollouts of ``n_steps`` steps of every environment.

    Attributes:
        n_steps: Steps of each environment between updates.
        gae_lambda: Of generalised advantage estimation (Schulman et al. 2016).
        normalize_advantage: Whether advantages are scaled to mean 0 and deviation 1.
        ent_coef: Weight of the entropy in the loss.
        vf_coef: Weight of the loss of values.
        max_grad_norm: Longest gradient.
    """

    n_steps: int = 128
    gae_lambda: float = 0.95
    normalize_advantage: bool = True
    ent_coef: float = 0.0
    vf_coef: float = 0.5
    max_grad_norm: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(1, n_steps=self.n_steps)
        at_most_one(gae_lambda=self.gae_lambda)
        of_type(bool, "true or false", normalize_advantage=self.normalize_advantage)
        share(ent_coef=self.ent_coef, vf_coef=self.vf_coef)
        positive(max_grad_norm=self.max_grad_norm)
        if self.n_steps * self.num_envs < 2:
            raise InvalidProblemError(
                "a rollout of n_steps * num_envs = 1 step has no spread; expected 2 or more"
            )

    def held_observations(self, num_envs: int) -> tuple[int, int]:
        """A rollout."""
        return self.n_steps * num_envs, 1

    def losses(self, recorded: Mapping[str, Any]) -> dict[str, float]:
        """What the last update says."""
        return {
            metric.name: sign * float(recorded[name])
            for name, (metric, sign) in _LOSSES.items()
            if name in recorded
        }

    def _on_policy(self) -> dict[str, Any]:
        return {
            "gae_lambda": self.gae_lambda, "normalize_advantage": self.normalize_advantage,
            "ent_coef": self.ent_coef, "vf_coef": self.vf_coef, "max_grad_norm": self.max_grad_norm,
        }  # fmt: skip


def rollout_steps(n_steps: int, batch_size: int, num_envs: int, steps: int | None) -> tuple[int, int]:
    """Steps of each environment in a rollout, and the minibatch: full ones, and no rollout longer than the training.

    Args:
        n_steps: As asked for.
        batch_size: As asked for.
        num_envs: Environments.
        steps: Of the whole training; ``None``: not known.
    """
    if steps is not None:
        n_steps = min(n_steps, ceil(steps / num_envs))
    n_steps = max(n_steps, ceil(2 / num_envs))
    if n_steps * num_envs <= batch_size:
        return n_steps, n_steps * num_envs
    unit = batch_size // gcd(
        batch_size, num_envs
    )  # the fewest steps whose rollout is made of full minibatches
    return ceil(n_steps / unit) * unit, batch_size
