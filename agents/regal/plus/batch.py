"""Structures as the network reads them: one union of all ops, and what each op may attend to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..union import first_nodes, union_of_edges, union_of_nodes
from .structure import BEFORE, BEHIND, UNRELATED, Structure

#: Whom each kind of attention sees beside the op itself, but for the last kind, which sees everybody.
_SEEN = (BEFORE, BEHIND, UNRELATED)
ATTENTION_KINDS = len(_SEEN) + 1
#: Logit of what is not seen.
_UNSEEN = -1e4
#: Ops of one view: with fewer there is less to see, and more calls of the kernel. What 128 successive ops see of the
#: three kinds is 1.3 to 1.5 times a graph of 2,000 ops, not 3 times, for the four families of random graphs.
_VIEW_OPS = 128


@dataclass(frozen=True)
class View:
    """What some successive ops of a graph see.

    Attributes:
        ops: They.
        seen: Whatever one of them sees: a range, or ``[seen] int64``.
        mask: What is added to logits, ``[ops, seen] float32``; ``None``: nothing.
    """

    ops: slice
    seen: slice | Tensor
    mask: Tensor | None

    @classmethod
    def related(cls, relation: NDArray[np.uint8], kind: int, first: int) -> tuple[View, ...]:
        """The views of one kind of a graph whose first op is ``first`` of its batch."""
        views = []
        for begin in range(0, len(relation), _VIEW_OPS):
            sees = relation[begin : begin + _VIEW_OPS] == kind
            sees[range(len(sees)), range(begin, begin + len(sees))] = True
            seen = np.flatnonzero(sees.any(axis=0))
            # take() keeps rows together; indexing would not, and kernels copy what is not
            mask = np.where(sees.take(seen, axis=1), np.float32(0), np.float32(_UNSEEN))
            ops = slice(first + begin, first + begin + len(sees))
            views.append(cls(ops, _range_or_list(seen + first), torch.from_numpy(mask)))
        return tuple(views)


def _range_or_list(ops: NDArray[np.int64]) -> slice | Tensor:
    """Ascending ops as they are read fastest: a range is not copied."""
    begin, end = int(ops[0]), int(ops[-1]) + 1
    return slice(begin, end) if end - begin == len(ops) else torch.from_numpy(ops)


@dataclass(frozen=True)
class Batch:
    """Several structures at once.

    Attributes:
        nodes: Fields of ops, those of the task behind those of the structure, ``[nodes, fields] float32``.
        to_reader: What each op hears from those it reads from, with each weight, sparse ``[weights * nodes, nodes]``.
        to_writer: What each op hears from those that read from it, the same.
        views: Of each kind of attention the views of all ops, in their order.
        sizes: Ops of each graph.
    """

    nodes: Tensor
    to_reader: Tensor
    to_writer: Tensor
    views: tuple[tuple[View, ...], ...]
    sizes: tuple[int, ...]

    @classmethod
    def of(cls, structures: Sequence[Structure], tasks: Sequence[NDArray[np.float32]]) -> Batch:
        """The batch of some structures.

        Args:
            structures: The structures.
            tasks: Fields that tell the task of each, ``[fields] float32``.
        """
        sizes = tuple(len(structure.nodes) for structure in structures)
        first = first_nodes(sizes)
        views: list[tuple[View, ...]] = [
            sum((View.related(s.relation, kind, at) for s, at in zip(structures, first, strict=True)), ())
            for kind in _SEEN
        ]
        graphs = [slice(at, at + size) for at, size in zip(first, sizes, strict=True)]
        views.append(tuple(View(graph, graph, None) for graph in graphs))
        edges = union_of_edges([s.edges for s in structures], first)
        return cls(
            torch.from_numpy(union_of_nodes([s.nodes for s in structures], tasks)),
            _sums(edges[1], edges[0], np.concatenate([s.to_reader for s in structures]), sum(sizes)),
            _sums(edges[0], edges[1], np.concatenate([s.to_writer for s in structures]), sum(sizes)),
            tuple(views),
            sizes,
        )


def _sums(
    receiver: NDArray[np.int64], sender: NDArray[np.int64], weights: NDArray[np.float32], nodes: int
) -> Tensor:
    """The matrix that sums what ops hear, once for each weight, sparse ``[weights * nodes, nodes]``."""
    rows = np.concatenate([receiver + nodes * weight for weight in range(weights.shape[1])])
    index = np.stack([rows, np.tile(sender, weights.shape[1])])
    shape = (weights.shape[1] * nodes, nodes)
    return torch.sparse_coo_tensor(
        torch.from_numpy(index), torch.from_numpy(weights.T.reshape(-1)), shape, check_invariants=False
    ).coalesce()
