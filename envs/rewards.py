"""Rewards that environments share: one number at the end, or differences on the way, with equal returns."""

from __future__ import annotations

from typing import Protocol


class Reward(Protocol):
    """Turns what is known before and after a step into a reward."""

    def __call__(self, before: float, after: float, episode_return: float | None) -> float:
        """Rewards one step.

        Args:
            before: Potential before the step, in units of the reference; lower is better.
            after: Potential after it.
            episode_return: What all rewards must sum to, at the last step; ``None`` before.
        """
        ...


def terminal_reward(before: float, after: float, episode_return: float | None) -> float:
    """Nothing until the end."""
    return 0.0 if episode_return is None else episode_return


def dense_reward(before: float, after: float, episode_return: float | None) -> float:
    """What the step took off the potential; the last step settles the difference to the real return.

    The potential of the empty solution is 0, so the rewards up to the last step sum to minus the potential
    before it, and adding that back makes the sum exact (Ng, Harada and Russell 1999, "Policy invariance
    under reward transformations").
    """
    return before - after if episode_return is None else before + episode_return
