"""The linear program of m-SCT: which child of an op should follow it on its device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...graphs import Graph

Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]

#: A child whose relaxed "pays the transfer" variable is below this is taken for the favourite (Jeon et al. 2020).
_ROUND_AT = 0.5
#: LP solutions are exact to about this much.
_TOLERANCE = 1e-6


@dataclass(frozen=True)
class OpEdges:
    """Edges between ops that run, each pair once.

    Attributes:
        producer: ``[edges] int32``.
        consumer: ``[edges] int32``.
        transfer_ns: Time of sending the largest tensor between the two, ``[edges] int64``.
    """

    producer: Int32
    consumer: Int32
    transfer_ns: Int64


def op_edges(graph: Graph, transfer_ns: Int64) -> OpEdges:
    """Edges between ops that run; variables are left out, as their tensors are there from the start."""
    producer, consumer, tensor = graph.edges
    runs = ~graph.is_variable[producer]
    pair = producer[runs].astype(np.int64) * graph.num_ops + consumer[runs]
    unique, inverse = np.unique(pair, return_inverse=True)
    longest = np.zeros(len(unique), np.int64)
    np.maximum.at(longest, inverse.ravel(), transfer_ns[tensor[runs]])
    return OpEdges(
        (unique // graph.num_ops).astype(np.int32), (unique % graph.num_ops).astype(np.int32), longest
    )


def only_children(graph: Graph, edges: OpEdges) -> NDArray[np.bool_]:
    """Whether an edge joins an only child with its only parent, ``[edges] bool``.

    Making that child the favourite constrains nothing else, so some optimum of the program does, and the two ops
    count as one in it.
    """
    children = np.bincount(edges.producer, minlength=graph.num_ops)
    parents = np.bincount(edges.consumer, minlength=graph.num_ops)
    alone: NDArray[np.bool_] = (children[edges.producer] == 1) & (parents[edges.consumer] == 1)
    return alone


def favourite_children(graph: Graph, cost_ns: Int64, transfer_ns: Int64) -> Int32:
    """The favourite child of each op, ``[ops] int32``; -1: none.

    Minimises the makespan ``w`` on unlimited devices over starts ``s`` and ``x`` in [0, 1], where ``x_ij = 0`` makes
    j the favourite child of i: ``s_i + p_i + c_ij x_ij <= s_j``, ``s_i + p_i <= w``, and at most one favourite child
    and one favourite parent each: ``sum_j x_ij >= children(i) - 1``, ``sum_i x_ij >= parents(j) - 1`` (Hanen and
    Munier 1995; Jeon et al. 2020, section 3.3). Solved with HiGHS, rounded at 0.5. Where rounding leaves an op with
    two favourites, the one with the smallest ``x`` stays, then the one with the longest transfer.

    Args:
        graph: The graph.
        cost_ns: One time per op, ``[ops] int64``.
        transfer_ns: One time per tensor, ``[tensors] int64``.
    """
    edges = op_edges(graph, transfer_ns)
    joined = only_children(graph, edges)
    share = np.zeros(len(edges.producer))
    share[~joined] = _solve(graph, cost_ns, edges, joined)
    favourite = np.full(graph.num_ops, -1, np.int32)
    has_parent = np.zeros(graph.num_ops, dtype=bool)
    for e in np.lexsort((edges.consumer, edges.producer, -edges.transfer_ns, np.round(share, 6))).tolist():
        i, j = edges.producer[e], edges.consumer[e]
        if share[e] < _ROUND_AT - _TOLERANCE and favourite[i] < 0 and not has_parent[j]:
            favourite[i] = j
            has_parent[j] = True
    return favourite


def _solve(graph: Graph, cost_ns: Int64, edges: OpEdges, joined: NDArray[np.bool_]) -> NDArray[np.float64]:
    """The relaxed ``x`` of every edge that is not ``joined``; ops that are joined count as one node."""
    from scipy.optimize import linprog
    from scipy.sparse import coo_array

    node = _chains(graph, edges, joined)
    nodes = int(node.max()) + 1
    # Integer nanoseconds up to 1e9 and a tolerance of 1e-7 do not go together: measure in the longest op.
    unit_ns = float(max(cost_ns.max(), edges.transfer_ns.max(initial=0), 1))
    time = np.bincount(node, weights=cost_ns / unit_ns, minlength=nodes)
    i, j = node[edges.producer[~joined]], node[edges.consumer[~joined]]
    transfer = edges.transfer_ns[~joined] / unit_ns
    count = len(i)
    if count == 0:
        return np.zeros(0)
    e = np.arange(count)
    # Columns: x of the edges, then s of the nodes, then w.
    start, makespan = count, count + nodes
    children, parents = np.bincount(i, minlength=nodes), np.bincount(j, minlength=nodes)
    many_children, many_parents = np.flatnonzero(children > 1), np.flatnonzero(parents > 1)
    row_of_parent = np.full(nodes, -1)
    row_of_parent[many_children] = count + np.arange(len(many_children))
    row_of_child = np.full(nodes, -1)
    row_of_child[many_parents] = count + len(many_children) + np.arange(len(many_parents))
    sinks = np.flatnonzero(children == 0)
    row_of_sink = count + len(many_children) + len(many_parents) + np.arange(len(sinks))
    of_parent, of_child = e[row_of_parent[i] >= 0], e[row_of_child[j] >= 0]
    entries: list[tuple[NDArray[Any], NDArray[Any] | int, NDArray[np.float64] | float]] = [
        (e, e, transfer),
        (e, start + i, 1.0),
        (e, start + j, -1.0),
        (row_of_parent[i[of_parent]], of_parent, -1.0),
        (row_of_child[j[of_child]], of_child, -1.0),
        (row_of_sink, start + sinks, 1.0),
        (row_of_sink, makespan, -1.0),
    ]
    rows = np.concatenate([row for row, _, _ in entries])
    columns = np.concatenate([np.broadcast_to(column, row.shape) for row, column, _ in entries])
    values = np.concatenate([np.broadcast_to(value, row.shape) for row, _, value in entries])
    bound = np.concatenate(
        [-time[i], 1.0 - children[many_children], 1.0 - parents[many_parents], -time[sinks]]
    )
    matrix = coo_array((values, (rows, columns)), shape=(len(bound), makespan + 1)).tocsr()
    objective = np.zeros(makespan + 1)
    objective[makespan] = 1.0
    limits = np.zeros((makespan + 1, 2))
    limits[:count, 1] = 1.0
    limits[count:, 1] = np.inf
    solution = linprog(objective, A_ub=matrix, b_ub=bound, bounds=limits, method="highs")
    if solution.x is None:
        raise RuntimeError(f"the favourite-child program has no solution: {solution.message}")
    relaxed: NDArray[np.float64] = solution.x[:count]
    return relaxed


def _chains(graph: Graph, edges: OpEdges, joined: NDArray[np.bool_]) -> Int32:
    """The node of each op when joined edges are contracted, ``[ops] int32``, numbered in topological order."""
    head = np.arange(graph.num_ops)
    for u, v in zip(edges.producer[joined].tolist(), edges.consumer[joined].tolist(), strict=True):
        head[v] = head[u]  # ascending by producer: head[u] is final
    node: Int32 = np.unique(head, return_inverse=True)[1].ravel().astype(np.int32)
    return node
