"""Training and inference graphs of torch modules, recorded on fake tensors: no weights, no arithmetic."""

from .program import Program
from .reader import Example, Optimizer, executable, from_torch
from .step import Loss

__all__ = ["Example", "Loss", "Optimizer", "Program", "executable", "from_torch"]
