"""Solvers that go on improving until the budget is spent."""

# isort: skip_file
# Importing registers, and the order of registration is the order of tables.
from . import orders
from .annealing import Annealing, AnnealingMetis
from . import keys

__all__ = ["Annealing", "AnnealingMetis", "keys", "orders"]
