"""Solvers that go on improving until the budget is spent."""

from .annealing import Annealing, AnnealingMetis

__all__ = ["Annealing", "AnnealingMetis"]
