"""Small problems of both types, by a solver of constraints (extra ``solvers``)."""

from .solver import CpSat

__all__ = ["CpSat"]
