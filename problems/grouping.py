"""Groups of ops that are placed together: colocation units, layers, METIS parts."""

from __future__ import annotations

import re
from typing import Any, TypeVar

import numpy as np
import pymetis
from numpy.typing import ArrayLike, NDArray

from ..errors import InvalidProblemError, unknown_id
from ..graphs import Graph
from .placement import PlacementProblem

Int32 = NDArray[np.int32]
_Scalar = TypeVar("_Scalar", bound=np.generic)

_METIS = re.compile(r"metis:(\d+)")
#: METIS adds weights up in machine integers; scaled to these totals nothing can overflow.
_TOTAL_VERTEX_WEIGHT = 10_000_000
_TOTAL_EDGE_WEIGHT = 1_000_000_000
#: Up to this many parts recursive bisection cuts less than k-way refinement (the METIS manual's advice).
_RECURSIVE_PARTS = 8


def number_by_first_op(labels: ArrayLike) -> Int32:
    """Renumbers arbitrary labels ``[ops]`` from 0 in order of first op, ``[ops] int32``."""
    _, first, inverse = np.unique(np.asarray(labels), return_index=True, return_inverse=True)
    position = np.empty(len(first), np.int32)
    position[np.argsort(first)] = np.arange(len(first), dtype=np.int32)
    return position[inverse.ravel()]


def colocation_units(graph: Graph) -> Int32:
    """Unit of each op: one per colocation group, one per other op; numbered by first op, ``[ops] int32``."""
    alone = graph.num_groups + np.arange(graph.num_ops)
    return number_by_first_op(np.where(graph.op_group >= 0, graph.op_group, alone))


def assign(problem: PlacementProblem, spec: str | ArrayLike) -> Int32:
    """Puts every op into a group; colocation groups are never split.

    Args:
        problem: Whose graph is grouped (METIS also reads its costs).
        spec: ``"op"`` (colocation units), ``"layer"`` (an op of no known layer joins the layer of its first
            producer, else of its first consumer, else stays alone), ``"metis:K"`` (at most K parts), or one
            label per op, ``[ops] int``.

    Returns:
        Group of each op, numbered from 0 in order of first op, ``[ops] int32``.

    Raises:
        InvalidProblemError: Layers are asked of a graph that names none; labels of a wrong length or kind, or
            that split a colocation group.
        UnknownIdError: Another text.
    """
    graph = problem.graph
    if not isinstance(spec, str):
        return _given(graph, np.asarray(spec))
    if spec == "op":
        return colocation_units(graph)
    if spec == "layer":
        if not graph.layers:
            raise InvalidProblemError(f"graph {graph.name!r} names no layers; group by 'op' or 'metis:K'")
        return by_layer(graph)
    match = _METIS.fullmatch(spec)
    if match is None:
        raise unknown_id("grouping", spec, ["op", "layer", "metis:64"])
    if int(match[1]) < 1:
        raise InvalidProblemError(f"grouping {spec!r} asks for {match[1]} parts; expected at least 1")
    return metis_parts(problem, int(match[1]))


def _given(graph: Graph, labels: NDArray[np.generic]) -> Int32:
    """Checks and renumbers labels given by the user."""
    if labels.shape != (graph.num_ops,) or not np.issubdtype(labels.dtype, np.integer):
        raise InvalidProblemError(
            f"groups have shape {labels.shape} and dtype {labels.dtype}; "
            f"expected integers of shape ({graph.num_ops},)"
        )
    groups = number_by_first_op(labels)
    unit = colocation_units(graph)
    split = np.flatnonzero(groups != of_units(groups, unit)[unit])
    if len(split):
        op = int(split[0])
        raise InvalidProblemError(
            f"groups put op {op} apart from its colocation group {graph.op_group[op]}; "
            "ops that must share a device have to share a group"
        )
    return groups


