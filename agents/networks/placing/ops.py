"""What the papers' policies read of an op: its kind, the shapes of its outputs, and who its neighbours are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ....graphs import Graph


def kinds_of(graphs: Sequence[Graph]) -> tuple[str, ...]:
    """All kinds of op in graphs, sorted: a vocabulary."""
    return tuple(sorted({kind for graph in graphs for kind in graph.kinds}))


def kind_codes(graph: Graph, kinds: Sequence[str]) -> NDArray[np.int64]:
    """Kind of each op as 1 + its place in a vocabulary, ``[ops] int64``; 0: a kind that is not in it."""
    place = {kind: 1 + i for i, kind in enumerate(kinds)}
    codes: NDArray[np.int64] = np.array([place.get(kind, 0) for kind in graph.kinds], np.int64)[graph.op_kind]
    return codes


def output_shapes(graph: Graph, outputs: int, dims: int) -> NDArray[np.float32]:
    """Sizes of the first dimensions of the first outputs of each op.

    Args:
        graph: The graph.
        outputs: Of each op; further ones are left out.
        dims: Of each output; further ones are left out.

    Returns:
        ``[ops, outputs, dims] float32``; 0 where there is none.
    """
    shapes = np.zeros((graph.num_ops, outputs, dims), np.float32)
    tensor = np.flatnonzero(graph.tensor_producer >= 0)
    op = graph.tensor_producer[tensor]
    slot = tensor - graph.output_ptr[op]
    kept = slot < outputs
    tensor, op, slot = tensor[kept], op[kept], slot[kept]
    for dim in range(dims):
        at = graph.shape_ptr[tensor] + dim
        there = at < graph.shape_ptr[tensor + 1]
        shapes[op[there], slot[there], dim] = graph.shape_dim[at[there]]
    return shapes


def neighbours(graph: Graph) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The undirected neighbours of ops, each once, as CSR.

    Returns:
        Number of neighbours of each op, ``[ops] int64``, and the neighbours, op after op and ascending,
        ``[2 x pairs] int64``.
    """
    writer, reader, _ = (end.astype(np.int64) for end in graph.edges)
    pairs = np.unique(np.concatenate([writer * graph.num_ops + reader, reader * graph.num_ops + writer]))
    return np.bincount(pairs // graph.num_ops, minlength=graph.num_ops), pairs % graph.num_ops
