"""What REGAL's policy reads of a graph: four numbers for each op, one for each edge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ....graphs import Graph
from ....problems import AnyProblem, PlacementProblem

#: Fields of nodes and of edges.
NODE_FIELDS = ("input_bytes", "output_bytes", "op_time", "on_critical_path")
EDGE_FIELDS = ("bytes",)


@dataclass(frozen=True, eq=False)
class GraphFeatures:
    """The fields that REGAL (Paliwal et al. 2020) publishes, each over its mean in the graph: scale says nothing.

    Attributes:
        nodes: Of each op ``NODE_FIELDS``, ``[ops, 4] float32``; the last one is 0 or 1.
        edges: Op that writes and op that reads, of each read of a produced tensor, ``[2, edges] int64``.
        edge_features: Of each edge ``EDGE_FIELDS``, ``[edges, 1] float32``.
    """

    nodes: NDArray[np.float32]
    edges: NDArray[np.int64]
    edge_features: NDArray[np.float32]

    @classmethod
    def of(cls, graph: Graph, op_time_ns: ArrayLike) -> GraphFeatures:
        """The features of a graph.

        Args:
            graph: The graph.
            op_time_ns: Mean over devices of the time of each op, ``[ops]``.
        """
        time_ns = np.asarray(op_time_ns, np.float64)
        bytes_of = graph.tensor_bytes.astype(np.float64)
        reader = np.repeat(np.arange(graph.num_ops), np.diff(graph.input_ptr))
        read_bytes = np.bincount(reader, bytes_of[graph.input_tensor], minlength=graph.num_ops)
        produced = graph.tensor_producer >= 0
        written_bytes = np.bincount(
            graph.tensor_producer[produced], bytes_of[produced], minlength=graph.num_ops
        )
        writer, reader_of, tensor = graph.edges
        edges = np.stack([writer, reader_of]).astype(np.int64)
        critical = _on_critical_path(edges, time_ns)
        columns = [_over_mean(read_bytes), _over_mean(written_bytes), _over_mean(time_ns), critical]
        return cls(
            np.stack(columns, axis=1).astype(np.float32),
            edges,
            _over_mean(bytes_of[tensor])[:, None].astype(np.float32),
        )

    @classmethod
    def of_problem(cls, problem: AnyProblem) -> GraphFeatures:
        """The features of a problem's graph; where it has no times, ops take the same."""
        if isinstance(problem, PlacementProblem):
            return cls.of(problem.graph, problem.cost_ns.mean(axis=1))
        return cls.of(problem.graph, np.ones(problem.graph.num_ops))


def _over_mean(values: NDArray[Any]) -> NDArray[np.float64]:
    mean = values.mean() if len(values) else 0.0
    return values / mean if mean > 0 else np.zeros_like(values)


def _on_critical_path(edges: NDArray[np.int64], time_ns: NDArray[np.float64]) -> NDArray[np.float64]:
    """1 for ops on a longest path by op time, transfers free; else 0. Ops are in topological order."""
    time = time_ns.tolist()
    pairs = edges[:, np.argsort(edges[1], kind="stable")].T.tolist()
    before, behind = [0.0] * len(time), [0.0] * len(time)
    for writer, reader in pairs:  # by reader: all of a writer's own inputs came earlier
        before[reader] = max(before[reader], before[writer] + time[writer])
    for writer, reader in edges[:, np.argsort(-edges[0], kind="stable")].T.tolist():
        behind[writer] = max(behind[writer], behind[reader] + time[reader])
    through = np.array(before) + time_ns + np.array(behind)
    longest = through.max(initial=0.0)
    on_path: NDArray[np.bool_] = through >= longest * (1 - 1e-9)
    return on_path.astype(np.float64)
