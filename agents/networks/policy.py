"""A policy: a network that its shape makes, with random weights or with given ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import torch
from numpy.typing import NDArray

from .weights import put_weights


class PolicyNetwork(torch.nn.Module):
    """What all policies of learners are; a subclass is made of its shape, which is all that its init takes."""

    @classmethod
    def of(cls, shape: Any, weights: Mapping[str, NDArray[Any]]) -> Self:
        """A policy with given weights.

        Raises:
            RuntimeError: Weights of another network.
        """
        policy = cls(shape)
        put_weights(policy, weights)
        return policy

    @classmethod
    def untrained(cls, shape: Any, seed: int) -> Self:
        """A policy with random weights."""
        torch.manual_seed(seed)
        return cls(shape)
