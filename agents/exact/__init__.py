"""Solvers that prove what they claim."""

from .contiguous import Contiguous
from .cp_sat import CpSat
from .orders import DpOrder

__all__ = ["Contiguous", "CpSat", "DpOrder"]