def of_units(values: NDArray[_Scalar], unit: Int32) -> NDArray[_Scalar]:
    """The value of each unit's first op, ``[units]``, from values of ops ``[ops]``."""
    first = np.empty(int(unit.max(initial=-1)) + 1, np.int64)
    first[unit[::-1]] = np.arange(len(unit) - 1, -1, -1)
    return values[first]


def known_layers(graph: Graph) -> Int32:
    """Layer of each op, filled in from neighbours where it is unknown, ``[ops] int32``; -1: nothing tells.

    An op of unknown layer takes that of the first producer it reads from that has one, else of its first
    consumer.
    """
    layer = graph.op_layer.tolist()
    if -1 in layer and graph.layers:
        producer, consumer, _ = (a.tolist() for a in graph.edges)
        for u, v in zip(producer, consumer, strict=True):  # ascending by consumer: parents are final
            if layer[v] < 0:
                layer[v] = layer[u]
        order = np.lexsort((-graph.edges[1], graph.edges[0])).tolist()
        for e in reversed(order):  # producers descending, of each the first consumer first
            if layer[producer[e]] < 0:
                layer[producer[e]] = layer[consumer[e]]
    return np.array(layer, np.int32)


def by_layer(graph: Graph) -> Int32:
    """One group per layer, and one per unit that belongs to none, ``[ops] int32``."""
    unit = colocation_units(graph)
    layer = _unit_layer(graph, unit)
    alone = len(graph.layers) + np.arange(len(layer))
    return number_by_first_op(np.where(layer >= 0, layer, alone)[unit])


def _unit_layer(graph: Graph, unit: Int32) -> Int32:
    """Layer of each unit, that of its first op that has one, ``[units] int32``; -1: unknown."""
    layer = known_layers(graph)
    result = np.full(int(unit.max(initial=-1)) + 1, -1, np.int32)
    known = np.flatnonzero(layer >= 0)[::-1]
    result[unit[known]] = layer[known]
    return result


def metis_parts(
    problem: PlacementProblem,
    k: int,
    *,
    seed: int = 1,
    shares: NDArray[np.float64] | None = None,
    memory_weight: float = 0.0,
) -> Int32:
    """Splits the graph into at most ``k`` balanced parts that cut few bytes (METIS, Karypis and Kumar 1998).

    Colocation groups are contracted. A vertex weighs its time on the fastest device that supports it, an edge
    the bytes that would cross it. pymetis balances one weight only, so memory is mixed into it.

    Args:
        problem: Whose graph is split.
        k: Most parts.
        seed: Of METIS.
        shares: Share of the weight that each part should get, ``[k]``, positive, sums to 1; equal where absent.
            With shares the parts keep METIS's numbers (part i has share i).
        memory_weight: Weight of a vertex's bytes against its time, 0 (time only) to 1 (bytes only).

    Returns:
        Part of each op, ``[ops] int32``; numbered by first op unless ``shares`` are given.
    """
    graph = problem.graph
    unit = colocation_units(graph)
    units = int(unit.max()) + 1
    if k >= units and shares is None:
        return unit
    least = 1.0 / k if shares is None else float(shares.min())
    weight = _capped(_vertex_weights(problem, unit, memory_weight), least)
    pointer, neighbour, edge_weight = _unit_adjacency(graph, unit, units)
    if k == 1:
        part = np.zeros(units, np.int32)
    elif len(neighbour) == 0 or k >= units or (shares is not None and 2 * k > units):
        part = _balance(weight, k, shares)
    else:
        options = pymetis.Options()
        options.seed = seed
        _, found = pymetis.part_graph(
            k,
            pymetis.CSRAdjacency(pointer, neighbour),
            vweights=weight,
            eweights=edge_weight,
            tpwgts=None if shares is None else (shares / shares.sum()).tolist(),
            options=options,
            recursive=k <= _RECURSIVE_PARTS and 2 * k <= units,
        )
        part = np.asarray(found, np.int32)
    return part[unit] if shares is not None else number_by_first_op(part[unit])


