"""Latency of a single sample on accelerators that never overlap transfers with computation."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..outcome import Outcome
from .host_transfers import is_host
from .stage_memory import resident_bytes

if TYPE_CHECKING:
    from .placement import Placement, PlacementProblem

_NS_PER_MS = 1e6


def latency_ms(problem: PlacementProblem, solution: Placement) -> Outcome:
    """Judges a legal placement by the time of one sample (Tarnawski et al. 2020, section 4).

    The ops of an accelerator are cut into pieces: the piece of an op is 1 + the most times that a path to it
    leaves the accelerator and comes back. A piece starts when everything it reads from outside is there, and
    takes the time to bring those tensors in, its computation, and the time to write out what others read.
    Each op of a CPU is a piece of its own that pays no transfer. The value is the last end.

    Where the contracted pieces wait for one another in a cycle, which contiguous splits never do, they are
    cut further: at every change of device along a path. Pieces of one accelerator run one after the other, in
    the topological order of all pieces that takes the piece with the lowest op first.

    Memory only warns, as in the published evaluation: an overfull accelerator leaves the verdict at ``ok``,
    and ``details["over_capacity"]`` tells the largest share of bytes to capacity where it is above 1.
    """
    graph = problem.graph
    device = np.asarray(solution.device)
    producer, consumer, tensor = graph.edges
    piece = _pieces(device, is_host(problem.cluster), producer, consumer)
    pieces = int(piece.max()) + 1
    piece_device = np.zeros(pieces, np.int64)
    piece_device[piece] = device

    duration_ns = np.zeros(pieces, np.int64)
    np.add.at(duration_ns, piece, problem.cost_ns[np.arange(graph.num_ops), device])
    crosses = piece[producer] != piece[consumer]
    arrivals = np.unique(np.stack([piece[consumer[crosses]], tensor[crosses]], axis=1), axis=0)
    np.add.at(duration_ns, arrivals[:, 0], problem.to_device_ns[arrivals[:, 1], piece_device[arrivals[:, 0]]])
    departures = np.unique(tensor[crosses])
    sender = piece[graph.tensor_producer[departures]]
    np.add.at(duration_ns, sender, problem.from_device_ns[departures, piece_device[sender]])

    # Pieces are numbered along edges, and those of one accelerator in the order in which it runs them.
    end_ns = duration_ns.tolist()
    waits: list[list[int]] = [[] for _ in range(pieces)]
    for before, after in np.unique(
        np.stack([piece[producer[crosses]], piece[consumer[crosses]]], axis=1), axis=0
    ).tolist():
        waits[after].append(before)
    for after, before in _previous_on_device(piece_device, is_host(problem.cluster)):
        waits[after].append(before)
    for number, before in enumerate(waits):
        end_ns[number] += max((end_ns[b] for b in before), default=0)

    memory = resident_bytes(problem, device)
    details: dict[str, Any] = {"pieces": pieces, "peak_bytes": memory.tolist()}
    fill = float((memory / problem.cluster.capacity_bytes).max())
    if fill > 1:
        details["over_capacity"] = fill
    return Outcome(max(end_ns) / _NS_PER_MS, problem.objective.unit, details=details)


def _previous_on_device(
    piece_device: NDArray[np.int64], host: NDArray[np.bool_]
) -> Iterator[tuple[int, int]]:
    """Each piece of an accelerator with the one before it there."""
    last: dict[int, int] = {}
    for number, device in enumerate(piece_device.tolist()):
        if not host[device]:
            if device in last:
                yield number, last[device]
            last[device] = number


def _pieces(
    device: NDArray[Any], host: NDArray[np.bool_], producer: NDArray[np.int32], consumer: NDArray[np.int32]
) -> NDArray[np.int64]:
    """Piece of each op, ``[ops] int64``; numbered so that every edge leads to the same or a higher piece."""
    ops = len(device)
    parents: list[list[int]] = [[] for _ in range(ops)]
    for u, v in zip(producer.tolist(), consumer.tolist(), strict=True):
        parents[v].append(u)
    visit = _visits(device, host, parents)
    on_host = host[device]
    label = np.where(on_host, len(host) * (visit.max() + 1) + np.arange(ops), visit * len(host) + device)
    piece = _numbered_by_first_op(label)
    order = _topological_order(piece[producer], piece[consumer], int(piece.max()) + 1)
    if order is None:
        piece = _cut_cycles(piece, device, host, producer, consumer, parents)
        order = _topological_order(piece[producer], piece[consumer], int(piece.max()) + 1)
        assert order is not None  # _cut_cycles says why
    position = np.empty(len(order), np.int64)
    position[order] = np.arange(len(order))
    return position[piece]


def _numbered_by_first_op(label: NDArray[np.int64]) -> NDArray[np.int64]:
    """The same partition, its parts numbered from 0 in order of their first op."""
    _, first, inverse = np.unique(label, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[inverse]


def _visits(
    device: NDArray[Any], host: NDArray[np.bool_], parents: Sequence[Sequence[int]]
) -> NDArray[np.int64]:
    """In how many separate visits a path to an op has been on its accelerator, at most; 0 on CPUs, ``[ops]``."""
    home = device.tolist()
    visit = [0] * len(home)
    for d in np.unique(device[~host[device]]).tolist():
        visits = [0] * len(home)  # to this accelerator, on the way to each op
        for v, before in enumerate(parents):
            most = 0
            if home[v] == d:
                for u in before:
                    most = max(most, visits[u] if home[u] == d else visits[u] + 1)
                visits[v] = visit[v] = max(most, 1)
            elif before:
                visits[v] = max([visits[u] for u in before])
    return np.array(visit, np.int64)


def _cut_cycles(
    piece: NDArray[np.int64],
    device: NDArray[Any],
    host: NDArray[np.bool_],
    producer: NDArray[np.int32],
    consumer: NDArray[np.int32],
    parents: Sequence[Sequence[int]],
) -> NDArray[np.int64]:
    """Cuts the pieces that wait for one another at every change of device along a path.

    An edge between two devices leads to more changes and an edge within one to no fewer, so no cycle remains
    among the parts of one strongly connected set of pieces; between such sets there was none.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    home = device.tolist()
    changes = [0] * len(home)
    for v, before in enumerate(parents):
        changes[v] = max((changes[u] + (home[u] != home[v]) for u in before), default=0)
    count = int(piece.max()) + 1
    edges = coo_array(
        (np.ones(len(producer), np.int8), (piece[producer], piece[consumer])), shape=(count, count)
    )
    component = connected_components(edges, directed=True, connection="strong")[1]
    cyclic = np.bincount(component, minlength=count)[component] > 1
    part = np.where(cyclic[piece] & ~host[device], 1 + np.array(changes), 0)
    keys = np.stack([component[piece], np.where(part > 0, device, piece), part], axis=1)
    return _numbered_by_first_op(np.unique(keys, axis=0, return_inverse=True)[1].reshape(-1))


def _topological_order(before: NDArray[np.int64], after: NDArray[np.int64], count: int) -> list[int] | None:
    """The lexicographically smallest order along edges between different nodes; ``None`` for a cycle."""
    children: list[list[int]] = [[] for _ in range(count)]
    missing = [0] * count
    for u, v in zip(before.tolist(), after.tolist(), strict=True):
        if u != v:
            children[u].append(v)
            missing[v] += 1
    ready = [v for v, edges in enumerate(missing) if edges == 0]  # ascending, so a heap
    order = []
    while ready:
        u = heapq.heappop(ready)
        order.append(u)
        for v in children[u]:
            missing[v] -= 1
            if missing[v] == 0:
                heapq.heappush(ready, v)
    return order if len(order) == count else None
