"""List scheduling by the bytes that an op frees."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ....problems import SchedulingProblem
from ...registry import register
from .dependencies import Dependencies, sums_by_op, takes_memory
from .one_order import OneOrder


@register
@dataclass(frozen=True)
class GreedyFreedBytes(OneOrder):
    """Runs the ready op that frees most bytes net of those it allocates; ties by index.

    The rule of XLA's ``ListMemoryScheduler`` (there, ties go to more readers, and scalars run at once).
    """

    name: ClassVar[str] = "greedy-freed-bytes"
    summary: ClassVar[str] = "of the ready ops, the one that frees most bytes (XLA's list scheduler)"

    def order(self, problem: SchedulingProblem) -> NDArray[np.int32]:
        """The greedy order."""
        graph = problem.graph
        dependencies = Dependencies.of(graph)
        dynamic = takes_memory(graph)
        readers = np.diff(graph.consumer_ptr)
        ends = dynamic & ~graph.tensor_is_output
        written, unread = sums_by_op(graph, dynamic), sums_by_op(graph, ends & (readers == 0))
        gain = [freed - allocated for freed, allocated in zip(unread, written, strict=True)]
        size, left = graph.tensor_bytes.tolist(), readers.tolist()
        # The exclusive or of the readers that have not run: with one left, that one.
        reader = [0] * graph.num_tensors
        for op, tensor in zip(
            _reader_of_each_input(graph.input_ptr), graph.input_tensor.tolist(), strict=True
        ):
            reader[tensor] ^= op
        for tensor in np.flatnonzero(ends & (readers == 1)).tolist():
            gain[reader[tensor]] += size[tensor]

        waiting = [len(before) for before in dependencies.before]
        heap = [(-gain[v], v) for v in problem.ops.tolist() if not waiting[v]]
        heapq.heapify(heap)
        done = bytearray(graph.num_ops)
        order = []
        while heap:
            v = heapq.heappop(heap)[1]
            if done[v]:
                continue  # an entry from before its gain grew
            done[v] = 1
            order.append(v)
            for tensor in graph.inputs(v).tolist():
                left[tensor] -= 1
                reader[tensor] ^= v
                if left[tensor] == 1 and ends[tensor]:
                    last = reader[tensor]
                    gain[last] += size[tensor]
                    if not waiting[last]:
                        heapq.heappush(heap, (-gain[last], last))
            for w in dependencies.after[v]:
                waiting[w] -= 1
                if not waiting[w]:
                    heapq.heappush(heap, (-gain[w], w))
        return np.array(order, np.int32)


def _reader_of_each_input(input_ptr: NDArray[np.int32]) -> list[int]:
    readers: list[int] = np.repeat(np.arange(len(input_ptr) - 1), np.diff(input_ptr)).tolist()
    return readers
