"""The state of an episode."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..._core import PartialOrder
from ...outcome import Outcome


@dataclass
class SchedulingState:
    """Everything that changes during an episode; ``fork()`` hands out copies of it.

    Attributes:
        partial: The ops that have run, and what follows from them.
        slots: Node of each slot, in order of rank; with ``action="op"`` none.
        potential: The peak so far / reference.
        illegal_actions: Actions so far that were replaced because they were illegal.
        outcome: Of the whole order, once there is one.
        over: Whether the episode has ended.
    """

    partial: PartialOrder
    slots: list[int]
    potential: float = 0.0
    illegal_actions: int = 0
    outcome: Outcome | None = None
    over: bool = False

    def copy(self) -> SchedulingState:
        """An independent copy: O(ops + tensors)."""
        return replace(self, partial=self.partial.copy())  # slots are replaced, never changed
