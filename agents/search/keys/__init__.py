"""Searches over keys in [0, 1] that stand for devices, priorities and transfers; their loops run in the core."""

# isort: skip_file
# Importing registers, and the order of registration is the order of tables.
from .encoding import KeyEncoding
from .proposal import Proposal, betas
from .brkga import Brkga
from .idrs import InstanceDependentRandomSearch
from .pair_annealing import PairAnnealing

__all__ = ["Brkga", "InstanceDependentRandomSearch", "KeyEncoding", "PairAnnealing", "Proposal", "betas"]
