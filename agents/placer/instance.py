"""A placement problem as the policy reads it: the groups of ``GraphPlacement-v0``, and what is between them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from ...envs.placement.features import DEVICE_FIELDS, EDGE_FIELDS, GROUP_FIELDS
from ...envs.placement.observation import whole_graph
from ...envs.placement.tables import Tables
from ...outcome import Outcome
from ...problems import PlacementProblem
from ..networks.placing.learned import key_of
from .groups import decision_groups
from .shape import Shape

#: Numbers that say how large a problem is.
SIZE_FIELDS = 2
#: What the policy reads of a group, of an edge, and of a device when a group is decided.
GROUP_WIDTH, EDGE_WIDTH, DEVICE_WIDTH = len(GROUP_FIELDS) + SIZE_FIELDS, len(EDGE_FIELDS), len(DEVICE_FIELDS)
_MOST_DEVICES, _MOST_GROUPS = 64, 4096
#: What does not fit loses this much, and as much again for each capacity that it is over.
_OVERFLOW = 1.0
_MOST_OVERFLOW = 10.0


@dataclass(frozen=True, eq=False)
class Instance:
    """One problem.

    Attributes:
        key: Differs where problems do.
        tables: The problem as the environment has it: its groups, and estimates of when each can run where.
        group: Numbers of each group, ``[groups, GROUP_WIDTH] float32``.
        writer: Group that writes, of each edge, ``[edges] int64``.
        reader: Group that reads, ``[edges] int64``.
        edge: Numbers of each edge, ``[edges, EDGE_WIDTH] float32``.
    """

    key: str
    tables: Tables
    group: Tensor
    writer: Tensor
    reader: Tensor
    edge: Tensor

    @classmethod
    def of(cls, problem: PlacementProblem, shape: Shape, device: str = "cpu") -> Instance:
        """A problem for a policy of a shape, on a device of torch."""
        tables = Tables(problem, decision_groups(problem, shape.groups))
        whole = whole_graph(tables)
        groups = len(tables.groups)
        size = torch.tensor(
            [
                math.log(tables.num_devices) / math.log(_MOST_DEVICES),
                math.log(groups) / math.log(_MOST_GROUPS),
            ]
        )
        edges = torch.from_numpy(whole.edges).long().to(device)
        return cls(
            key_of(problem),
            tables,
            torch.cat([torch.from_numpy(tables.groups), size.expand(groups, SIZE_FIELDS)], dim=1).to(device),
            edges[:, 0],
            edges[:, 1],
            torch.from_numpy(whole.edge_values).to(device),
        )

    def __len__(self) -> int:
        return len(self.group)

    @property
    def num_devices(self) -> int:
        """Number of devices."""
        return self.tables.num_devices

    def gain(self, outcome: Outcome) -> float:
        """How much better a placement is than all work on the fastest single device: the logarithm of the ratio.

        What does not fit is worth less, by 1 and by the share by which it is over.
        """
        gain = -math.log(max(outcome.value, 1e-300) / self.tables.reference.value)
        return gain if outcome.ok else gain - _OVERFLOW - min(outcome.overflow_share, _MOST_OVERFLOW)
