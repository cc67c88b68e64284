"""What the returns of each step of an episode are compared with: those of the same step of recent episodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Float64 = NDArray[np.float64]


class StepBaselines:
    """The mean return of each step over the last updates on a graph, the present one included.

    Args:
        window: Updates that count.
    """

    def __init__(self, window: int) -> None:
        self._window = window
        self._of: dict[str, Float64] = {}

    def advantages(self, key: str, returns: Float64) -> Float64:
        """By how much returns are above those of the same step, ``[steps, episodes]``.

        Args:
            key: Of the graph.
            returns: Of the present update, ``[steps, episodes]``.
        """
        mean = returns.mean(axis=1)[None]
        before = self._of.get(key, mean[:0])
        self._of[key] = np.concatenate([before, mean])[-self._window :]
        advantages: Float64 = returns - self._of[key].mean(axis=0)[:, None]
        return advantages

    def state(self) -> dict[str, Any]:
        """Everything, as plain data."""
        return dict(self._of)

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Takes back a :meth:`state`."""
        self._of = {key: np.array(means, np.float64) for key, means in state.items()}
