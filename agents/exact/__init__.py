"""Solvers that prove what they claim."""

from .contiguous import Contiguous
from .orders import DpOrder

__all__ = ["Contiguous", "DpOrder"]
