"""Solvers and learners behind one contract; one folder per family."""

from .learner import Learner, Monitor, is_learner
from .registry import make, names, register
from .saved import load
from .solver import PlacementSolver, Remark, Result, SchedulingSolver, Solver, evaluate_device

__all__ = [
    "Learner",
    "Monitor",
    "PlacementSolver",
    "Remark",
    "Result",
    "SchedulingSolver",
    "Solver",
    "evaluate_device",
    "is_learner",
    "load",
    "make",
    "names",
    "register",
]
