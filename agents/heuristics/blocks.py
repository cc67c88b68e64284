"""The layers of a graph, or blocks that stand in for them where the graph names none."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ... import _core
from ...graphs import DIRECTIONS, Graph
from ...problems import PlacementProblem
from ...problems.grouping import by_layer, colocation_units, number_by_first_op
from .list_planning import nanoseconds_per_byte

Int32 = NDArray[np.int32]

_FORWARD = DIRECTIONS.index("forward")
#: Chunks per device where nothing else divides a graph.
_CHUNKS_PER_DEVICE = 8


@dataclass(frozen=True)
class Blocks:
    """Blocks of ops, numbered by their first op in :func:`forward_first_order`.

    Attributes:
        block: Block of each op, ``[ops] int32``; colocation groups are whole.
        names: Name of each block, ``[blocks]``; empty where it has none.
        origin: What the blocks are, in words.
    """

    block: Int32
    names: tuple[str, ...]
    origin: str


def find_blocks(problem: PlacementProblem) -> Blocks:
    """Layers if the graph names them, else stretches between single tensors, else chunks of equal time.

    Backward and update ops without a layer belong to the block whose forward tensors they read.
    """
    graph = problem.graph
    order = forward_first_order(problem)
    if len(graph.layers) > 1:
        label = by_layer(graph)
        name = [""] * (int(label.max()) + 1)
        for v in np.flatnonzero(graph.op_layer >= 0)[::-1]:
            name[label[v]] = graph.layers[graph.op_layer[v]]
        origin = "layers"
    else:
        label, origin = _stretches(graph, order), "stretches between single tensors"
        devices = len(problem.cluster)
        if len(set(label.tolist())) < 2 * devices:
            label = _chunks(problem, order, _CHUNKS_PER_DEVICE * devices)
            origin = "chunks of equal time in topological order"
        label = _by_unit(graph, _with_backward(graph, label), order)
        name = [""] * (int(label.max()) + 1)
    block = np.empty_like(label)
    block[order] = number_by_first_op(label[order])
    names = [""] * (int(block.max()) + 1)
    for old, new in zip(label.tolist(), block.tolist(), strict=True):
        names[new] = name[old]
    return Blocks(block, tuple(names), origin)


def _by_unit(graph: Graph, block: Int32, order: NDArray[np.int64]) -> Int32:
    """Gives all ops of a colocation group the block of the one that comes first in the order, ``[ops]``."""
    unit = colocation_units(graph)
    first = np.zeros(int(unit.max()) + 1, np.int64)
    first[unit[order[::-1]]] = order[::-1]
    whole: Int32 = block[first][unit]
    return whole


def forward_first_order(problem: PlacementProblem) -> NDArray[np.int64]:
    """Forward ops in a topological order in which each comes as late as possible, then the others, ``[ops] int64``.

    By falling length of the longest path to the end, ties by index. A file may list all ops that only read weights
    first; here they stand before the ops that need them. Backward ops follow, as they belong to forward ones
    wherever a graph draws its edges.
    """
    fastest = np.where(problem.allowed, problem.cost_ns, np.iinfo(np.int64).max).min(axis=1)
    nothing = np.zeros(problem.graph.num_tensors, np.int64)
    rank = _core.static_upward_rank(problem.simulator.core, fastest, nothing)
    return np.lexsort((-rank, problem.graph.op_direction != _FORWARD))


def _crossing(graph: Graph, order: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """How many forward tensors, and how many bytes of them, pass each boundary of an order, each ``[ops]``.

    Boundary i lies before the op at position i.
    """
    ops = graph.num_ops
    position = np.empty(ops, np.int64)
    position[order] = np.arange(ops)
    forward = (graph.op_direction == _FORWARD) & ~graph.is_variable
    producer, consumer, tensor = graph.edges
    inner = forward[producer] & forward[consumer]
    last_use = np.full(graph.num_tensors, -1, np.int64)
    np.maximum.at(last_use, tensor[inner], position[consumer[inner]])
    used = np.flatnonzero(last_use >= 0)
    first = position[graph.tensor_producer[used]] + 1  # a tensor passes the boundaries first .. last use
    counts = np.bincount(first, minlength=ops + 1) - np.bincount(last_use[used] + 1, minlength=ops + 1)
    size = graph.tensor_bytes[used].astype(np.float64)
    sizes = np.bincount(first, size, ops + 1) - np.bincount(last_use[used] + 1, size, ops + 1)
    return np.cumsum(counts)[:ops], np.cumsum(sizes)[:ops]


def _stretches(graph: Graph, order: NDArray[np.int64]) -> Int32:
    """Cuts the order of forward ops wherever a single tensor lies between what is before and after, ``[ops]``.

    These are the block boundaries of a network whose blocks pass one tensor on (ResNet, Inception, DenseNet).
    """
    forward = (graph.op_direction == _FORWARD) & ~graph.is_variable
    single = _crossing(graph, order)[0] == 1
    return _labelled(order, single & forward[order])


def _chunks(problem: PlacementProblem, order: NDArray[np.int64], count: int) -> Int32:
    """Cuts the order into ``count`` chunks of about equal time, where few bytes pass, ``[ops]``.

    Each cut may be off by half a chunk. There is none where sending what passes takes longer than all work on all
    devices together: nobody would put the two sides on different devices.
    """
    graph = problem.graph
    time = np.where(problem.allowed, problem.cost_ns, np.iinfo(np.int64).max).min(axis=1).astype(np.float64)
    fair_share_ns = time.sum() / len(problem.cluster)
    time[graph.op_direction != _FORWARD] = 0
    if time.sum() <= 0:
        time[:] = 1
    before = np.concatenate([[0.0], np.cumsum(time[order])[:-1]])
    passing = _crossing(graph, order)[1]
    affordable = passing * nanoseconds_per_byte(problem.cluster) <= max(fair_share_ns, 1.0)
    total = time.sum()
    cut = np.zeros(graph.num_ops, dtype=bool)
    for i in range(1, count):
        low, high = np.searchsorted(before, [total * (i - 0.5) / count, total * (i + 0.5) / count])
        near = low + np.flatnonzero(affordable[low:high])
        if len(near):
            off = np.abs(before[near] - total * i / count)
            cut[near[np.lexsort((off, passing[near]))[0]]] = True
    return _labelled(order, cut)


def _labelled(order: NDArray[np.int64], cut: NDArray[np.bool_]) -> Int32:
    """Numbers the pieces of an order that is cut before some positions, ``[ops]``."""
    label = np.empty(len(order), np.int32)
    label[order] = np.cumsum(cut)
    return label


def _with_backward(graph: Graph, block: Int32) -> Int32:
    """Gives ops that are not forward the block of the latest forward tensor they read, else of their producer.

    A variable, like any tensor that no op computes, belongs to the block of its first forward reader.
    """
    forward = (graph.op_direction == _FORWARD) & ~graph.is_variable
    result = block.copy()
    first_reader = np.full(graph.num_tensors, -1, np.int64)
    reader = np.repeat(np.arange(graph.num_ops), np.diff(graph.input_ptr))
    by_forward = np.flatnonzero(forward[reader])[::-1]
    first_reader[graph.input_tensor[by_forward]] = reader[by_forward]
    computed = graph.tensor_producer >= 0
    computed[computed] = ~graph.is_variable[graph.tensor_producer[computed]]
    origin = np.where(computed, graph.tensor_producer, first_reader)
    known = (origin >= 0) & forward[origin]
    tensor_block = np.where(known, block[origin], -1)

    for v in np.flatnonzero(~forward).tolist():
        tensors = graph.outputs(v) if graph.is_variable[v] else graph.inputs(v)
        latest = max((int(tensor_block[t]) for t in tensors), default=-1)
        if latest < 0:
            producers = [u for t in tensors if (u := int(graph.tensor_producer[t])) >= 0 and u != v]
            latest = int(result[producers[0]]) if producers else int(result[v])
        result[v] = latest
    return result
