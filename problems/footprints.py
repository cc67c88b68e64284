"""Memory that single ops need, wherever they are placed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..graphs import Graph


def resident_tensors(graph: Graph) -> NDArray[np.bool_]:
    """Whether a tensor is an output of a variable, or a source that is read, ``[tensors] bool``."""
    produced = graph.tensor_producer >= 0
    resident = produced & graph.is_variable[graph.tensor_producer]
    read = graph.input_tensor[~produced[graph.input_tensor]]
    resident[read] = True
    return resident


def op_resident_bytes(graph: Graph) -> NDArray[np.int64]:
    """Bytes that stay where an op is: source tensors it reads, outputs of a variable, ``[ops] int64``."""
    source = np.where(graph.tensor_producer < 0, graph.tensor_bytes, 0)
    kept: NDArray[np.int64] = _read(graph, source) + np.where(
        graph.is_variable, _written(graph, graph.tensor_bytes), 0
    )
    return kept


def op_footprint_bytes(graph: Graph, counted: NDArray[np.bool_] | None = None) -> NDArray[np.int64]:
    """Memory that each op needs by itself while it runs: inputs, outputs, workspace, ``[ops] int64``.

    A buffer that an op may share counts once at most: an update writes into its variable, what reads an
    update's output may find it there, and an elementwise op of an in-place graph may write over an input.

    Args:
        graph: The graph.
        counted: Which tensors count, ``[tensors] bool``; all by default.
    """
    produced = np.flatnonzero(graph.tensor_producer >= 0)
    updated = produced[graph.op_update_of[graph.tensor_producer[produced]] >= 0]
    size = graph.tensor_bytes.copy()
    size[updated] = 0
    if counted is not None:
        size[~counted] = 0
    written = _written(graph, size)
    if graph.in_place:
        written = np.where(graph.op_elementwise & (np.diff(graph.output_ptr) == 1), 0, written)
    footprint: NDArray[np.int64] = (
        _read(graph, size) + written + np.where(graph.is_variable, 0, graph.op_workspace_bytes)
    )
    return footprint


def _read(graph: Graph, size: NDArray[np.int64]) -> NDArray[np.int64]:
    """Sum over the tensors that each op reads, ``[ops]``."""
    until = np.concatenate([[0], np.cumsum(size[graph.input_tensor])])
    total: NDArray[np.int64] = until[graph.input_ptr[1:]] - until[graph.input_ptr[:-1]]
    return total


def _written(graph: Graph, size: NDArray[np.int64]) -> NDArray[np.int64]:
    """Sum over the tensors that each op writes, ``[ops]``."""
    until = np.concatenate([[0], np.cumsum(size)])
    total: NDArray[np.int64] = until[graph.output_ptr[1:]] - until[graph.output_ptr[:-1]]
    return total
