"""Structures as the network reads them: one union of all ops, and what each op may attend to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .structure import BEFORE, BEHIND, UNRELATED, Structure

#: Whom each kind of attention sees beside the op itself, but for the last kind, which sees everybody.
_SEEN = (BEFORE, BEHIND, UNRELATED)
ATTENTION_KINDS = len(_SEEN) + 1
#: Logit of what is not seen.
_UNSEEN = -1e4


@dataclass(frozen=True)
class Batch:
    """Several structures at once.

    Attributes:
        nodes: Fields of ops, those of the task behind those of the structure, ``[nodes, fields] float32``.
        to_reader: What each op hears from those it reads from, with each weight, sparse ``[weights * nodes, nodes]``.
        to_writer: What each op hears from those that read from it, the same.
        slot: Place of each op in ``[graphs * most ops]``, ``[nodes] int64``.
        mask: What is added to logits of attention of all kinds but the last, ``[graphs, kinds - 1, most ops, most ops]
            float32``.
        padding: What is added to those of the last, ``[graphs, 1, 1, most ops] float32``; ``None``: nothing.
        sizes: Ops of each graph.
    """

    nodes: Tensor
    to_reader: Tensor
    to_writer: Tensor
    slot: Tensor
    mask: Tensor
    padding: Tensor | None
    sizes: tuple[int, ...]

    @classmethod
    def of(cls, structures: Sequence[Structure], tasks: Sequence[NDArray[np.float32]]) -> Batch:
        """The batch of some structures.

        Args:
            structures: The structures.
            tasks: Fields that tell the task of each, ``[fields] float32``.
        """
        sizes = tuple(len(structure.nodes) for structure in structures)
        first, most = np.cumsum([0, *sizes[:-1]]), max(sizes)
        mask = np.full((len(sizes), len(_SEEN), most, most), _UNSEEN, np.float32)
        for graph, (structure, size) in enumerate(zip(structures, sizes, strict=True)):
            for kind, relation in enumerate(_SEEN):
                mask[graph, kind, :size, :size][structure.relation == relation] = 0
        mask[:, :, range(most), range(most)] = 0  # padding sees itself, so that no row of attention is empty
        there = np.arange(most) < np.array(sizes)[:, None]
        padding = np.where(there, np.float32(0), np.float32(_UNSEEN))[:, None, None]
        nodes = [
            np.concatenate([s.nodes, np.broadcast_to(task, (len(s.nodes), len(task)))], axis=1)
            for s, task in zip(structures, tasks, strict=True)
        ]
        edges = np.concatenate([s.edges + at for s, at in zip(structures, first, strict=True)], axis=1)
        slot = np.concatenate([np.arange(size) + graph * most for graph, size in enumerate(sizes)])
        return cls(
            torch.from_numpy(np.concatenate(nodes)),
            _sums(edges[1], edges[0], np.concatenate([s.to_reader for s in structures]), sum(sizes)),
            _sums(edges[0], edges[1], np.concatenate([s.to_writer for s in structures]), sum(sizes)),
            torch.from_numpy(slot),
            torch.from_numpy(mask),
            None if there.all() else torch.from_numpy(padding),
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
