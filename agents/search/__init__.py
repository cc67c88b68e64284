"""Solvers that go on improving until the budget is spent."""

from . import orders
from .annealing import Annealing, AnnealingMetis

__all__ = ["Annealing", "AnnealingMetis", "orders"]
