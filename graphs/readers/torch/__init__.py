"""Training and inference graphs of torch modules, recorded on fake tensors: no weights, no arithmetic."""

from .reader import Example, Optimizer, from_torch
from .step import Loss

__all__ = ["Example", "Loss", "Optimizer", "from_torch"]
