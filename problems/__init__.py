"""Immutable problems, their solutions, bounds, and the checker."""

from .bounds import Bound
from .budget import Budget, BudgetExhausted, CurvePoint, Evaluator, Problem, Progress, ProgressCallback
from .objectives import Objective
from .pipeline import Pipeline
from .placement import Placement, PlacementProblem, program_order
from .scheduling import Order, SchedulingProblem

#: A problem of either kind.
AnyProblem = PlacementProblem | SchedulingProblem

__all__ = [
    "AnyProblem",
    "Bound",
    "Budget",
    "BudgetExhausted",
    "CurvePoint",
    "Evaluator",
    "Objective",
    "Order",
    "Pipeline",
    "Placement",
    "PlacementProblem",
    "Problem",
    "Progress",
    "ProgressCallback",
    "SchedulingProblem",
    "program_order",
]
