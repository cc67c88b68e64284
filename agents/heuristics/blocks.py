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

    A variable goes with its first consumer.
    """
    result = block.tolist()
    direction = graph.op_direction.tolist()
    variable = graph.is_variable.tolist()
    producer, consumer, _ = (a.tolist() for a in graph.edges)
    latest: dict[int, int] = {}
    inherited: dict[int, int] = {}
    for u, v in zip(producer, consumer, strict=True):  # ascending by consumer: producers are final
        if direction[v] == _FORWARD:
            continue
        if direction[u] == _FORWARD and not variable[u]:
            latest[v] = max(latest.get(v, -1), result[u])
        elif not variable[u]:
            inherited.setdefault(v, result[u])
        result[v] = latest.get(v, inherited.get(v, result[v]))
    for u, v in zip(reversed(producer), reversed(consumer), strict=True):
        if variable[u]:
            result[u] = result[v]
    return np.array(result, np.int32)
