"""Proximal policy optimisation that never takes an illegal action (Huang and Ontañón 2022)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from ..networks.documentation import lists_all_options
from ..registry import register
from .ppo import ClippedLearner

if TYPE_CHECKING:
    from stable_baselines3.common.base_class import BaseAlgorithm

    from .horizon import Horizon
    from .vec_env import GymnasiumVecEnv


@register
@lists_all_options
@dataclass(frozen=True)
class MaskablePPO(ClippedLearner):
    """PPO whose policy is told which actions are legal, and gives the others no probability."""

    name: ClassVar[str] = "maskable-ppo"
    summary: ClassVar[str] = (
        "learns by proximal policy optimisation on legal actions (sb3-contrib's MaskablePPO)"
    )
    masked: ClassVar[bool] = True

    def algorithm(
        self, vector: GymnasiumVecEnv, horizon: Horizon, seed: int, steps: int | None, **common: Any
    ) -> BaseAlgorithm:
        """sb3-contrib's MaskablePPO."""
        from sb3_contrib import MaskablePPO as Algorithm

        return Algorithm(env=vector, seed=seed, **common, **self._clipped(vector, horizon, steps))
