"""The contracted forward graph, whose down-sets are the states of the contiguous dynamic program.

The rules are those of the programs published with Tarnawski et al. 2020: a split is contiguous if the
*forward* ops of every device lie between two nested down-sets. Ops of one colocation group move together.
Backward ops, and updates, follow the forward ops of their group. Those whose group has none ("orphans") get
forward mirrors of no cost, and every edge between backward ops of which one is an orphan is reversed onto
mirrors and groups.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...graphs import DIRECTIONS, Graph
from ...problems import PlacementProblem


@dataclass(frozen=True, eq=False)
class Blocks:
    """Ops that one device takes together.

    Attributes:
        block: Block of each op, ``[ops] int32``.
        child_ptr: ``[blocks + 1] int32`` CSR of ``child``.
        child: Blocks that must come after each block, ``int32``.
    """

    block: NDArray[np.int32]
    child_ptr: NDArray[np.int32]
    child: NDArray[np.int32]

    @property
    def count(self) -> int:
        """Number of blocks."""
        return len(self.child_ptr) - 1


def contract(graph: Graph) -> Blocks:
    """Contracts colocation groups, and what they tie into cycles."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    unit = _colocation_units(graph)
    units = int(unit.max()) + 1
    forward = graph.op_direction == DIRECTIONS.index("forward")
    orphan = np.ones(units, np.bool_)
    orphan[unit[forward]] = False

    producer, consumer, _ = graph.edges
    ahead = forward[producer] & forward[consumer]
    mirrored = ~forward[producer] & ~forward[consumer] & (orphan[unit[producer]] | orphan[unit[consumer]])
    before = np.concatenate([unit[producer[ahead]], unit[consumer[mirrored]]])
    after = np.concatenate([unit[consumer[ahead]], unit[producer[mirrored]]])
    edges = coo_array((np.ones(len(before), np.int8), (before, after)), shape=(units, units))
    part = connected_components(edges, directed=True, connection="strong")[1]
    block = _numbered_by_first(part[unit])
    of_unit = np.zeros(units, np.int32)
    of_unit[unit] = block

    pairs = np.stack([of_unit[before], of_unit[after]], axis=1)
    pairs = np.unique(pairs[pairs[:, 0] != pairs[:, 1]], axis=0)
    counts = np.bincount(pairs[:, 0], minlength=int(block.max()) + 1)
    child_ptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    return Blocks(block, child_ptr, pairs[:, 1].astype(np.int32))


def device_classes(problem: PlacementProblem) -> list[tuple[int, ...]]:
    """Groups devices that are equal in every figure that a load depends on; each group ascending."""
    groups: dict[tuple[object, ...], list[int]] = {}
    for device, profile in enumerate(problem.cluster.devices):
        to_ns = np.ascontiguousarray(problem.to_device_ns[:, device]).tobytes()
        from_ns = np.ascontiguousarray(problem.from_device_ns[:, device]).tobytes()
        groups.setdefault((profile, to_ns, from_ns), []).append(device)
    return [tuple(devices) for devices in groups.values()]


def _colocation_units(graph: Graph) -> NDArray[np.int64]:
    """Colocation group of each op, ops without one getting numbers of their own, ``[ops]``."""
    alone = graph.op_group < 0
    unit = graph.op_group.astype(np.int64)
    unit[alone] = graph.num_groups + np.arange(np.count_nonzero(alone))
    return unit


def _numbered_by_first(label: NDArray[np.int32]) -> NDArray[np.int32]:
    """The same partition of the ops, numbered from 0 in order of first op."""
    _, first, inverse = np.unique(label, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int32)
    rank[np.argsort(first)] = np.arange(len(first), dtype=np.int32)
    return rank[inverse]
