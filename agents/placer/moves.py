"""Moves of annealing that the policy would make."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ...problems import PlacementProblem
from ...problems.grouping import colocation_units, of_units
from ..search.walk import Move
from .instance import Instance
from .ppo import Ppo

#: Draws after which the policy looks at the placement again.
_LOOK_EVERY = 200


class LearnedMoves:
    """Takes a group from where the policy would not have put it to where it would have.

    The policy follows the placement, group by group, and says how likely each device was. A group is drawn the more
    often the less likely its device was, and goes to another by their probabilities. The policy looks again after some
    draws, as the placement changes.

    Args:
        placer: Says how likely devices are.
        instance: The problem as it reads it.
        problem: The problem.
        share: Of all moves.
    """

    def __init__(self, placer: Ppo, instance: Instance, problem: PlacementProblem, share: float) -> None:
        self.share = share
        self._placer, self._instance = placer, instance
        unit = colocation_units(problem.graph)
        group = of_units(instance.tables.blocks.group_of_op, unit)
        order = np.argsort(group, kind="stable").astype(np.int32)
        self._members = np.split(order, np.flatnonzero(np.diff(group[order])) + 1)
        self._first = np.array([members[0] for members in self._members])
        self._probability = np.empty((0, 0), np.float32)
        self._drawn = 0

    def draw(self, device: NDArray[np.uint8], rng: np.random.Generator) -> Sequence[Move]:
        """One move; see :class:`~opgym.agents.search.walk.Proposals`."""
        now = device[self._first]
        if self._drawn % _LOOK_EVERY == 0:
            self._probability = self._placer.probabilities(self._instance, now)
        self._drawn += 1
        groups = np.arange(len(now))
        elsewhere = self._probability.astype(np.float64)
        elsewhere[groups, now] = 0
        rising = np.cumsum(elsewhere.ravel())
        if rising[-1] <= 0:  # the policy has no doubt
            return []
        at = int(np.searchsorted(rising, rng.random() * rising[-1], side="right"))
        group, target = divmod(min(at, len(rising) - 1), elsewhere.shape[1])
        return [(self._members[group], target)]
