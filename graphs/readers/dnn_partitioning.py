"""Reads the graphs and splits of Tarnawski et al. 2020 (repository msr-fiddle/dnn-partitioning).

A graph file brings measured times and its own cluster of ``maxFPGAs`` accelerators and ``maxCPUs`` CPUs. Each
node becomes one op that writes one tensor; the tensor has as many bytes as the cluster's links move in the
node's transfer time, so that times survive to the nanosecond. What a node keeps in memory (``size``) is a
parameter that only it reads. Edges are dependencies through the tensor of their source.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import ImportFailedError, InvalidGraphError
from ..builder import GraphBuilder
from ..closed_json import Row, read_json
from ..cluster import MAX_DEVICES, Cluster
from ..costs import TableCost
from ..graph import Graph
from ..profiles import DeviceProfile, Link
from .report import Imported, ImportReport

ACCELERATOR = "accelerator"
CPU = "CPU"
LEVEL = "dnn-partitioning"
#: CPUs of these files work in the host's memory, which is not limited.
UNLIMITED_BYTES = 2**62

_BYTES_PER_NS = 12
_LINK = Link(
    "host", _BYTES_PER_NS * 10**9, 0, "by definition: a tensor's bytes follow from its transfer time"
)
_NS_PER_MS = 10**6
_MAX_NS = 2**53  # 104 days; keeps every sum of times within int64
_MAX_ROWS = 2_000_000
_MAX_TOTAL = 2**62
_MAX_ID = 2**53
_TOP = ("maxSizePerFPGA", "maxFPGAs", "maxCPUs", "nodes", "edges")
_NODE_REQUIRED = ("id", "supportedOnFpga", "cpuLatency", "fpgaLatency", "isBackwardNode")
_NODE_OPTIONAL = ("colorClass", "size", "name", "layerId")
_EDGE_REQUIRED = ("sourceId", "destId", "cost")
_EDGE_OPTIONAL = ("size",)


@dataclass(frozen=True)
class Split:
    """A published split: node ids per device, accelerators first.

    Attributes:
        accelerators: Ids of the nodes on each accelerator.
        cpus: Ids of the nodes on each CPU.
    """

    accelerators: tuple[tuple[int, ...], ...]
    cpus: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class _Node:
    id: int
    name: str
    on_accelerator: bool
    cpu_ns: int
    accelerator_ns: int
    backward: bool
    color: int | None
    layer: str | None
    bytes: int


def node_ids(graph: Graph) -> dict[int, int]:
    """Op of each node id of the file that a graph came from.

    Raises:
        ImportFailedError: The graph came from elsewhere.
    """
    if graph.level != LEVEL:
        raise ImportFailedError(f"{graph!r} has no node ids: it does not come from a dnn-partitioning file")
    return {int(name.split(":", 1)[0]): op for op, name in enumerate(graph.op_names)}


def read_dnn_partitioning(path: str | os.PathLike[str]) -> Imported:
    """Reads a graph file with its cluster and times.

    ``isBackwardNode`` becomes the op's direction, ``colorClass`` its colocation group, ``layerId`` its layer;
    ``supportedOnFpga`` false makes it unsupported on ``"accelerator"``.

    Raises:
        ImportFailedError: The file is no such graph; the message names the row.
    """
    document = read_json(path, ImportFailedError, "a dnn-partitioning graph")
    top = Row(document, f"{path}:", ImportFailedError, _TOP)
    cluster = _cluster(top)
    nodes = _nodes(top, path)
    index_of = {node.id: index for index, node in enumerate(nodes)}
    transfer_ns, edges = _edges(top, path, index_of)

    builder = GraphBuilder(LEVEL, Path(path).stem)
    outputs = [
        builder.tensor(bytes=_BYTES_PER_NS * ns, dtype="uint8", name=node.name)
        for node, ns in zip(nodes, transfer_ns, strict=True)
    ]
    reads: list[list[int]] = [[] for _ in nodes]
    for source, target in edges:
        reads[target].append(outputs[source])
    for node, inputs, output in zip(nodes, reads, outputs, strict=True):
        if node.bytes:
            inputs = [
                builder.tensor(bytes=node.bytes, dtype="uint8", role="parameter", name=node.name),
                *inputs,
            ]
        builder.op(
            "node",
            inputs=inputs,
            outputs=[output],
            group=node.color,
            layer=node.layer,
            direction="backward" if node.backward else "forward",
            unsupported=() if node.on_accelerator else (ACCELERATOR,),
            name=node.name,
        )
    try:
        graph = builder.build()
    except InvalidGraphError as problem:
        raise ImportFailedError(f"{path}: {problem}") from None
    row_of_op = [index_of[node_id] for node_id in node_ids(graph)]
    costs = TableCost(
        {
            ACCELERATOR: np.array([nodes[row].accelerator_ns for row in row_of_op], np.int64),
            CPU: np.array([nodes[row].cpu_ns for row in row_of_op], np.int64),
        }
    )
    report = ImportReport(
        source=os.fspath(path),
        format="dnn-partitioning",
        level=LEVEL,
        ops=graph.num_ops,
        tensors=graph.num_tensors,
        fingerprint=graph.fingerprint,
        notes=(
            f"times and cluster ({cluster.name}) come from the file",
            "bytes of a node's output follow from its transfer time; what it keeps there is its parameter",
        ),
    )
    return Imported(graph, report, cluster, costs)


def read_split(path: str | os.PathLike[str]) -> Split:
    """Reads a split: ``{"fpgas": [{"nodes": [ids]}], "cpus": [{"nodes": [ids]}]}``.

    Raises:
        ImportFailedError: The file is no split, or names a node twice.
    """
    return parse_split(read_json(path, ImportFailedError, "a dnn-partitioning split"), path)


def parse_split(document: Any, path: str | os.PathLike[str]) -> Split:
    """A split from parsed JSON; ``path`` names it in messages."""
    top = Row(document, f"{path}:", ImportFailedError, ("fpgas", "cpus"), ("maxLoad",))
    seen: set[int] = set()

    def devices(key: str) -> Iterable[tuple[int, ...]]:
        for number, entry in enumerate(top.rows(key, MAX_DEVICES)):
            row = Row(entry, f"{path}: {key}[{number}]", ImportFailedError, ("nodes",), ("load",))
            ids = row.rows("nodes", _MAX_ROWS)
            for node in ids:
                if isinstance(node, bool) or not isinstance(node, int):
                    row.refuse(f"lists node {node!r:.60}; expected a whole number")
                if node in seen:
                    row.refuse(f"lists node {node}, which is listed before; a node runs on one device")
                seen.add(node)
            yield tuple(ids)

    return Split(tuple(devices("fpgas")), tuple(devices("cpus")))


def _cluster(top: Row) -> Cluster:
    accelerators = top.integer("maxFPGAs", 0, MAX_DEVICES)
    cpus = top.integer("maxCPUs", 0, MAX_DEVICES)
    if not 1 <= accelerators + cpus <= MAX_DEVICES:
        top.refuse(f"names {accelerators} accelerators and {cpus} CPUs; expected 1 to {MAX_DEVICES} devices")
    capacity = math.floor(top.number("maxSizePerFPGA", 1, _MAX_TOTAL))
    accelerator = DeviceProfile(ACCELERATOR, ACCELERATOR, {}, 0, capacity, launch_overhead_ns=0)
    cpu = DeviceProfile(CPU, "cpu", {}, 0, UNLIMITED_BYTES, launch_overhead_ns=0)
    name = "+".join(f"{n}x{d.name}" for n, d in ((accelerators, accelerator), (cpus, cpu)) if n)
    return Cluster.uniform([accelerator] * accelerators + [cpu] * cpus, _LINK, name=name)


def _nodes(top: Row, path: str | os.PathLike[str]) -> list[_Node]:
    nodes: list[_Node] = []
    seen: dict[int, int] = {}
    for number, entry in enumerate(top.rows("nodes", _MAX_ROWS)):
        row = Row(entry, f"{path}: nodes[{number}]", ImportFailedError, _NODE_REQUIRED, _NODE_OPTIONAL)
        node_id = row.integer("id", 0, _MAX_ID)
        if node_id in seen:
            row.refuse(f"has id {node_id}, as nodes[{seen[node_id]}] has; ids must differ")
        seen[node_id] = number
        layer = row.get("layerId")
        nodes.append(
            _Node(
                id=node_id,
                name=f"{node_id}:{row.text('name') if row.get('name') is not None else ''}",
                on_accelerator=row.flag("supportedOnFpga"),
                cpu_ns=_nanoseconds(row, "cpuLatency"),
                accelerator_ns=_nanoseconds(row, "fpgaLatency"),
                backward=row.flag("isBackwardNode"),
                color=None if row.get("colorClass") is None else row.integer("colorClass", -_MAX_ID, _MAX_ID),
                layer=None if layer is None else str(row.integer("layerId", -_MAX_ID, _MAX_ID)),
                bytes=0 if row.get("size") is None else math.ceil(row.number("size", 0, _MAX_TOTAL)),
            )
        )
    for what, total in (
        ("sizes", sum(node.bytes for node in nodes)),
        ("CPU times", sum(node.cpu_ns for node in nodes)),
        ("accelerator times", sum(node.accelerator_ns for node in nodes)),
    ):
        if total > _MAX_TOTAL:
            top.refuse(
                f"has {what} that add up to {total:.3g} bytes or ns; at most {_MAX_TOTAL:.3g} are read"
            )
    return nodes


def _edges(
    top: Row, path: str | os.PathLike[str], index_of: Mapping[int, int]
) -> tuple[list[int], list[tuple[int, int]]]:
    """Transfer time of each node's output in ns, and the edges as pairs of file indices."""
    transfer_ns: dict[int, int] = {}
    edges: dict[tuple[int, int], int] = {}
    for number, entry in enumerate(top.rows("edges", _MAX_ROWS)):
        row = Row(entry, f"{path}: edges[{number}]", ImportFailedError, _EDGE_REQUIRED, _EDGE_OPTIONAL)
        ends = []
        for key in ("sourceId", "destId"):
            node_id = row.integer(key, 0, _MAX_ID)
            if node_id not in index_of:
                row.refuse(f"has {key} = {node_id}; there is no such node")
            ends.append(index_of[node_id])
        edge = (ends[0], ends[1])
        if edge in edges:
            row.refuse(f"repeats edges[{edges[edge]}]; an edge is listed once")
        edges[edge] = number
        cost = _nanoseconds(row, "cost")
        if transfer_ns.setdefault(edge[0], cost) != cost:
            row.refuse(
                f"moves node {row.get('sourceId')} in {cost} ns, another edge in {transfer_ns[edge[0]]} ns; "
                "all edges out of a node carry its one output"
            )
    if sum(transfer_ns.values()) * _BYTES_PER_NS > _MAX_TOTAL:
        top.refuse(
            f"has transfer times that add up to {sum(transfer_ns.values()):.3g} ns; they are too large"
        )
    return [transfer_ns.get(index, 0) for index in range(len(index_of))], list(edges)


def _nanoseconds(row: Row, key: str) -> int:
    """A time in milliseconds, rounded to whole nanoseconds."""
    return round(row.number(key, 0, _MAX_NS / _NS_PER_MS) * _NS_PER_MS)
