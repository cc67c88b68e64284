"""Peaks that no order of a graph on one device can beat."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .bounds import Bound
from .footprints import op_footprint_bytes, resident_tensors

if TYPE_CHECKING:
    from .scheduling import SchedulingProblem


def order_bound(problem: SchedulingProblem) -> Bound:
    """The largest dynamic footprint of an op: its inputs and outputs are live together, whatever the order."""
    footprint = op_footprint_bytes(problem.graph, ~resident_tensors(problem.graph))
    return Bound(float(footprint[problem.ops].max()), problem.unit, "largest op footprint")
