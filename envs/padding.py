"""Whole graphs in observations: padded arrays with masks, and Gymnasium's graphs."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from ..errors import InvalidProblemError
from .fields import Field, Float32, box


def padded(values: NDArray[Any], length: int) -> NDArray[Any]:
    """Zero rows added up to ``length``."""
    result = np.zeros((length, *values.shape[1:]), values.dtype)
    result[: len(values)] = values
    return result


class PaddedGraph:
    """Nodes and edges with masks: the part of a dict observation that never changes in an episode.

    ==================  ===================  =======  ============================
    key                 shape                dtype    meaning
    ==================  ===================  =======  ============================
    ``nodes``           [nodes, fields]      float32  fields of nodes, 0 in padding
    ``node_mask``       [nodes]              int8     1: a node, 0: padding
    ``edges``           [2, edges]           int32    writer, reader; 0 in padding
    ``edge_features``   [edges, fields]      float32  fields of edges
    ``edge_mask``       [edges]              int8     1: an edge, 0: padding
    ==================  ===================  =======  ============================

    Args:
        nodes: ``[graph's nodes, fields] float32``.
        node_fields: Their fields.
        edges: ``(writer, reader)``, ``[graph's edges, 2] int32``.
        edge_values: ``[graph's edges, fields] float32``.
        edge_fields: Their fields.
        pad_to: Nodes and edges after padding; ``None``: as many as there are.
        what: What a node is, in the plural.
        advice: What else to do where ``pad_to`` is too small.

    Raises:
        InvalidProblemError: ``pad_to`` is too small.
    """

    def __init__(
        self,
        nodes: Float32,
        node_fields: tuple[Field, ...],
        edges: NDArray[np.int32],
        edge_values: Float32,
        edge_fields: tuple[Field, ...],
        pad_to: tuple[int, int] | None,
        what: str,
        advice: str = "",
    ) -> None:
        self.num_nodes, num_edges = pad_to or (len(nodes), max(len(edges), 1))  # no library likes length 0
        if self.num_nodes < len(nodes) or num_edges < len(edges):
            raise InvalidProblemError(
                f"pad_to={pad_to} is too small for this graph: {len(nodes)} {what}, {len(edges)} edges between "
                f"them; give at least as many{advice}"
            )
        self._arrays = {
            "nodes": padded(nodes, self.num_nodes),
            "node_mask": padded(np.ones(len(nodes), np.int8), self.num_nodes),
            "edges": np.ascontiguousarray(padded(edges, num_edges).T),
            "edge_features": padded(edge_values, num_edges),
            "edge_mask": padded(np.ones(len(edges), np.int8), num_edges),
        }
        self.spaces: dict[str, spaces.Space[Any]] = {
            "nodes": box((self.num_nodes,), node_fields),
            "node_mask": spaces.Box(0, 1, (self.num_nodes,), np.int8),
            "edges": spaces.Box(0, max(self.num_nodes - 1, 1), (2, num_edges), np.int32),
            "edge_features": box((num_edges,), edge_fields),
            "edge_mask": spaces.Box(0, 1, (num_edges,), np.int8),
        }

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Fresh copies of all arrays, by key."""
        return {key: array.copy() for key, array in self._arrays.items()}


def graph_instance(nodes: Float32, edges: NDArray[np.int32], edge_values: Float32) -> spaces.GraphInstance:
    """A Gymnasium graph of fresh arrays; without edges both edge arrays are ``None``."""
    if len(edges) == 0:
        return spaces.GraphInstance(nodes, None, None)
    return spaces.GraphInstance(nodes, edge_values.copy(), edges.copy())
