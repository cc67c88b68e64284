"""Solvers and learners behind one contract; one folder per family."""

from .registry import make, names, register
from .solver import PlacementSolver, Remark, Result, SchedulingSolver, Solver, evaluate_device

__all__ = [
    "PlacementSolver",
    "Remark",
    "Result",
    "SchedulingSolver",
    "Solver",
    "evaluate_device",
    "make",
    "names",
    "register",
]
