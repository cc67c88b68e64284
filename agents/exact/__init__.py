"""Solvers that prove what they claim."""

from .contiguous import Contiguous

__all__ = ["Contiguous"]
