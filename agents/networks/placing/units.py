"""What is placed as one: ops that have to share a device are a unit, every other op is one by itself."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ....problems import PlacementProblem
from ....problems.grouping import colocation_units, of_units


@dataclass(frozen=True, eq=False)
class Units:
    """The units of a problem.

    Attributes:
        of_op: Unit of each op, numbered by first op, ``[ops] int32``.
        sizes: Ops of each unit, ``[units] int64``.
        allowed: Whether a unit may run on a device, ``[units, devices] bool``.
    """

    of_op: NDArray[np.int32]
    sizes: NDArray[np.int64]
    allowed: NDArray[np.bool_]

    @classmethod
    def of(cls, problem: PlacementProblem) -> Units:
        """The units of a problem."""
        unit = colocation_units(problem.graph)
        return cls(unit, np.bincount(unit), of_units(problem.allowed, unit))

    def __len__(self) -> int:
        return len(self.sizes)

    def device_of_ops(self, device: NDArray[np.integer]) -> NDArray[np.uint8]:
        """Device of each op from that of each unit, ``[..., units] -> [..., ops] uint8``."""
        of_ops: NDArray[np.uint8] = device.astype(np.uint8)[..., self.of_op]
        return of_ops
