"""Advantage actor-critic, synchronous (Mnih et al. 2016)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from ..networks.documentation import lists_all_options
from ..registry import register
from ..search.options import of_type
from .on_policy import OnPolicyLearner, rollout_steps

if TYPE_CHECKING:
    from stable_baselines3.common.base_class import BaseAlgorithm

    from .horizon import Horizon
    from .vec_env import GymnasiumVecEnv


@register
@lists_all_options
@dataclass(frozen=True)
class A2C(OnPolicyLearner):
    """Actor-critic that takes one step of the optimizer after each short rollout; it is not told which actions are
    legal.

    Attributes:
        use_rms_prop: Whether the optimizer is RMSprop, as in the paper; else Adam.
    """

    learning_rate: float = 7e-4
    n_steps: int = 16
    gae_lambda: float = 1.0
    normalize_advantage: bool = False
    use_rms_prop: bool = True

    name: ClassVar[str] = "a2c"
    summary: ClassVar[str] = "learns by advantage actor-critic (Stable-Baselines3's A2C)"

    def __post_init__(self) -> None:
        super().__post_init__()
        of_type(bool, "true or false", use_rms_prop=self.use_rms_prop)

    def algorithm(
        self, vector: GymnasiumVecEnv, horizon: Horizon, seed: int, steps: int | None, **common: Any
    ) -> BaseAlgorithm:
        """SB3's A2C."""
        from stable_baselines3 import A2C as Algorithm

        n_steps, _ = rollout_steps(self.n_steps, self.n_steps * vector.num_envs, vector.num_envs, steps)
        return Algorithm(
            env=vector,
            seed=seed,
            **common,
            **self._on_policy(),
            n_steps=n_steps,
            use_rms_prop=self.use_rms_prop,
        )
