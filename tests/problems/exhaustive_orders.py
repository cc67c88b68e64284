"""All legal orders of a small graph, and the memory of each: the oracle for schedulers and bounds."""

from __future__ import annotations

from collections.abc import Iterator

from opgym.graphs import VARIABLE, Graph
from opgym.problems.plain_order import plain_order_memory


def all_orders(graph: Graph) -> Iterator[list[int]]:
    """Every order of the ops that are no variables."""
    ops = [op for op in range(graph.num_ops) if graph.kind(op) != VARIABLE]
    producers = {op: {int(u) for u in graph.tensor_producer[graph.inputs(op)]} & set(ops) for op in ops}

    def extend(order: list[int], left: set[int]) -> Iterator[list[int]]:
        if not left:
            yield list(order)
        for op in sorted(left):
            if not producers[op] & left:
                order.append(op)
                yield from extend(order, left - {op})
                order.pop()

    return extend([], set(ops))


def least_peak(graph: Graph) -> int:
    """The smallest peak over all orders."""
    return min(max([0, *plain_order_memory(graph, order)]) for order in all_orders(graph))
