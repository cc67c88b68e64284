"""Longest paths through a graph of ops."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..graphs import Graph


def longest_paths(
    graph: Graph, cost_ns: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """Longest path before each op and from its start to the end, and over all, with free transfers.

    Args:
        graph: The graph.
        cost_ns: Time of each op, ``[ops] int64``; ones count ops.

    Returns:
        ``depth [ops] int64``, ``rank [ops] int64`` (the op itself included), the critical path; ns.
    """
    cost = cost_ns.tolist()
    producer, consumer, _ = (a.tolist() for a in graph.edges)
    depth, below = [0] * graph.num_ops, [0] * graph.num_ops
    for u, v in zip(producer, consumer, strict=True):  # ascending by consumer: depth[u] is final
        depth[v] = max(depth[v], depth[u] + cost[u])
    descending = np.argsort(-graph.edges[0], kind="stable").tolist()
    for e in descending:  # descending by producer: below[consumer] is final
        u, v = producer[e], consumer[e]
        below[u] = max(below[u], below[v] + cost[v])
    rank = np.array(below, np.int64) + cost_ns
    return np.array(depth, np.int64), rank, int(rank.max())