def _vertex_weights(problem: PlacementProblem, unit: Int32, memory_weight: float) -> NDArray[np.int64]:
    """Weight of each unit, ``[units] int64``, at least 1 so that ops without cost are spread too."""
    graph = problem.graph
    time = np.where(problem.allowed, problem.cost_ns, np.iinfo(np.int64).max).min(axis=1).astype(np.float64)
    share = (1 - memory_weight) * _normalised(np.bincount(unit, weights=time))
    if memory_weight > 0:
        share += memory_weight * _normalised(np.bincount(unit, weights=written_bytes(graph)))
    return 1 + np.round(share * _TOTAL_VERTEX_WEIGHT).astype(np.int64)


def _capped(weight: NDArray[np.int64], least_share: float) -> NDArray[np.int64]:
    """Weights of which none is above the smallest part's.

    A heavier vertex fills a part whatever it weighs, and without the cap METIS runs out of vertices for the other
    parts and says so on the standard output.
    """
    limit = 0
    while limit != (limit := max(1, int(weight.sum() * least_share))):
        weight = np.minimum(weight, limit)
    return weight


def written_bytes(graph: Graph) -> NDArray[np.float64]:
    """Bytes that each op brings to its device, ``[ops] float``: what it writes, and parameters it reads.

    An update writes nothing new; a tensor without a producer counts for its first reader only.
    """
    total = np.concatenate([[0.0], np.cumsum(graph.tensor_bytes, dtype=np.float64)])
    written: NDArray[np.float64] = total[graph.output_ptr[1:]] - total[graph.output_ptr[:-1]]
    written[graph.op_update_of >= 0] = 0
    source = np.flatnonzero((graph.tensor_producer < 0) & (np.diff(graph.consumer_ptr) > 0))
    np.add.at(written, graph.consumer_op[graph.consumer_ptr[source]], graph.tensor_bytes[source])
    return written


def _normalised(values: NDArray[Any]) -> NDArray[np.float64]:
    total = values.sum()
    return values / total if total > 0 else np.zeros_like(values)


def _unit_adjacency(
    graph: Graph, unit: Int32, units: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Undirected weighted edges between units in CSR form: pointer ``[units + 1]``, neighbours, weights.

    A tensor counts once for each pair of units, however many ops of them touch it: it is sent once.
    """
    producer, consumer, tensor = graph.edges
    a, b = unit[producer].astype(np.int64), unit[consumer].astype(np.int64)
    apart = a != b
    a, b, tensor = a[apart], b[apart], tensor[apart]
    once = np.unique(tensor.astype(np.int64) * units + b, return_index=True)[1]
    low, high = np.minimum(a, b)[once], np.maximum(a, b)[once]
    pair, inverse = np.unique(low * units + high, return_inverse=True)
    size = np.bincount(
        inverse, weights=graph.tensor_bytes[tensor[once]].astype(np.float64), minlength=len(pair)
    )
    scale = min(1.0, _TOTAL_EDGE_WEIGHT / max(size.sum(), 1.0))
    weight = 1 + np.round(size * scale).astype(np.int64)  # a zero-byte tensor still pays the latency
    low, high = pair // units, pair % units
    tail, head = np.concatenate([low, high]), np.concatenate([high, low])
    order = np.argsort(tail, kind="stable")
    pointer = np.concatenate([[0], np.cumsum(np.bincount(tail, minlength=units))])
    return pointer, head[order], np.concatenate([weight, weight])[order]


def _balance(weight: NDArray[np.int64], k: int, shares: NDArray[np.float64] | None) -> Int32:
    """Parts of balanced weight where there are no edges to cut: heaviest first into the emptiest part."""
    share = np.full(k, 1.0 / k) if shares is None else np.maximum(shares, 1e-12)
    load = np.zeros(k)
    part = np.zeros(len(weight), np.int32)
    for v in np.argsort(-weight, kind="stable").tolist():
        part[v] = int(np.argmin((load + weight[v]) / share))
        load[part[v]] += weight[v]
    return part
