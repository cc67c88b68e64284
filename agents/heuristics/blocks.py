"""The layers of a graph, or blocks that stand in for them where the graph names none."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...graphs import DIRECTIONS, Graph
from ...problems import PlacementProblem
from ...problems.grouping import by_layer, colocation_units, number_by_first_op, of_units

Int32 = NDArray[np.int32]

_FORWARD = DIRECTIONS.index("forward")
#: Chunks per device where nothing else divides a graph.
_CHUNKS_PER_DEVICE = 16


@dataclass(frozen=True)
class Blocks:
    """Blocks of ops, numbered by first op.

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
    if len(graph.layers) > 1:
        block = by_layer(graph)
        first = np.unique(block, return_index=True)[1]
        layer = graph.op_layer[first]
        for b in np.flatnonzero(layer < 0):  # the first op may be of no layer: ask the others
            known = graph.op_layer[(block == b) & (graph.op_layer >= 0)]
            layer[b] = known[0] if len(known) else -1
        return Blocks(block, tuple(graph.layers[i] if i >= 0 else "" for i in layer), "layers")
    devices = len(problem.cluster)
    stretch = _stretches(graph)
    origin = "stretches between single tensors"
    if int(stretch.max(initial=0)) + 1 < 2 * devices:
        stretch = _chunks(problem, _CHUNKS_PER_DEVICE * devices)
        origin = "chunks of equal time in topological order"
    unit = colocation_units(graph)
    block = number_by_first_op(of_units(_with_backward(graph, stretch), unit)[unit])
    return Blocks(block, ("",) * (int(block.max()) + 1), origin)


def _stretches(graph: Graph) -> Int32:
    """Cuts the order of forward ops wherever a single tensor lies between what is before and after, ``[ops]``.

    These are the block boundaries of a network whose blocks pass one tensor on (ResNet, Inception, DenseNet).
    """
    ops = graph.num_ops
    forward = (graph.op_direction == _FORWARD) & ~graph.is_variable
    producer, consumer, tensor = graph.edges
    inner = forward[producer] & forward[consumer]
    last_use = np.full(graph.num_tensors, -1, np.int64)
    np.maximum.at(last_use, tensor[inner], consumer[inner])
    used = np.flatnonzero(last_use >= 0)
    # Boundary i lies before op i: a tensor crosses the boundaries producer + 1 .. last use.
    crossing = np.zeros(ops + 2, np.int64)
    np.add.at(crossing, graph.tensor_producer[used] + 1, 1)
    np.add.at(crossing, last_use[used] + 1, -1)
    single = np.cumsum(crossing)[:ops] == 1
    return np.cumsum(single & forward).astype(np.int32)


def _chunks(problem: PlacementProblem, count: int) -> Int32:
    """Cuts the topological order into ``count`` chunks of about equal time, ``[ops]``."""
    time = np.where(problem.allowed, problem.cost_ns, np.iinfo(np.int64).max).min(axis=1).astype(np.float64)
    time[problem.graph.op_direction != _FORWARD] = 0
    total = time.sum()
    if total <= 0:
        time[:] = 1
        total = time.sum()
    middle = np.cumsum(time) - time / 2
    chunk: Int32 = np.minimum(middle * count // total, count - 1).astype(np.int32)
    return chunk


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
