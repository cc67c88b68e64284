"""Post-order by the memory that operands need and leave."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ....problems import SchedulingProblem
from ...registry import register
from .dependencies import Dependencies, sums_by_op, takes_memory
from .one_order import OneOrder
from .traversals import post_order


@register
@dataclass(frozen=True)
class SethiUllman(OneOrder):
    """Post-order that visits first the operand whose need exceeds most what it leaves behind.

    Need is the peak of running an op and all behind it, as if nothing were shared. On trees this is the best
    post-order (Sethi, Ullman 1970, "The generation of optimal code for arithmetic expressions"; for sizes Liu
    1986, "On the storage requirement in the out-of-core multifrontal method for sparse factorization"); other graphs
    are treated as the trees that unfold from them.
    """

    name: ClassVar[str] = "sethi-ullman"
    summary: ClassVar[str] = "post-order by need less what is left of each operand (Sethi-Ullman, Liu)"

    def order(self, problem: SchedulingProblem) -> NDArray[np.int32]:
        """Liu's post-order."""
        graph = problem.graph
        dependencies = Dependencies.of(graph)
        dynamic = takes_memory(graph)
        kept = dynamic & ((np.diff(graph.consumer_ptr) > 0) | graph.tensor_is_output)
        written, left = sums_by_op(graph, dynamic), sums_by_op(graph, kept)
        workspace = graph.op_workspace_bytes.tolist()
        need = [0] * graph.num_ops

        def excess(v: int) -> tuple[int, int]:
            return left[v] - need[v], v

        for v in problem.ops.tolist():
            held = peak = 0
            for u in sorted(dependencies.before[v], key=excess):
                peak = max(peak, held + need[u])
                held += left[u]
            need[v] = max(peak, held + written[v] + workspace[v])
        return post_order(problem, dependencies, excess)
