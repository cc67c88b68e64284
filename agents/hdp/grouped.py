"""What the placer reads of groups, and where ops go by where their groups go."""

from __future__ import annotations

import torch
from torch import Tensor

from .instance import DIMS, OUTPUTS, Instance
from .shape import Shape


def group_fields(shape: Shape) -> int:
    """Numbers that the placer reads of a group."""
    return 2 * shape.groups + 1 + len(shape.kinds) + OUTPUTS * DIMS


def grouped(graph: Instance, group: Tensor, shape: Shape) -> Tensor:
    """What the placer reads of groups (Mirhoseini et al. 2018, section 3).

    Of each group: to and from how many ops of each group its ops send, how many ops of each kind it has, and the
    sums of the sizes of their outputs. Each of these three is over 1 + its largest number, as the released code has it
    for the three together, where sizes leave next to nothing of the others.

    Args:
        graph: The problem.
        group: Of each unit, of each grouping, ``[groupings, units] int64``.
        shape: Of the policy.

    Returns:
        ``[groupings, groups, fields] float32``.
    """
    groupings, groups, kinds = len(group), shape.groups, 1 + len(shape.kinds)
    # Groups of all groupings are numbered through, so that one count does for all.
    first = torch.arange(groupings, device=group.device)[:, None] * groups
    of_op = group[:, graph.unit] + first
    sent = _counted(
        of_op[:, graph.writer] * groups + group[:, graph.unit[graph.reader]], groupings * groups, groups
    )
    sent = sent.view(groupings, groups, groups)
    kind = _counted(of_op * kinds + graph.kind, groupings * groups, kinds).view(groupings, groups, kinds)
    # Sums of whole numbers in float64 are exact, and so the same in any order.
    sizes = torch.zeros(groupings * groups, OUTPUTS * DIMS, dtype=torch.float64, device=group.device)
    for of_ops in of_op:
        sizes.index_add_(0, of_ops, graph.sizes)
    parts = (torch.cat([sent, sent.transpose(1, 2)], dim=2), kind, sizes.view(groupings, groups, -1))
    return torch.cat([(part / (1 + part.amax(2, keepdim=True))).float() for part in parts], dim=2)


def _counted(cell: Tensor, rows: int, columns: int) -> Tensor:
    """How often each cell of a table is named, ``[rows, columns] float64``."""
    return torch.bincount(cell.reshape(-1), minlength=rows * columns).view(rows, columns).double()


def allowed_of_groups(graph: Instance, group: Tensor, groups: int) -> Tensor:
    """Devices of each group, ``[groupings, groups, devices] bool``: those that may run all of its units.

    Where there is none, those that may run anything, and units that may not run there go where they may
    (:func:`device_of_units`). A group without ops may go anywhere.

    Args:
        graph: The problem.
        group: Of each unit, of each grouping, ``[groupings, units] int64``.
        groups: Number of groups.
    """
    refused = (~graph.allowed).float()
    allowed = torch.stack(
        [
            refused.new_zeros(groups, refused.shape[1]).index_add_(0, of_units, refused) == 0
            for of_units in group
        ]
    )
    anything = graph.allowed.any(0)
    allowed &= anything
    return torch.where(allowed.any(2, keepdim=True), allowed, anything)


def device_of_units(graph: Instance, group: Tensor, device: Tensor) -> Tensor:
    """Device of each unit, ``[placements, units] int64``.

    Args:
        graph: The problem.
        group: Of each unit, ``[placements, units] int64``.
        device: Of each group, ``[placements, groups] int64``.
    """
    wanted = device.gather(1, group)
    able = graph.allowed.gather(1, wanted.T).T
    return torch.where(able, wanted, graph.fallback)
