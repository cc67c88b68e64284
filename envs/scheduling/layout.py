"""A graph as an order of its ops meets it: what never changes, laid out for speed.

Plain Python lists, tuples and arrays are used, as a step touches a handful of numbers; numpy would cost more
than the arithmetic.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...graphs import Graph
from ...problems import SchedulingProblem

Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]

#: Figures that an op has at any time, in rows of whole numbers; the observation shows them, scaled. Some stand
#: there twice, because what is shown of them differs. WAITED is minus the step at which the op became ready, to
#: which the step at which it is shown is added.
NET, NET_AGAIN, FREED, NEEDED, NEEDED_AGAIN, LAST_USES, UNLOCKS, WAITED = range(8)
NUM_FIGURES = 8


@dataclass(frozen=True)
class Layout:
    """Ops to order, as nodes, and the tensors between them.

    A node is a position in ``SchedulingProblem.ops``. A *held* tensor takes memory from when its op runs until
    the last of its readers has run; the others are resident, outputs of the graph, unread, or empty.

    Attributes:
        op: The graph's index of each node, ``[nodes] int32``.
        children: For each node, the nodes that read from it, ascending, each once.
        num_parents: For each node, the number of nodes that it reads from, ``[nodes]``.
        parents_xor: For each node, the exclusive or of those nodes, ``[nodes]``: where all but one have run, the
            exclusive or of the missing ones is the one.
        reads: For each node, the held tensors that it reads.
        held_bytes: Size of each held tensor, ``[held]``.
        num_readers: Number of nodes that read each held tensor, ``[held]``.
        readers_xor: Exclusive or of those nodes, ``[held]``.
        may_take_over: ``tensor * nodes + node`` for each pair of which the node may write its only output over
            the held tensor, once it is the last that reads it.
        allocated_bytes: Bytes of the outputs of each node, 0 for an update, ``[nodes]``.
        needed_bytes: Those and the workspace, ``[nodes]``.
        figures: Figures of each node before anything has run, ``[nodes * NUM_FIGURES] int64``.
    """

    op: Int32
    children: list[tuple[int, ...]]
    num_parents: array[int]
    parents_xor: array[int]
    reads: list[tuple[int, ...]]
    held_bytes: list[int]
    num_readers: array[int]
    readers_xor: array[int]
    may_take_over: frozenset[int]
    allocated_bytes: list[int]
    needed_bytes: list[int]
    figures: array[int]

    @property
    def num_nodes(self) -> int:
        """Number of ops to order."""
        return len(self.op)


def build_layout(problem: SchedulingProblem) -> Layout:
    """Lays out the ops of a problem."""
    graph, op = problem.graph, problem.ops
    nodes = len(op)
    parent, child, _ = reads_between(graph, op)
    edge = np.unique(parent * nodes + child)
    parent, child = edge // nodes, edge % nodes
    passing = passing_tensors(graph)
    held, tensor_of_edge, reader_of_edge = _held_tensors(graph, passing, op)
    held_bytes = graph.tensor_bytes[held]
    allocated = bytes_by_producer(graph, passing)[op]
    needed = allocated + graph.op_workspace_bytes[op]
    may_take_over = _takeovers(graph, op, held, tensor_of_edge, reader_of_edge)

    figures = np.zeros((nodes, NUM_FIGURES), np.int64)
    unread = passing & (np.diff(graph.consumer_ptr) == 0) & ~graph.tensor_is_output
    figures[:, FREED] = bytes_by_producer(graph, unread)[op]
    figures[:, NEEDED] = needed
    # Who reads a tensor alone frees it, whatever runs before.
    num_readers = np.bincount(tensor_of_edge, minlength=len(held))
    alone = num_readers[tensor_of_edge] == 1
    np.add.at(figures[:, FREED], reader_of_edge[alone], held_bytes[tensor_of_edge[alone]])
    np.add.at(figures[:, LAST_USES], reader_of_edge[alone], 1)
    figures[:, NET] = figures[:, FREED] - allocated
    key = tensor_of_edge[alone] * nodes + reader_of_edge[alone]
    in_place = np.unique(reader_of_edge[alone][np.isin(key, may_take_over)])
    figures[in_place, NEEDED] -= allocated[in_place]
    num_parents = np.bincount(child, minlength=nodes)
    only = num_parents[child] == 1
    figures[:, UNLOCKS] = np.bincount(parent[only], minlength=nodes)
    figures[:, NET_AGAIN], figures[:, NEEDED_AGAIN] = figures[:, NET], figures[:, NEEDED]

    by_reader = np.argsort(reader_of_edge, kind="stable")
    return Layout(
        op=op,
        children=_rows(child, parent, nodes),
        num_parents=array("i", num_parents.tolist()),
        parents_xor=_exclusive_or(parent, child, nodes),
        reads=_rows(tensor_of_edge[by_reader], reader_of_edge[by_reader], nodes),
        held_bytes=held_bytes.tolist(),
        num_readers=array("i", num_readers.tolist()),
        readers_xor=_exclusive_or(reader_of_edge, tensor_of_edge, len(held)),
        may_take_over=frozenset(may_take_over.tolist()),
        allocated_bytes=allocated.tolist(),
        needed_bytes=needed.tolist(),
        figures=array("q", figures.ravel().tolist()),
    )


def reads_between(graph: Graph, op: Int32) -> tuple[Int64, Int64, Int64]:
    """``(parent, child, tensor)`` of each read by a node of a tensor that another node writes, ``[reads]``."""
    producer, consumer, tensor = graph.edges
    runs = ~graph.is_variable[producer]
    node_of_op = _nodes_of_ops(graph, op)
    return node_of_op[producer[runs]], node_of_op[consumer[runs]], tensor[runs].astype(np.int64)


def _nodes_of_ops(graph: Graph, op: Int32) -> Int64:
    """Node of each op, ``[ops] int64``; -1: a variable."""
    node = np.full(graph.num_ops, -1, np.int64)
    node[op] = np.arange(len(op))
    return node


def passing_tensors(graph: Graph) -> NDArray[np.bool_]:
    """Whether a tensor takes memory from when its op runs: no source, variable or update, ``[tensors] bool``."""
    owner = graph.tensor_producer
    passing: NDArray[np.bool_] = (owner >= 0) & ~graph.is_variable[owner] & (graph.op_update_of[owner] < 0)
    return passing


def bytes_by_producer(graph: Graph, chosen: NDArray[np.bool_]) -> Int64:
    """Bytes of the chosen tensors (none of them a source) that each op writes, ``[ops] int64``."""
    total = np.zeros(graph.num_ops, np.int64)
    np.add.at(total, graph.tensor_producer[chosen], graph.tensor_bytes[chosen])
    return total


def _held_tensors(graph: Graph, passing: NDArray[np.bool_], op: Int32) -> tuple[Int64, Int64, Int64]:
    """Indices of the held tensors, and ``(held, reader)`` of every read of one, by held, then reader."""
    readers = np.diff(graph.consumer_ptr)
    is_held = passing & ~graph.tensor_is_output & (graph.tensor_bytes > 0) & (readers > 0)
    read_tensor = np.repeat(np.arange(graph.num_tensors), readers)
    chosen = is_held[read_tensor]
    held_of_tensor = np.cumsum(is_held) - 1
    return (
        np.flatnonzero(is_held),
        held_of_tensor[read_tensor[chosen]],
        _nodes_of_ops(graph, op)[graph.consumer_op[chosen]],
    )


def _takeovers(graph: Graph, op: Int32, held: Int64, tensor_of_edge: Int64, reader_of_edge: Int64) -> Int64:
    """``held * nodes + node`` of each pair where the node may write over the tensor, ``[pairs] int64``."""
    if not graph.in_place:
        return np.zeros(0, np.int64)
    reader = op[reader_of_edge]
    able = graph.op_elementwise & (np.diff(graph.output_ptr) == 1) & (graph.op_update_of < 0)
    output_bytes = graph.tensor_bytes[np.minimum(graph.output_ptr[reader], graph.num_tensors - 1)]
    fits = able[reader] & (output_bytes == graph.tensor_bytes[held[tensor_of_edge]])
    pairs: Int64 = tensor_of_edge[fits] * len(op) + reader_of_edge[fits]
    return pairs


def _rows(items: Int64, owner: Int64, rows: int) -> list[tuple[int, ...]]:
    """Items, sorted by owner, as one tuple per owner."""
    until = np.searchsorted(owner, np.arange(rows + 1)).tolist()
    values = items.tolist()
    return [tuple(values[until[i] : until[i + 1]]) for i in range(rows)]


def _exclusive_or(items: Int64, owner: Int64, rows: int) -> array[int]:
    """Exclusive or of the items of each owner, ``[rows]``."""
    result = np.zeros(rows, np.int64)
    np.bitwise_xor.at(result, owner, items)
    return array("i", result.tolist())
