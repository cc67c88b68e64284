"""Orders by walking over the graph: program order, breadth first, post-order, XLA's depth first."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ....problems import SchedulingProblem
from ...registry import register
from .dependencies import Dependencies, sums_by_op, takes_memory
from .one_order import OneOrder

Int32 = NDArray[np.int32]


@register
@dataclass(frozen=True)
class ProgramOrder(OneOrder):
    """The order of the file: what a runtime without a memory pass does."""

    name: ClassVar[str] = "program-order"
    summary: ClassVar[str] = "the order of the model file"

    def order(self, problem: SchedulingProblem) -> Int32:
        """All ops by index."""
        return problem.ops


@register
@dataclass(frozen=True)
class BreadthFirst(OneOrder):
    """First ready, first run: Kahn's algorithm with a queue (Kahn 1962, "Topological sorting of large networks")."""

    name: ClassVar[str] = "bfs"
    summary: ClassVar[str] = "breadth first: ops in the order in which they become ready"

    def order(self, problem: SchedulingProblem) -> Int32:
        """Ops as they become ready."""
        dependencies = Dependencies.of(problem.graph)
        waiting = [len(before) for before in dependencies.before]
        queue = deque(v for v in problem.ops.tolist() if not waiting[v])
        order = []
        while queue:
            v = queue.popleft()
            order.append(v)
            for w in dependencies.after[v]:
                waiting[w] -= 1
                if not waiting[w]:
                    queue.append(w)
        return np.array(order, np.int32)


@register
@dataclass(frozen=True)
class DepthFirst(OneOrder):
    """Post-order that visits first the operand with most fan-out, then most bytes, behind it.

    XLA's ``DFSMemoryScheduler``. Fan-out is readers beyond the first, summed with that of all operands; both sums
    count what is shared as often as it is reached, capped by the number of ops and by the bytes written so far.
    """

    name: ClassVar[str] = "dfs"
    summary: ClassVar[str] = "post-order by fan-out and bytes behind each operand (XLA)"

    def order(self, problem: SchedulingProblem) -> Int32:
        """XLA's depth-first order."""
        graph = problem.graph
        dependencies = Dependencies.of(graph)
        written = sums_by_op(graph, takes_memory(graph))
        fan_out, total, so_far = [0] * graph.num_ops, [0] * graph.num_ops, 0
        for v in problem.ops.tolist():
            so_far += written[v]
            behind = dependencies.before[v]
            extra_readers = max(0, len(dependencies.after[v]) - 1)
            fan_out[v] = min(len(problem.ops), extra_readers + sum(fan_out[u] for u in behind))
            total[v] = min(so_far, written[v] + sum(total[u] for u in behind))
        return post_order(problem, dependencies, lambda v: (-fan_out[v], -total[v], v))


@register
@dataclass(frozen=True)
class PostOrder(OneOrder):
    """Each op right after its operands, operands in the order in which it reads them.

    XLA's ``PostOrderMemoryScheduler``; from the ops that nobody reads, by index.
    """

    name: ClassVar[str] = "post-order"
    summary: ClassVar[str] = "each op after its operands, in the order in which it reads them (XLA)"

    def order(self, problem: SchedulingProblem) -> Int32:
        """Plain post-order."""
        return post_order(problem, Dependencies.of(problem.graph))


def post_order(
    problem: SchedulingProblem, dependencies: Dependencies, key: Callable[[int], Any] | None = None
) -> Int32:
    """Runs each op after its operands, starting from the ops that nobody reads.

    Args:
        problem: The problem.
        dependencies: Those of its graph.
        key: Operands, and ops that nobody reads, are visited by ascending key; in the order of inputs and of the
            program where absent.
    """
    visited = bytearray(problem.graph.num_ops)
    order: list[int] = []

    def sorted_by_key(ops: Sequence[int]) -> Sequence[int]:
        return ops if key is None else sorted(ops, key=key)

    sinks = [v for v in problem.ops.tolist() if not dependencies.after[v]]
    for sink in sorted_by_key(sinks):
        visited[sink] = 1
        stack = [(sink, iter(sorted_by_key(dependencies.before[sink])))]
        while stack:
            v, operands = stack[-1]
            for u in operands:
                if not visited[u]:
                    visited[u] = 1
                    stack.append((u, iter(sorted_by_key(dependencies.before[u]))))
                    break
            else:
                stack.pop()
                order.append(v)
    return np.array(order, np.int32)
