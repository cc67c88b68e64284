"""The latency objective once more, op by op and with plain sets: for the checker."""

from __future__ import annotations

from collections.abc import Hashable

import networkx

from .placement import PlacementProblem


def plain_latency_ns(problem: PlacementProblem, device: list[int]) -> tuple[int, list[int]]:
    """Latency in ns and resident bytes per device; see :func:`~opgym.problems.latency.latency_ms`."""
    graph = problem.graph
    host = [profile.kind == "cpu" for profile in problem.cluster.devices]
    parents = [
        sorted({int(graph.tensor_producer[t]) for t in graph.inputs(op).tolist()} - {-1})
        for op in range(graph.num_ops)
    ]
    piece = _pieces(device, host, parents)
    end = _ends(problem, device, host, parents, piece)
    kept: list[set[int]] = [set() for _ in host]
    for op, where in enumerate(device):
        kept[where] |= {t for t in graph.inputs(op).tolist() if graph.tensor_producer[t] < 0}
        if graph.is_variable[op]:
            kept[where] |= set(graph.outputs(op))
    return max(end.values()), [sum(int(graph.tensor_bytes[t]) for t in tensors) for tensors in kept]


def _ends(
    problem: PlacementProblem,
    device: list[int],
    host: list[bool],
    parents: list[list[int]],
    piece: list[Hashable],
) -> dict[Hashable, int]:
    """End of each piece in ns."""
    graph = problem.graph
    members: dict[Hashable, list[int]] = {}
    for op, name in enumerate(piece):
        members.setdefault(name, []).append(op)
    waits = {name: {piece[u] for op in ops for u in parents[op]} - {name} for name, ops in members.items()}

    order: list[Hashable] = []
    left = list(members)  # in order of first op
    while left:
        name = next(name for name in left if waits[name].issubset(order))
        order.append(name)
        left.remove(name)

    end: dict[Hashable, int] = {}
    busy_until = [0] * len(host)
    for name in order:
        ops = set(members[name])
        where = device[members[name][0]]
        start = max((end[other] for other in waits[name]), default=0)
        if not host[where]:
            start = max(start, busy_until[where])
        duration = sum(int(problem.cost_ns[op, where]) for op in ops)
        for tensor in {t for op in ops for t in graph.inputs(op).tolist()}:
            if int(graph.tensor_producer[tensor]) not in {-1, *ops}:
                duration += int(problem.to_device_ns[tensor, where])
        for tensor in (t for op in ops for t in graph.outputs(op)):
            if set(graph.consumers(tensor).tolist()) - ops:
                duration += int(problem.from_device_ns[tensor, where])
        end[name] = busy_until[where] = start + duration
    return end


def _pieces(device: list[int], host: list[bool], parents: list[list[int]]) -> list[Hashable]:
    """A name for the piece of each op."""
    # Of each device: in how many separate runs a path to each op has been there, at most.
    runs = {d: [0] * len(device) for d in set(device)}
    for d, count in runs.items():
        for op, before in enumerate(parents):
            if device[op] == d:
                count[op] = max([1, *(count[u] + (device[u] != d) for u in before)])
            else:
                count[op] = max((count[u] for u in before), default=0)
    piece: list[Hashable] = [
        ("op", op) if host[d] else ("run", d, runs[d][op]) for op, d in enumerate(device)
    ]

    waits = networkx.DiGraph()
    waits.add_nodes_from(piece)
    waits.add_edges_from((piece[u], piece[op]) for op, before in enumerate(parents) for u in before)
    waits.remove_edges_from(networkx.selfloop_edges(waits))
    changes = [0] * len(device)
    for op, before in enumerate(parents):
        changes[op] = max((changes[u] + (device[u] != device[op]) for u in before), default=0)
    cycles = [names for names in networkx.strongly_connected_components(waits) if len(names) > 1]
    for number, names in enumerate(cycles):
        piece = [
            ("part", number, device[op], changes[op]) if name in names and not host[device[op]] else name
            for op, name in enumerate(piece)
        ]
    return piece
