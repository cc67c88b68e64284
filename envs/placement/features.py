"""The numbers that describe a state: which fields there are, and those that never change in an episode."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...graphs import DIRECTIONS, VARIABLE, Cluster, Graph
from ...problems import PlacementProblem
from ..fields import Field, Float32, clipped
from ..paths import longest_paths
from .blocks import Blocks

#: Times past this many units are clipped; what is compared between devices is a delay, whose smallest value
#: is 0.
LIMIT = 16.0


#: Units. A *reference* is the time of all work on the fastest single device; a *mean block* is the
#: reference divided by the number of groups, so that a typical block counts 1 on any graph.
_REFERENCE, _BLOCK, _SHARE, _FLAG, _LOG = "reference", "mean block", "share", "flag", "log share"

DEVICE_FIELDS = (
    Field(
        "start_delay",
        0,
        LIMIT,
        _BLOCK,
        "earliest start here - smallest over allowed devices",
    ),
    Field("finish_delay", 0, LIMIT, _BLOCK, "earliest finish here - smallest over allowed devices"),
    Field("cost", 0, LIMIT, _BLOCK, "time of the group here"),
    Field("transfer", 0, LIMIT, _BLOCK, "summed durations of the transfers it would wait for here"),
    Field("start", 0, LIMIT, _REFERENCE, "earliest start here"),
    Field("busy_until", 0, LIMIT, _REFERENCE, "time from which the device is free"),
    Field("bytes_to_move", 0, 1, _SHARE, "of the bytes it reads from groups decided before, those not here"),
    Field("parents", 0, 1, _SHARE, "of its parents decided before, those here"),
    Field("children", 0, 1, _SHARE, "of its children that have a device, those here"),
    Field("free_memory", -1, 1, _SHARE, "of the capacity, what is free now"),
    Field("free_memory_after", -1, 1, _SHARE, "of the capacity, what is free while the group runs here"),
    Field("free_memory_least", -1, 1, _SHARE, "of the capacity, the least that has been free so far"),
    Field("current", 0, 1, _FLAG, "the group is here now (refine); 0 while it has no device"),
    Field(
        "lock",
        0,
        1,
        _FLAG,
        "the only device that all ops of the group allow, colocated ones included",
    ),
    Field("allowed", 0, 1, _FLAG, "the group may run here: the action mask"),
)

_FAMILIES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (name, re.compile(pattern))
    for name, pattern in (
        ("recurrent", r"lstm|gru(?!ad)|rnn"),
        ("convolution", r"conv(?!ert)"),
        ("normalization", r"norm|softmax(?!cross)|lrn|dropout"),
        ("matrix", r"matmul|gemm|einsum|attention|linear|addmm|bmm|\bmm\b|\bmv\b|\bdot\b|dot_general"),
        ("reduction", r"reduce|pool|mean|argm|topk|loss|entropy|cumsum|\bsum\b|\bmax\b|\bmin\b"),
        ("movement", r"reshape|transpose|concat|\bcat\b|split|slice|gather|scatter|\bpad\b|copy|cast|"
                     r"expand|tile|embedding|view|permute|squeeze|flatten|shape|select|index|stack|resize|"
                     r"convert|broadcast"),
        ("elementwise", r"relu|sigmoid|tanh|gelu|silu|add|sub|mul|div|exp|log|sqrt|pow|neg|abs|where|clip|"
                        r"clamp|erf|equal|greater|less|sgd|adam|fused|fill|identity"),
    )
)  # fmt: skip
FAMILIES = (VARIABLE, *(name for name, _ in _FAMILIES))

GROUP_FIELDS = (
    Field("rank", 0, 1, _SHARE, "longest path from its most urgent op to the end / critical path"),
    Field("depth", 0, 1, _SHARE, "longest path to its first ready op / critical path"),
    Field("slack", 0, 1, _SHARE, "least slack of its ops / critical path; 0 on the critical path"),
    Field("layer", -1, 1, _SHARE, "first layer of its ops / last layer; -1: no layer is known"),
    *(
        Field(name, 0, 1, _SHARE, f"of its work that is {name}; 0 or 1 for a single op")
        for name in DIRECTIONS
    ),
    *(Field(name, 0, 1, _SHARE, f"of its work of {name} kinds; all 0: another kind") for name in FAMILIES),
    Field("ops", 0, 1, _LOG, "log(1 + its ops) / log(1 + ops of the graph)"),
    Field("work", 0, LIMIT, _BLOCK, "time of the group on the fastest allowed device"),
    Field("send", 0, LIMIT, _BLOCK, "mean time to send each of its outputs once"),
    Field("resident", 0, 1, _SHARE, "parameters, inputs, variables it needs / smallest capacity"),
    Field("fan_in", 0, 1, _LOG, "log(1 + its parents) / log(1 + groups)"),
    Field("fan_out", 0, 1, _LOG, "log(1 + its children) / log(1 + groups)"),
    Field(
        "late_parents",
        0,
        1,
        _SHARE,
        "of its parents, those decided after it (groups may form cycles)",
    ),
)
PROGRESS = Field("progress", 0, 1, _SHARE, "of the episode's decisions, those taken")

EDGE_FIELDS = (
    Field("bytes", 0, 1, _LOG, "log2(1 + bytes that cross, each tensor once) / 63"),
    Field("send", 0, LIMIT, _BLOCK, "mean time to send them"),
    Field("late", 0, 1, _FLAG, "the reader is decided before the writer"),
)


@dataclass(frozen=True)
class Units:
    """What times are divided by.

    Attributes:
        reference_ns: Time of all work on the fastest single device, at least 1.
        block_ns: ``reference_ns`` / number of groups.
    """

    reference_ns: int
    block_ns: float


def group_features(problem: PlacementProblem, blocks: Blocks, units: Units) -> Float32:
    """The fields of ``GROUP_FIELDS`` for every group, ``[groups, fields] float32``."""
    graph, group = problem.graph, blocks.group_of_op
    order = np.argsort(group, kind="stable")
    start = np.searchsorted(group[order], np.arange(blocks.num_groups))
    least_cost = np.where(problem.allowed, problem.cost_ns, np.iinfo(np.int64).max).min(axis=1)
    depth, rank, critical = longest_paths(graph, least_cost)
    latest = critical - rank  # latest start that does not delay the end
    critical = max(critical, 1)
    weight = least_cost + 1.0  # work in ns; an op without cost still counts
    total = np.add.reduceat(weight[order], start)

    def share(values: NDArray[np.bool_]) -> NDArray[np.float64]:
        return np.asarray(np.add.reduceat((weight * values)[order], start) / total)

    layer = np.where(graph.op_layer >= 0, graph.op_layer, len(graph.layers))
    first_layer = np.minimum.reduceat(layer[order], start)
    layer_share = first_layer / max(len(graph.layers) - 1, 1)
    families = op_families(graph)
    cost = np.array(blocks.cost_ns, np.float64).reshape(blocks.num_groups, -1)
    work = np.where(blocks.allowed, cost, np.inf).min(axis=1)
    send = np.zeros(blocks.num_groups)
    np.add.at(
        send, blocks.slot_source, mean_transfer_ns(problem.cluster, np.array(blocks.slot_bytes, np.float64))
    )
    parents = np.array([len(p) for p in blocks.parents])
    late = np.array([sum(p > g for p in blocks.parents[g]) for g in range(blocks.num_groups)])
    sizes = np.diff(np.append(start, graph.num_ops))
    groups = blocks.num_groups
    columns = [
        np.maximum.reduceat(rank[order], start) / critical,
        np.minimum.reduceat(depth[order], start) / critical,
        np.minimum.reduceat((latest - depth)[order], start) / critical,
        np.where(first_layer < len(graph.layers), layer_share, -1.0),
        *(share(graph.op_direction == i) for i in range(len(DIRECTIONS))),
        *(share(families == i) for i in range(len(FAMILIES))),
        np.log1p(sizes) / np.log1p(graph.num_ops),
        work / units.block_ns,
        send / units.block_ns,
        blocks.resident_bytes / problem.cluster.capacity_bytes.min(),
        np.log1p(parents) / np.log1p(groups),
        np.log1p([len(c) for c in blocks.children]) / np.log1p(groups),
        late / np.maximum(parents, 1),
    ]
    return clipped(np.stack(columns, axis=1), GROUP_FIELDS)


def edge_features(
    problem: PlacementProblem, blocks: Blocks, units: Units
) -> tuple[NDArray[np.int32], Float32]:
    """Edges between groups: ``(writer, reader)`` ``[edges, 2] int32``, their fields ``[edges, fields]``."""
    reads = [
        (blocks.slot_source[slot], g, slot) for g in range(blocks.num_groups) for slot, _ in blocks.inputs[g]
    ]
    if not reads:
        return np.zeros((0, 2), np.int32), np.zeros((0, len(EDGE_FIELDS)), np.float32)
    source, target, slot = np.array(reads, np.int64).T
    edge, inverse = np.unique(source * blocks.num_groups + target, return_inverse=True)
    size = np.array(blocks.slot_bytes, np.float64)[slot]
    crossing = np.bincount(inverse, weights=size)
    send = np.bincount(inverse, weights=mean_transfer_ns(problem.cluster, size))
    writer, reader = edge // blocks.num_groups, edge % blocks.num_groups
    values = np.stack([np.log2(1 + crossing) / 63, send / units.block_ns, reader < writer], axis=1)
    return np.stack([writer, reader], axis=1).astype(np.int32), clipped(values, EDGE_FIELDS)


def op_families(graph: Graph) -> NDArray[np.int64]:
    """Position in ``FAMILIES`` of each op's kind, ``[ops]``; -1: none of them."""
    code = [FAMILIES.index(VARIABLE) if kind == VARIABLE else family_of(kind) for kind in graph.kinds]
    family = np.array(code, np.int64)[graph.op_kind]
    family[(family < 0) & graph.op_elementwise] = FAMILIES.index("elementwise")
    return family


def family_of(kind: str) -> int:
    """Position in ``FAMILIES`` of a kind's name, by the words it contains; -1: none."""
    text = kind.lower().replace(".", " ").replace("_", " ")
    for position, (_, pattern) in enumerate(_FAMILIES, start=1):
        if pattern.search(text):
            return position
    return -1


def mean_transfer_ns(cluster: Cluster, size_bytes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Duration of a transfer, the mean over ordered pairs of devices; 0 on one device or free channels."""
    apart = ~np.eye(len(cluster), dtype=bool)
    if cluster.channel == "free" or not apart.any():
        return np.zeros_like(size_bytes)
    latency = cluster.latency_ns[apart].mean()
    per_byte = (1e9 / cluster.bytes_per_second[apart]).mean()
    return np.asarray(latency + size_bytes * per_byte)
