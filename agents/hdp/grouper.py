"""HDP's grouper: says of each unit which group it is in."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .instance import OP_FIELDS, Instance
from .shape import Shape


class Grouper(nn.Module):
    """Two layers and a softmax over groups (Mirhoseini et al. 2018, section 3).

    Ops that have to share a device share a group: what is said of a unit is the mean of what is said of its ops.

    Args:
        shape: Shape of the policy.
    """

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.kind = nn.Embedding(1 + len(shape.kinds), shape.kind_width)
        self.hidden = nn.Linear(shape.kind_width + OP_FIELDS, shape.grouper_width)
        self.group = nn.Linear(shape.grouper_width, shape.groups)

    def forward(self, graph: Instance) -> Tensor:
        """Preferences of units among groups, not normalised, ``[units, groups]``."""
        ops = self.hidden(torch.cat([self.kind(graph.kind), graph.fields], dim=1))
        # The last layer is linear, so the mean of what goes in gives the mean of what comes out.
        units = ops.new_zeros(len(graph.size), ops.shape[1]).index_add_(0, graph.unit, ops)
        said: Tensor = self.group(units / graph.size[:, None])
        return said
