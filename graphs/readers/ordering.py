"""The order that ops get from the order of a file, and the cycle that forbids one."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappop, heappush


class CycleError(ValueError):
    """Rows need each other.

    Attributes:
        cycle: Their positions; each needs the one before, the first needs the last.
    """

    def __init__(self, cycle: list[int]) -> None:
        super().__init__("a cycle")
        self.cycle = cycle


def order_of(reads: Sequence[Sequence[int]]) -> Sequence[int]:
    """Positions in the lexicographically smallest order in which each comes behind what it reads.

    This is the order in which ``GraphBuilder`` numbers ops.

    Args:
        reads: Positions that each position reads.

    Raises:
        CycleError: There is no such order.
    """
    if all(max(row, default=-1) < position for position, row in enumerate(reads)):
        return range(len(reads))
    readers: list[list[int]] = [[] for _ in reads]
    missing = [0] * len(reads)
    for position, row in enumerate(reads):
        for read in set(row):
            readers[read].append(position)
            missing[position] += 1
    ready = [position for position, count in enumerate(missing) if count == 0]
    heapify(ready)
    order: list[int] = []
    while ready:
        position = heappop(ready)
        order.append(position)
        for reader in readers[position]:
            missing[reader] -= 1
            if missing[reader] == 0:
                heappush(ready, reader)
    if len(order) < len(reads):
        raise CycleError(_cycle(reads, missing))
    return order


def _cycle(reads: Sequence[Sequence[int]], missing: Sequence[int]) -> list[int]:
    """One cycle among the positions that never became ready."""
    position = next(position for position, count in enumerate(missing) if count > 0)
    seen: dict[int, int] = {}
    path: list[int] = []
    while position not in seen:
        seen[position] = len(path)
        path.append(position)
        position = next(read for read in reads[position] if missing[read] > 0)
    return list(reversed(path[seen[position] :]))
