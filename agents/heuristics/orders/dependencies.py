"""Which ops must run before which, each pair once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ....graphs import Graph


@dataclass(frozen=True)
class Dependencies:
    """Dependencies between the ops that a device runs; variables are there from the start and do not count.

    Attributes:
        before: For each op the ops whose outputs it reads, in the order of its inputs.
        after: For each op the ops that read its outputs, ascending.
    """

    before: list[list[int]]
    after: list[list[int]]

    @staticmethod
    @lru_cache(maxsize=8)  # several rules look at one graph, one after the other
    def of(graph: Graph) -> Dependencies:
        """Those of a graph; nobody changes the lists."""
        producer, consumer, _ = graph.edges
        real = ~graph.is_variable[producer]
        producer, consumer = producer[real].astype(np.int64), consumer[real].astype(np.int64)
        first = np.sort(np.unique(consumer * graph.num_ops + producer, return_index=True)[1])
        before: list[list[int]] = [[] for _ in range(graph.num_ops)]
        after: list[list[int]] = [[] for _ in range(graph.num_ops)]
        for u, v in zip(producer[first].tolist(), consumer[first].tolist(), strict=True):
            before[v].append(u)
            after[u].append(v)
        return Dependencies(before, after)


def sums_by_op(graph: Graph, counted: NDArray[np.bool_]) -> list[int]:
    """Bytes of the outputs of each op that count, ``[ops]``.

    Args:
        graph: The graph.
        counted: Which tensors count, ``[tensors] bool``.
    """
    until = np.concatenate([[0], np.cumsum(np.where(counted, graph.tensor_bytes, 0))])
    total: list[int] = (until[graph.output_ptr[1:]] - until[graph.output_ptr[:-1]]).tolist()
    return total


def takes_memory(graph: Graph) -> NDArray[np.bool_]:
    """Whether a tensor takes dynamic memory: no source, no variable and no update of one, ``[tensors] bool``."""
    produced = graph.tensor_producer >= 0
    at_home = graph.is_variable | (graph.op_update_of >= 0)
    dynamic: NDArray[np.bool_] = produced & ~at_home[graph.tensor_producer]
    return dynamic
