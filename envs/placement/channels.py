"""How long a transfer takes, and what it occupies: the channels of a cluster's model, laid out for the core."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...graphs import Cluster

Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]

_MOST = 2**63 - 1


@dataclass(frozen=True)
class Channels:
    """How long a transfer takes, and what it occupies.

    Attributes:
        duration_ns: Durations over each kind of link, ``[sizes, link kinds]``; a size is that of some slots.
        slot_size: Row of ``duration_ns`` of each slot, ``[slots]``.
        link: Kind of link from a device to another, ``[devices, devices]``; diagonal unused.
        send: First resource that a transfer occupies, ``[devices, devices]``; row = source.
        receive: Second resource (the same one where the model has only one), ``[devices, devices]``.
        num_resources: Number of resources; 0 where transfers are free.
    """

    duration_ns: Int64
    slot_size: Int32
    link: Int32
    send: Int32
    receive: Int32
    num_resources: int


def build_channels(cluster: Cluster, slot_bytes: list[int]) -> Channels:
    """Prices the transfer of every slot over every kind of link of a cluster."""
    n = len(cluster)
    own = np.broadcast_to(np.arange(n, dtype=np.int32)[:, None], (n, n))  # index of the source
    if cluster.channel == "free":
        none = np.zeros((n, n), np.int32)
        return Channels(np.zeros((1, 1), np.int64), np.zeros(len(slot_bytes), np.int32), none, none, none, 0)
    latency, rate = cluster.latency_ns.tolist(), cluster.bytes_per_second.tolist()
    kinds: dict[tuple[int, int], int] = {}
    link = [
        [0 if a == b else kinds.setdefault((latency[a][b], rate[a][b]), len(kinds)) for b in range(n)]
        for a in range(n)
    ]
    kinds = kinds or {(0, 1): 0}  # one device: nothing is ever sent
    sizes: dict[int, int] = {}  # most tensors share a handful of sizes
    slot_size = [sizes.setdefault(size, len(sizes)) for size in slot_bytes]
    # Exact and beyond 64 bits, as sizes of terabytes times 1e9 are; the core refuses what is cut off here.
    durations = [
        min(wait + -(-size * 10**9 // per_second), _MOST) for size in sizes for wait, per_second in kinds
    ]
    match cluster.channel:
        case "port":
            send, receive, resources = own, n + own.T, 2 * n
        case "send":
            send, receive, resources = own, own, n
        case _:
            pair = np.arange(n * n, dtype=np.int32).reshape(n, n)
            send, receive, resources = pair, pair, n * n
    return Channels(
        np.array(durations, np.int64).reshape(len(sizes), len(kinds)),
        np.array(slot_size, np.int32),
        np.array(link, np.int32),
        send,
        receive,
        resources,
    )
