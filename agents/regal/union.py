"""Several graphs as one that is not connected: no padding, whatever their sizes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray


def union_of_nodes(
    nodes: Sequence[NDArray[np.float32]], tasks: Sequence[NDArray[np.float32]]
) -> NDArray[np.float32]:
    """Fields of all nodes, those of the task of their graph behind their own.

    Args:
        nodes: Of each graph, ``[nodes, fields] float32``.
        tasks: Fields that tell the task of each, ``[task fields] float32``.

    Returns:
        ``[all nodes, fields + task fields] float32``, graph by graph.
    """
    return np.concatenate(
        [
            np.concatenate([own, np.broadcast_to(task, (len(own), len(task)))], axis=1)
            for own, task in zip(nodes, tasks, strict=True)
        ]
    )


def union_of_edges(edges: Sequence[NDArray[np.int64]], first: Sequence[int]) -> NDArray[np.int64]:
    """Both ends of all edges in the union.

    Args:
        edges: Of each graph, ``[2, edges] int64``.
        first: Place of the first node of each graph.
    """
    return np.concatenate([own + at for own, at in zip(edges, first, strict=True)], axis=1)


def first_nodes(sizes: Sequence[int]) -> list[int]:
    """Place of the first node of each graph, from how many each has."""
    return [0, *accumulate(sizes[:-1])]
