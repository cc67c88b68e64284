"""Solvers of scheduling problems that prove what they claim."""

from .order_program import DpOrder

__all__ = ["DpOrder"]
