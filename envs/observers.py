"""What turns a state into an observation, and what a rollout of observations would cost."""

from __future__ import annotations

import warnings
from typing import Any, Protocol, TypeVar

import numpy as np
from gymnasium import spaces

#: Steps that Stable-Baselines3's PPO keeps by default, and the memory for them past which a warning is due.
ROLLOUT_STEPS, ROLLOUT_WARNING_BYTES = 2_048, 2_000_000_000

State = TypeVar("State", contravariant=True)


class Observer(Protocol[State]):
    """Turns a state into an observation: fresh arrays every time."""

    nbytes: int

    @property
    def space(self) -> spaces.Space[Any]:
        """The space of the observations."""
        ...

    def observe(self, state: State) -> Any:
        """The observation of a state, an element of ``space``."""
        ...


def nbytes_of(space: spaces.Space[Any]) -> int:
    """Bytes of one element of a box, or of a flat dict of boxes."""
    parts = space.values() if isinstance(space, spaces.Dict) else [space]
    return sum(int(np.prod(s.shape)) * s.dtype.itemsize for s in parts if s.shape and s.dtype)


def warn_of_large_rollouts(kind: str, nbytes: int, advice: str) -> None:
    """Warns, on behalf of an environment's constructor, where PPO's default buffer would be huge.

    Args:
        kind: Name of the observation.
        nbytes: Bytes of one observation.
        advice: What to do instead.
    """
    rollout = nbytes * ROLLOUT_STEPS
    if rollout > ROLLOUT_WARNING_BYTES:
        warnings.warn(
            f"one {kind!r} observation has {nbytes:,} bytes: a rollout buffer of {ROLLOUT_STEPS} steps needs "
            f"{rollout / 1e9:.1f} GB for each environment; use fewer steps, {advice}",
            stacklevel=4,
        )
