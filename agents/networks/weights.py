"""Weights of a network as numpy arrays, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray


def weights_of(network: torch.nn.Module) -> dict[str, NDArray[Any]]:
    """Copies of all weights, by name."""
    return {name: tensor.detach().cpu().numpy().copy() for name, tensor in network.state_dict().items()}


def put_weights(network: torch.nn.Module, weights: Mapping[str, NDArray[Any]]) -> None:
    """Gives a network weights, as copies: torch wants to be able to write.

    Raises:
        RuntimeError: Weights of another network.
    """
    network.load_state_dict({name: torch.from_numpy(np.array(array)) for name, array in weights.items()})
