"""A placement problem as HDP's policy reads it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...graphs import Graph
from ...problems import PlacementProblem
from ..networks.placing.judging import Reward
from ..networks.placing.learned import key_of
from ..networks.placing.ops import kind_codes, output_shapes
from ..networks.placing.units import Units
from .shape import Shape

#: Outputs of an op, and dimensions of an output, that are read.
OUTPUTS, DIMS = 5, 5
#: Neighbours of an op that are read.
NEIGHBOURS = 10
#: Numbers that the grouper reads of an op beside its kind.
OP_FIELDS = OUTPUTS * DIMS + 2 * NEIGHBOURS
#: Scale on which logarithms of sizes are about 1.
_LOG_SCALE = 0.1


@dataclass(frozen=True, eq=False)
class Instance:
    """One problem.

    Attributes:
        key: Differs where problems do.
        units: What is placed as one.
        reward: Of outcomes.
        kind: Of each op, ``[ops] int64``; 0: unknown.
        fields: What else the grouper reads of each op, ``[ops, OP_FIELDS] float32``.
        sizes: Of its outputs, ``[ops, OUTPUTS x DIMS] float64``; 0 where there is none.
        writer: First op of each pair of ops with a tensor from one to the other, ``[pairs] int64``.
        reader: Second op of each pair, ``[pairs] int64``.
        unit: Of each op, ``[ops] int64``.
        size: Ops of each unit, ``[units] float32``.
        allowed: Devices of each unit, ``[units, devices of the policy] bool``.
        fallback: First device of each unit, ``[units] int64``: where it runs if its group's device cannot run it.
    """

    key: str
    units: Units
    reward: Reward
    kind: Tensor
    fields: Tensor
    sizes: Tensor
    writer: Tensor
    reader: Tensor
    unit: Tensor
    size: Tensor
    allowed: Tensor
    fallback: Tensor

    @classmethod
    def of(cls, problem: PlacementProblem, shape: Shape, device: str = "cpu") -> Instance:
        """A problem for a policy of a shape, on a device of torch."""
        graph, units = problem.graph, Units.of(problem)
        sizes = output_shapes(graph, OUTPUTS, DIMS).reshape(graph.num_ops, OUTPUTS * DIMS)
        writer, reader = op_pairs(graph)
        near = neighbour_fields(graph.num_ops, writer, reader)
        fields = np.concatenate([np.log1p(sizes) * _LOG_SCALE, near], axis=1)
        allowed = np.zeros((len(units), shape.devices), np.bool_)
        allowed[:, : len(problem.cluster)] = units.allowed
        arrays = (
            kind_codes(graph, shape.kinds),
            fields.astype(np.float32),
            sizes.astype(np.float64),
            writer,
            reader,
            units.of_op.astype(np.int64),
            units.sizes.astype(np.float32),
            allowed,
            allowed.argmax(axis=1),
        )
        return cls(
            key_of(problem),
            units,
            Reward.of(problem),
            *(torch.from_numpy(array).to(device) for array in arrays),
        )


def op_pairs(graph: Graph) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pairs of ops with a tensor from one to the other, each once: writers and readers, ``[pairs] int64``."""
    writer, reader, _ = (end.astype(np.int64) for end in graph.edges)
    pairs = np.unique(writer * graph.num_ops + reader)
    return pairs // graph.num_ops, pairs % graph.num_ops


def neighbour_fields(ops: int, writer: NDArray[np.int64], reader: NDArray[np.int64]) -> NDArray[np.float32]:
    """Who the neighbours of each op are: of each its number in topological order, and on which side it is.

    Those that an op reads from come first, then its readers, each in order; further ones are left out.

    Args:
        ops: Number of ops.
        writer: First op of each pair of neighbours.
        reader: Second op of each pair.

    Returns:
        ``[ops, 2 x NEIGHBOURS] float32``: number / ops, above 0 to 1, then -1 for a writer and 1 for a reader; 0
        where there is none.
    """
    op = np.concatenate([reader, writer])
    other = np.concatenate([writer, reader])
    side = np.repeat(np.array([-1, 1]), len(writer))
    order = np.lexsort((other, side, op))
    op, other, side = op[order], other[order], side[order]
    degree = np.bincount(op, minlength=ops)
    slot = np.arange(len(op)) - (np.cumsum(degree) - degree)[op]
    kept = slot < NEIGHBOURS
    fields = np.zeros((ops, NEIGHBOURS, 2), np.float32)
    fields[op[kept], slot[kept], 0] = (other[kept] + 1) / ops
    fields[op[kept], slot[kept], 1] = side[kept]
    return fields.reshape(ops, 2 * NEIGHBOURS)
