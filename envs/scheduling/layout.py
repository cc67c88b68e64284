"""A graph as an order of its ops meets it: what never changes, laid out for the core."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..._core import PartialOrder, SchedulingLayout
from ...graphs import Graph
from ...problems import SchedulingProblem

Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]

#: Columns of ``PartialOrder.figures``: what a ready op is at any time, in whole numbers. SINCE is the step at which
#: it became ready.
NET, FREED, NEEDED, LAST_USES, UNLOCKS, SINCE = range(6)

#: What a node is, in ``PartialOrder.status``.
WAITING, READY, DONE = range(3)


@dataclass(frozen=True)
class Layout:
    """Ops to order, as nodes, and the tensors between them.

    A node is a position in ``SchedulingProblem.ops``. A *held* tensor takes memory from when its op runs until
    the last of its readers has run; the others are resident, outputs of the graph, unread, or empty.

    Attributes:
        op: The graph's index of each node, ``[nodes] int32``.
        num_parents: Number of nodes that each node reads from, ``[nodes] int64``.
        num_children: Number of nodes that read from it, ``[nodes] int64``.
        num_reads: Number of held tensors that it reads, ``[nodes] int64``.
        allocated_bytes: Bytes of its outputs, 0 for an update, ``[nodes] int64``.
        core: All of that as the core steps over it.
    """

    op: Int32
    num_parents: Int64
    num_children: Int64
    num_reads: Int64
    allocated_bytes: Int64
    core: SchedulingLayout

    @property
    def num_nodes(self) -> int:
        """Number of ops to order."""
        return len(self.op)

    def start(self) -> PartialOrder:
        """The empty beginning of every order."""
        return PartialOrder(self.core)


def build_layout(problem: SchedulingProblem) -> Layout:
    """Lays out the ops of a problem."""
    graph, op = problem.graph, problem.ops
    nodes = len(op)
    parent, child, _ = reads_between(graph, op)
    edge = np.unique(parent * nodes + child)
    parent, child = edge // nodes, edge % nodes
    passing = passing_tensors(graph)
    held, tensor_of_read, reader_of_read = _held_tensors(graph, passing, op)
    allocated = bytes_by_producer(graph, passing)[op]
    unread = passing & (np.diff(graph.consumer_ptr) == 0) & ~graph.tensor_is_output
    by_reader = np.argsort(reader_of_read, kind="stable")
    num_children = np.bincount(parent, minlength=nodes)
    num_reads = np.bincount(reader_of_read, minlength=nodes)
    return Layout(
        op=op,
        num_parents=np.bincount(child, minlength=nodes),
        num_children=num_children,
        num_reads=num_reads,
        allocated_bytes=allocated,
        core=SchedulingLayout(
            child_ptr=_row_ptr(num_children),
            child=child.astype(np.int32),
            read_ptr=_row_ptr(num_reads),
            read=tensor_of_read[by_reader].astype(np.int32),
            held_bytes=graph.tensor_bytes[held],
            allocated_bytes=allocated,
            needed_bytes=allocated + graph.op_workspace_bytes[op],
            unread_bytes=bytes_by_producer(graph, unread)[op],
            takeover_bytes=_takeover_bytes(graph, op),
        ),
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


def _takeover_bytes(graph: Graph, op: Int32) -> Int64:
    """Size of the tensors that a node may write its only output over, -1: none, ``[nodes] int64``."""
    able = graph.op_elementwise & (np.diff(graph.output_ptr) == 1) & (graph.op_update_of < 0) & graph.in_place
    size = np.full(graph.num_ops, -1, np.int64)
    size[able] = graph.tensor_bytes[graph.output_ptr[:-1][able]]
    chosen: Int64 = size[op]
    return chosen


def _row_ptr(lengths: Int64) -> Int32:
    """Where the row of each node begins, and where the last one ends, ``[nodes + 1] int32``."""
    return np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
