"""HDP's policy: a grouper, and a placer of groups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from numpy.typing import NDArray
from torch import nn

from ..networks.weights import put_weights
from .grouper import Grouper
from .sequence import SequencePlacer
from .shape import Shape


class Policy(nn.Module):
    """Puts ops into groups, and groups on devices.

    Untrained, all matrices are uniform by Glorot and Bengio (2010), and gates of memory begin open, as in the released
    code.

    Args:
        shape: Its shape.
    """

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.grouper = Grouper(shape)
        self.placer = SequencePlacer(shape)
        for name, weight in self.named_parameters():
            if weight.dim() > 1:
                nn.init.xavier_uniform_(weight)
            else:
                nn.init.zeros_(weight)
                if "bias_ih" in name:  # of the gates in, keep, new, out
                    nn.init.ones_(weight[len(weight) // 4 : len(weight) // 2])

    @classmethod
    def of(cls, shape: Shape, weights: Mapping[str, NDArray[Any]]) -> Policy:
        """A policy with given weights.

        Raises:
            RuntimeError: Weights of another network.
        """
        policy = cls(shape)
        put_weights(policy, weights)
        return policy


def new_policy(shape: Shape, seed: int) -> Policy:
    """A policy with random weights."""
    torch.manual_seed(seed)
    return Policy(shape)
