"""What the core offers for a batch of environments."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Int64 = NDArray[np.int64]
Bool = NDArray[np.bool_]


class BatchCore(Protocol):
    """What the core offers for a batch: one object that holds the running episode of every slot.

    ``observation`` is a list of C-contiguous arrays ``[slots, ...]``, one per key in the order of the batch's
    ``Shown.keys`` (a single one for ``"node"``). Every method that writes rows fills whole rows, so
    that the arrays may come uninitialised.
    """

    def reset(self, slots: Int64, graphs: Int64) -> None:
        """Begins an episode in each of some slots, about the graph of that index."""
        ...

    def step(
        self,
        actions: Int64,
        skip: Bool | None,
        reward: NDArray[np.float64],
        terminated: Bool,
        illegal_actions: Int64,
        action_mask: NDArray[np.int8],
        observation: list[NDArray[Any]],
    ) -> int:
        """Takes one decision in every slot that is not skipped, and writes the rows of all slots.

        An action that is illegal, -1 say, is replaced and counted. Where an episode ends, ``terminated`` is
        set and ``reward`` gets what its last step must pay beside the return of the episode, which the caller
        adds: 0 for a terminal reward, the potential before the step for a dense one. A slot that is skipped
        gets reward 0 and not terminated.

        Args:
            actions: ``[slots]``.
            skip: ``[slots]``; ``None``: no slot is skipped. An episode that is over must be.
            reward: ``[slots]``, written.
            terminated: ``[slots]``, written.
            illegal_actions: Illegal actions of each episode so far, ``[slots]``, written.
            action_mask: ``[slots, actions]``, written; all 1 where the episode is over.
            observation: Written.

        Returns:
            How many episodes ended.
        """
        ...

    def observe(
        self,
        slots: Int64,
        illegal_actions: Int64,
        action_mask: NDArray[np.int8],
        observation: list[NDArray[Any]],
    ) -> None:
        """Writes the rows of some slots as they are now; see :meth:`step`."""
        ...

    def action_masks(self, action_mask: NDArray[np.int8]) -> None:
        """Writes the legal actions of all slots, ``[slots, actions]``."""
        ...

    def decisions(self, slot: int) -> Int64:
        """Everything that was decided in an episode so far, legal, in order."""
        ...

    def replay(self, slot: int, graph: int, decisions: Int64, illegal_actions: int) -> None:
        """Begins an episode and takes decisions at once; ValueError where one of them is not possible."""
        ...
