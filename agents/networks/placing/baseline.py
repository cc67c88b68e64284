"""What the rewards of a graph are compared with: those of earlier placements of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor


@dataclass
class Baseline:
    """The mean of the earlier rewards of one graph, all alike or the later ones more.

    Attributes:
        decay: Weight of what was known when a new reward comes; ``None``: the mean of all.
        value: The mean.
        count: Of rewards.
    """

    decay: float | None = None
    value: float = 0.0
    count: int = 0

    def advantages(self, rewards: Tensor) -> Tensor:
        """By how much each reward is above those of earlier updates; of the first update, above their own mean."""
        expected = float(rewards.mean()) if self.count == 0 else self.value
        for reward in rewards.tolist():
            self._add(reward)
        return rewards - expected

    def _add(self, reward: float) -> None:
        self.count += 1
        weight = 1 / self.count
        if self.decay is not None and self.count > 1:
            weight = 1 - self.decay
        self.value += weight * (reward - self.value)


class Baselines:
    """The baselines of all graphs that are learned from.

    Args:
        decay: As of :class:`Baseline`.
    """

    def __init__(self, decay: float | None = None) -> None:
        self._decay = decay
        self._of: dict[str, Baseline] = {}

    def advantages(self, key: str, rewards: Tensor) -> Tensor:
        """Advantages of rewards of the graph with a key."""
        return self._of.setdefault(key, Baseline(self._decay)).advantages(rewards)

    def state(self) -> dict[str, Any]:
        """Everything, as plain data."""
        return {key: {"value": one.value, "count": one.count} for key, one in self._of.items()}

    def set_state(self, state: dict[str, Any]) -> None:
        """Takes back a :meth:`state`."""
        self._of = {key: Baseline(self._decay, row["value"], row["count"]) for key, row in state.items()}


def standardised(advantages: Tensor, least_spread: float) -> Tensor:
    """Advantages over their root mean square, which is taken to be at least so much."""
    return advantages / torch.clamp(advantages.square().mean().sqrt(), min=least_spread)
