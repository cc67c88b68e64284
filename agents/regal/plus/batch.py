"""Structures as the network reads them: one union of all ops, and what each op may attend to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .structure import BEFORE, BEHIND, UNRELATED, Structure

#: Whom each kind of attention sees beside the op itself: what runs before it, behind it, is unrelated; and everybody.
ATTENTION_KINDS = 4
#: Logit of what is not seen.
_UNSEEN = -1e4


@dataclass(frozen=True)
class Batch:
    """Several structures at once.

    Attributes:
        nodes: Fields of ops, those of the task behind those of the structure, ``[nodes, fields] float32``.
        writer: Writing op of each edge, ``[edges] int64``.
        reader: Reading op of each edge, ``[edges] int64``.
        to_reader: Weights of what a reader hears, ``[edges, weights] float32``.
        to_writer: Weights of what a writer hears, ``[edges, weights] float32``.
        slot: Place of each op in ``[graphs * most ops]``, ``[nodes] int64``.
        mask: What is added to logits of attention, ``[graphs, kinds, most ops, most ops] float32``.
        sizes: Ops of each graph.
    """

    nodes: Tensor
    writer: Tensor
    reader: Tensor
    to_reader: Tensor
    to_writer: Tensor
    slot: Tensor
    mask: Tensor
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
        seen = np.zeros((len(sizes), ATTENTION_KINDS, most, most), np.bool_)
        seen[:, :, range(most), range(most)] = (
            True  # padding sees itself, so that no row of attention is empty
        )
        for graph, (structure, size) in enumerate(zip(structures, sizes, strict=True)):
            for kind, relation in enumerate((BEFORE, BEHIND, UNRELATED)):
                seen[graph, kind, :size, :size] |= structure.relation == relation
            seen[graph, ATTENTION_KINDS - 1, :size, :size] = True
        nodes = [
            np.concatenate([s.nodes, np.broadcast_to(task, (len(s.nodes), len(task)))], axis=1)
            for s, task in zip(structures, tasks, strict=True)
        ]
        edges = np.concatenate([s.edges + at for s, at in zip(structures, first, strict=True)], axis=1)
        slot = np.concatenate([np.arange(size) + graph * most for graph, size in enumerate(sizes)])
        return cls(
            torch.from_numpy(np.concatenate(nodes)),
            torch.from_numpy(edges[0]),
            torch.from_numpy(edges[1]),
            torch.from_numpy(np.concatenate([s.to_reader for s in structures])),
            torch.from_numpy(np.concatenate([s.to_writer for s in structures])),
            torch.from_numpy(slot),
            torch.zeros(seen.shape).masked_fill_(torch.from_numpy(~seen), _UNSEEN),
            sizes,
        )
