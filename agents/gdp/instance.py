"""A placement problem as GDP's policy reads it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ...problems import PlacementProblem
from ..networks.placing.judging import Reward
from ..networks.placing.learned import key_of
from ..networks.placing.ops import kind_codes, neighbours, output_shapes
from ..networks.placing.units import Units
from .shape import Shape

#: Dimensions of an op's first output that are read.
SHAPE_FIELDS = 4


@dataclass(frozen=True, eq=False)
class Instance:
    """One problem.

    Attributes:
        key: Differs where problems do.
        units: What is placed as one.
        reward: Of outcomes.
        kind: Of each op, ``[ops] int64``; 0: unknown.
        shape: Sizes of its first output, ``[ops, 4] float32``.
        degree: Number of neighbours of each op, ``[ops] int64``.
        neighbour: Neighbours, op after op, ``[edges] int64``.
        unit: Of each op, ``[ops] int64``.
        size: Ops of each unit, ``[units] float32``.
        allowed: Devices of each unit, ``[units, devices of the policy] bool``.
    """

    key: str
    units: Units
    reward: Reward
    kind: Tensor
    shape: Tensor
    degree: Tensor
    neighbour: Tensor
    unit: Tensor
    size: Tensor
    allowed: Tensor

    @classmethod
    def of(cls, problem: PlacementProblem, shape: Shape, device: str = "cpu") -> Instance:
        """A problem for a policy of a shape, on a device of torch."""
        graph, units = problem.graph, Units.of(problem)
        degree, neighbour = neighbours(graph)
        allowed = torch.zeros(len(units), shape.devices, dtype=torch.bool)
        allowed[:, : len(problem.cluster)] = torch.from_numpy(units.allowed)
        return cls(
            key_of(problem),
            units,
            Reward.of(problem),
            torch.from_numpy(kind_codes(graph, shape.kinds)).to(device),
            torch.from_numpy(output_shapes(graph, 1, SHAPE_FIELDS)[:, 0]).to(device),
            torch.from_numpy(degree).to(device),
            torch.from_numpy(neighbour).to(device),
            torch.from_numpy(units.of_op).long().to(device),
            torch.from_numpy(units.sizes).float().to(device),
            allowed.to(device),
        )
