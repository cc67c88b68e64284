"""The numbers that describe a state: which fields there are, and those that never change in an episode."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...problems import SchedulingProblem
from ...problems.footprints import op_footprint_bytes, resident_tensors
from ..fields import Field, Float32, clipped
from ..paths import longest_paths
from .layout import Layout, bytes_by_producer, passing_tensors, reads_between

#: Live and peak bytes past this many references are clipped (by the core, which writes what changes).
LIMIT = 16.0

#: Units. A *reference* is the peak of the program order.
_REFERENCE, _SHARE, _FLAG, _LOG = "reference", "share", "flag", "log share"

FIXED_FIELDS = (
    Field("occupied", 0, 1, _FLAG, "there is an op; everything is 0 where there is none"),
    Field("allocated", 0, 1, _REFERENCE, "bytes of its outputs"),
    Field("workspace", 0, 1, _REFERENCE, "bytes that it holds only while it runs"),
    Field("kept", 0, 1, _REFERENCE, "bytes of its outputs that stay to the end"),
    Field("position", 0, 1, _SHARE, "its position in the program order / the last position"),
    Field("depth", 0, 1, _SHARE, "ops on the longest path before it / on the longest path"),
    Field("height", 0, 1, _SHARE, "ops on the longest path from it on / on the longest path"),
    Field("parents", 0, 1, _LOG, "log(1 + ops it reads from) / log(1 + ops)"),
    Field("children", 0, 1, _LOG, "log(1 + ops that read from it) / log(1 + ops)"),
)

CHANGING_FIELDS = (
    Field("net", -1, 1, _REFERENCE, "net bytes freed: freed - allocated"),
    Field("net_relative", -1, 1, _SHARE, "net bytes freed / the largest such size among those shown"),
    Field("freed", 0, 2, _REFERENCE, "bytes freed when it ends: what it reads last, what nobody reads"),
    Field("needed", 0, 1, _REFERENCE, "bytes taken when it starts: workspace, and outputs not in place"),
    Field("rise", 0, 1, _REFERENCE, "what the peak rises by if it runs now: minus the dense reward"),
    Field("last_uses", 0, 1, _SHARE, "tensors that it reads last / most that any op reads"),
    Field("unlocks", 0, 1, _SHARE, "ops that miss only it / most readers of any op"),
    Field("waited", 0, 1, _SHARE, "steps since it became ready / ops"),
)

GLOBAL_FIELDS = (
    Field("live", 0, LIMIT, _REFERENCE, "bytes live now"),
    Field("peak", 0, LIMIT, _REFERENCE, "the peak so far"),
    Field("bound", 0, 1, _REFERENCE, "largest footprint of an op: no order has a lower peak"),
    Field("progress", 0, 1, _SHARE, "of the ops, those that have run"),
    Field("ready", 0, 1, _LOG, "log(1 + ready ops) / log(1 + ops)"),
    Field("hidden", 0, 1, _SHARE, "of the ready ops, those that are no legal action now"),
)

EDGE_FIELDS = (
    Field("bytes", 0, 1, _REFERENCE, "bytes of the tensors that the reader reads from the writer"),
    Field("split_bytes", 0, 1, _REFERENCE, "the same, each tensor divided by its number of readers"),
    Field("log_bytes", 0, 1, _LOG, "log2(1 + those bytes) / 63"),
)


@dataclass(frozen=True)
class Scales:
    """What whole numbers are divided by.

    Attributes:
        reference_bytes: Peak of the program order, at least 1.
        bound: Largest footprint of an op / reference.
        most_reads: Most held tensors that an op reads, at least 1.
        most_children: Most readers of an op, at least 1.
    """

    reference_bytes: int
    bound: float
    most_reads: int
    most_children: int


def scales_of(problem: SchedulingProblem, layout: Layout, reference_bytes: int) -> Scales:
    """The units of a problem."""
    footprint = op_footprint_bytes(problem.graph, ~resident_tensors(problem.graph))[problem.ops]
    return Scales(
        reference_bytes,
        float(footprint.max()) / reference_bytes,
        max(1, int(layout.num_reads.max())),
        max(1, int(layout.num_children.max())),
    )


def fixed_features(problem: SchedulingProblem, layout: Layout, scales: Scales) -> Float32:
    """The fields of ``FIXED_FIELDS`` for every node, ``[nodes, fields] float32``."""
    graph, op, nodes = problem.graph, layout.op, layout.num_nodes
    # Variables do not run, and stand before everything: they count for no path.
    runs = (~graph.is_variable).astype(np.int64)
    depth, height, longest = longest_paths(graph, runs)
    kept = bytes_by_producer(graph, passing_tensors(graph) & graph.tensor_is_output)
    columns = [
        np.ones(nodes),
        layout.allocated_bytes / scales.reference_bytes,
        graph.op_workspace_bytes[op] / scales.reference_bytes,
        kept[op] / scales.reference_bytes,
        np.arange(nodes) / max(nodes - 1, 1),
        depth[op] / longest,
        height[op] / longest,
        np.log1p(layout.num_parents) / np.log1p(nodes),
        np.log1p(layout.num_children) / np.log1p(nodes),
    ]
    return clipped(np.stack(columns, axis=1), FIXED_FIELDS)


def edge_features(
    problem: SchedulingProblem, layout: Layout, scales: Scales
) -> tuple[NDArray[np.int32], Float32]:
    """Edges between nodes: ``(writer, reader)`` ``[edges, 2] int32``, their fields ``[edges, fields]``."""
    graph, nodes = problem.graph, layout.num_nodes
    parent, child, tensor = reads_between(graph, layout.op)
    edge, inverse = np.unique(parent * nodes + child, return_inverse=True)
    size = np.where(passing_tensors(graph), graph.tensor_bytes, 0)[tensor].astype(np.float64)
    read = np.bincount(inverse, weights=size, minlength=len(edge))
    split = np.bincount(inverse, weights=size / np.diff(graph.consumer_ptr)[tensor], minlength=len(edge))
    shares = (read / scales.reference_bytes, split / scales.reference_bytes, np.log2(1 + read) / 63)
    pairs = np.stack([edge // nodes, edge % nodes], axis=1).astype(np.int32)
    return pairs, clipped(np.stack(shares, axis=1), EDGE_FIELDS)
