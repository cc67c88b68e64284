"""Orders of nodes."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence

from ....errors import ImportFailedError


def topological_order(
    parents: Sequence[Sequence[int]], name: Callable[[int], str], keys: Sequence[int] | None = None
) -> list[int]:
    """The lexicographically smallest order in which parents come first.

    Args:
        parents: Parents of each node; one may be listed twice.
        name: Names a node, for the message.
        keys: What the order is smallest in; the indices by default.

    Raises:
        ImportFailedError: There is a cycle; the message lists one.
    """
    keys = range(len(parents)) if keys is None else keys
    children: list[list[int]] = [[] for _ in parents]
    missing = [0] * len(parents)
    for v, above in enumerate(parents):
        distinct = set(above)
        missing[v] = len(distinct)
        for u in distinct:
            children[u].append(v)
    ready = [(keys[v], v) for v, count in enumerate(missing) if count == 0]
    heapq.heapify(ready)
    order: list[int] = []
    while ready:
        _, v = heapq.heappop(ready)
        order.append(v)
        for child in children[v]:
            missing[child] -= 1
            if missing[child] == 0:
                heapq.heappush(ready, (keys[child], child))
    if len(order) < len(parents):
        raise ImportFailedError(f"the model has a cycle: {_describe_cycle(parents, missing, name)}")
    return order


def _describe_cycle(
    parents: Sequence[Sequence[int]], missing: Sequence[int], name: Callable[[int], str]
) -> str:
    """Names one cycle among the nodes that never became ready, in the direction of the data."""
    v = next(v for v, count in enumerate(missing) if count > 0)
    seen: dict[int, int] = {}
    path: list[int] = []
    while v not in seen:  # every stuck node has a stuck parent: walking up must close a cycle
        seen[v] = len(path)
        path.append(v)
        v = next(u for u in parents[v] if missing[u] > 0)
    cycle = list(reversed(path[seen[v] :]))
    shown = [name(u) for u in [*cycle, cycle[0]]]
    return " -> ".join(
        shown if len(shown) <= 12 else [*shown[:6], f"... {len(shown) - 12} more ...", *shown[-6:]]
    )
