"""One problem as our own policy sees it, and how keys are drawn for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from ....problems import AnyProblem, PlacementProblem
from ...search.keys import KeyEncoding
from ..task import Task
from .proposals import Expected
from .structure import Structure

Keys = NDArray[np.float32]

#: Affinities that name a device: that of the device, and that of the other one.
_CHOSEN, _OTHER = 0.75, 0.25


@dataclass(frozen=True, eq=False)
class Instance:
    """A problem, ready to be proposed for.

    Attributes:
        problem: The problem.
        encoding: Its genes.
        structure: Of its graph.
        task: What is asked of it.
    """

    problem: AnyProblem
    encoding: KeyEncoding
    structure: Structure
    task: Task

    @classmethod
    def of(cls, problem: AnyProblem, groups: str | None = None, *, transfer_keys: bool = True) -> Self:
        """The instance of a problem; ``groups`` and ``transfer_keys`` as of :class:`KeyEncoding`."""
        encoding = KeyEncoding(problem, groups, transfer_keys=transfer_keys)
        if isinstance(problem, PlacementProblem):
            op_time_ns = problem.cost_ns.mean(axis=1)
        else:
            op_time_ns = np.ones(problem.graph.num_ops)  # of an order no time is asked
        return cls(problem, encoding, Structure.of(problem.graph, op_time_ns), Task.of(problem))

    def most_likely(self, expected: Expected) -> Keys:
        """The keys that are expected most, ``[genes] float32``."""
        rows = self._keys(1 - expected.position[None], self._device_1(expected)[None] > 0.5)
        return rows.reshape(-1)

    def drawn(self, expected: Expected, count: int, flips: float, rng: np.random.Generator) -> Keys:
        """Keys around what is expected, ``[count, genes] float32``.

        Positions are drawn from their distributions. Devices are the likelier ones but for a few flips: drawn by their
        probabilities, they would be no plan where the policy is not yet sure of any.

        Args:
            expected: Of the ops.
            count: How many to draw.
            flips: Share of the groups that are on the less likely device.
            rng: Source of randomness.
        """
        size = 1 / expected.share - 1
        mean = 1 - expected.position
        priority = rng.beta(mean * size, (1 - mean) * size, (count, len(mean)))
        device_1 = self._device_1(expected) > 0.5
        return self._keys(priority, device_1 ^ (rng.random((count, len(device_1))) < flips))

    def _device_1(self, expected: Expected) -> NDArray[np.float64]:
        """Mean probability of each group, ``[groups] float64``; none on one device."""
        group = self.encoding.group
        if self.encoding.affinities.stop == 0:
            return np.zeros(0)
        mean: NDArray[np.float64] = np.bincount(group, expected.device_1) / np.bincount(group)
        return mean

    def _keys(self, priority: NDArray[np.float64], device_1: NDArray[np.bool_]) -> Keys:
        """Keys from the priority of each op, ``[rows, ops]``, and the device of each group, ``[rows, groups]``."""
        encoding = self.encoding
        keys = np.full((len(priority), encoding.genes), 0.5, np.float32)
        keys[:, encoding.priorities] = priority[:, encoding.ops]
        chosen = np.stack([~device_1, device_1], axis=2).reshape(len(priority), -1)
        keys[:, encoding.affinities] = np.where(chosen, _CHOSEN, _OTHER)
        return keys
