"""Peaks that no order of a graph on one device can beat."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import _core
from ..graphs.core_graph import core_graph
from .bounds import Bound
from .footprints import op_footprint_bytes, resident_tensors

if TYPE_CHECKING:
    from .scheduling import SchedulingProblem

#: Time for cuts grows with the square of the ops.
MAX_OPS_FOR_CUTS = 100_000


def order_bound(problem: SchedulingProblem) -> Bound:
    """The largest memory that some moment needs in every order.

    While an op runs, its inputs, outputs and workspace are live, and so is what an ancestor wrote and a
    descendant reads, or what an ancestor wrote and the graph keeps as an output. While the last op runs, all
    outputs of the graph are live.
    """
    graph = problem.graph
    footprint = op_footprint_bytes(graph, ~resident_tensors(graph))
    bounds = [(int(footprint[problem.ops].max()), "largest op footprint")]
    bounds.append((_core.end_bytes(core_graph(graph)), "outputs at the end"))
    if graph.num_ops <= MAX_OPS_FOR_CUTS:
        bounds.append((int(_core.cut_bytes(core_graph(graph)).max()), "bytes live around an op"))
    value, name = max(bounds, key=lambda bound: bound[0])
    return Bound(float(value), problem.unit, name)
