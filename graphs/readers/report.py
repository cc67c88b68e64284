"""What a reader returns: the graph, what came with it, and a report of what was done to get it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from ..cluster import Cluster
from ..costs import CostModel
from ..graph import Graph


@dataclass(frozen=True)
class ImportReport:
    """How a file became a graph; everything that was assumed is listed.

    Attributes:
        source: Path or id.
        format: ``"onnx"``, ``"hlo"``, ``"cost-graph"``, ``"dnn-partitioning"``, ``"npz"``, ``"networkx"``,
            ``"torch"``, ``"example"`` or ``"synthetic"``.
        level: Level of the graph.
        ops: Number of ops.
        tensors: Number of tensors.
        fingerprint: Of the graph.
        folded: Nodes that became part of something else, counted by kind (constants, views).
        bound_dims: Symbolic dimensions and the sizes they were bound to.
        subgraph_policy: ``"opaque"``, ``"inline"`` or ``"reject"``; empty where the format has no subgraphs.
        subgraphs: Ops with subgraphs, and what was done with each.
        missing_shape: Tensors whose shape is unknown (counted as 0 bytes), by name or position.
        missing_cost: Ops without a cost formula (priced by their bytes alone), by kind.
        notes: Anything else a reader of numbers should know.
    """

    source: str
    format: str
    level: str
    ops: int
    tensors: int
    fingerprint: str
    folded: Mapping[str, int] = field(default_factory=dict)
    bound_dims: Mapping[str, int] = field(default_factory=dict)
    subgraph_policy: str = ""
    subgraphs: tuple[str, ...] = ()
    missing_shape: tuple[str, ...] = ()
    missing_cost: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class Origin:
    """Where the ops of a graph are in the model that it was read from; a writer needs it to annotate that
    model.

    Attributes:
        source: Path of the file, or the model in memory.
        op_node: For each op the index of its node, after functions and branches were
            inlined.
        spliced: Branches that were inlined, in rounds: index of an ``If`` node -> attribute of the branch.
    """

    source: Any
    op_node: tuple[int, ...]
    spliced: tuple[Mapping[int, str], ...] = ()


@dataclass(frozen=True)
class Imported:
    """A graph and what came with it.

    Attributes:
        graph: The graph.
        report: How it was read.
        cluster: The cluster that the file describes, if it does.
        costs: The measured times that the file brings, if it does.
        origin: Where the ops are in the file, for formats that can be written back.
    """

    graph: Graph
    report: ImportReport
    cluster: Cluster | None = None
    costs: CostModel | None = None
    origin: Origin | None = None
