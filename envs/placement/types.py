"""The state of an episode."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..._core import PlacementEstimate
from ...outcome import Outcome


@dataclass
class PlacementState:
    """Everything that changes during an episode; ``fork()`` hands out copies of it.

    Attributes:
        mode: Of the game.
        device: Device of each group, ``[groups] int8``; -1: not decided yet.
        step: Decisions taken.
        group: Group that the next action decides; -1: none (``one_shot``, or the episode is over).
        estimate: The earliest-finish estimate of the groups decided (in ``refine``: visited in this pass).
        potential: What the reward is a difference of, in units of the reference; lower is better.
        baseline: What the return is measured from: 0, or the score of the initial placement in ``refine``.
        illegal_actions: Actions so far that were replaced because they were illegal.
        outcome: Of the whole placement, once there is one.
        over: Whether the episode has ended.
    """

    mode: str
    device: NDArray[np.int8]
    step: int
    group: int
    estimate: PlacementEstimate
    potential: float = 0.0
    baseline: float = 0.0
    illegal_actions: int = 0
    outcome: Outcome | None = None
    over: bool = False

    def copy(self) -> PlacementState:
        """An independent copy: O(groups + tensors between groups)."""
        return replace(self, device=self.device.copy(), estimate=self.estimate.copy())
