"""Additive attention, in memory that does not grow with the number of pairs times their width."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

#: Numbers that are worked on at once: few enough to stay in the cache of a processor.
_AT_ONCE = 2**20


class Energies(torch.autograd.Function):
    """``energy[b, q, k] = weight . tanh(query[b, q] + key[b, k])`` (Bahdanau et al. 2015).

    ``[batch, queries, keys, width]`` numbers are made part by part, and made again on the way back. Instead of tanh x
    stands 2 sigmoid 2x - 1, which is the same and takes a fraction of the time.
    """

    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, weight: Tensor) -> Tensor:
        """Energies, ``[batch, queries, keys]``.

        Args:
            ctx: What the way back needs.
            query: ``[batch, queries, width]``.
            key: ``[batch, keys, width]``.
            weight: ``[width]``.
        """
        ctx.save_for_backward(query, key, weight)
        energy = query.new_empty(*query.shape[:2], key.shape[1])
        for at, rows in _parts(query, key):
            energy[at, rows] = 2 * (_sigmoid(query, key, at, rows) @ weight)
        return energy - weight.sum()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        (gradient,) = gradients
        query, key, weight = ctx.saved_tensors
        of_query, of_key, of_weight = (torch.zeros_like(each) for each in (query, key, weight))
        for at, rows in _parts(query, key):
            sigmoid, pull = _sigmoid(query, key, at, rows), gradient[at, rows]
            of_weight += 2 * (pull.reshape(1, -1) @ sigmoid.view(-1, len(weight)))[0]
            slope = torch.addcmul(sigmoid, sigmoid, sigmoid, value=-1).mul_(pull[..., None])
            of_query[at, rows] = slope.sum(1)
            of_key[at] += slope.sum(0)
        return of_query * (4 * weight), of_key * (4 * weight), of_weight - gradient.sum()


def energies(query: Tensor, key: Tensor, weight: Tensor) -> Tensor:
    """Energies, ``[batch, queries, keys]``; see :class:`Energies`."""
    energy: Tensor = Energies.apply(query, key, weight)  # type: ignore[no-untyped-call]
    return energy


def _parts(query: Tensor, key: Tensor) -> Iterator[tuple[int, slice]]:
    """Rows of each of the batch that are worked on at once."""
    rows = max(1, _AT_ONCE // (key.shape[1] * key.shape[2]))
    for at in range(len(query)):
        for first in range(0, query.shape[1], rows):
            yield at, slice(first, first + rows)


def _sigmoid(query: Tensor, key: Tensor, at: int, rows: slice) -> Tensor:
    """``[rows, keys, width]``."""
    return torch.add(query[at, rows, None], key[at]).mul_(2).sigmoid_()
