"""What it costs to move a tensor between an accelerator and the host, for the two analytic objectives.

Both objectives of Tarnawski et al. 2020 ("Efficient algorithms for device placement of DNN graph operators",
section 3) let accelerators talk through the host's memory: a tensor is brought in by the device that reads it
and written out by the device that produced it; CPUs work in that memory and pay nothing.
"""

from __future__ import annotations

from math import gcd

import numpy as np
from numpy.typing import NDArray

from ..graphs import Cluster, Graph

_NS_PER_S = 10**9
#: The longest time that is told apart: two of them can still be added.
_MOST_NS = 2**62


def is_host(cluster: Cluster) -> NDArray[np.bool_]:
    """Whether each device is a CPU, which works in the host's memory, ``[devices] bool``."""
    return np.array([device.kind == "cpu" for device in cluster.devices])


def transfer_ns(tensor_bytes: NDArray[np.int64], latency_ns: int, bytes_per_second: int) -> NDArray[np.int64]:
    """``latency_ns + ceil(bytes * 1e9 / bytes_per_second)``, at most 2**62, ``[tensors] int64`` ns."""
    common = gcd(_NS_PER_S, bytes_per_second)
    factor, divisor = _NS_PER_S // common, bytes_per_second // common
    if int(tensor_bytes.max(initial=0)) * factor + divisor + latency_ns < 2**63:
        return np.minimum(latency_ns + -(-tensor_bytes * factor // divisor), _MOST_NS)
    # Python's integers do not overflow.
    exact = [latency_ns + -(-int(size) * factor // divisor) for size in tensor_bytes]
    return np.array([min(ns, _MOST_NS) for ns in exact], np.int64)


def host_transfer_ns(graph: Graph, cluster: Cluster) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Times of moving each tensor from the host to each device, and from each device to the host.

    The host is the first CPU of the cluster. A cluster without a CPU has one outside, which a device reaches
    over its slowest link to any other device. On CPUs, and with channel ``free``, all times are 0.

    Returns:
        ``(to_device, from_device)``, each ``[tensors, devices] int64`` ns.
    """
    shape = (graph.num_tensors, len(cluster))
    to_device, from_device = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    if cluster.channel == "free":
        return to_device, from_device
    host = is_host(cluster)
    known: dict[tuple[int, int], NDArray[np.int64]] = {}

    def priced(latency_ns: NDArray[np.int64], bytes_per_second: NDArray[np.int64]) -> NDArray[np.int64]:
        link = int(latency_ns.max()), int(bytes_per_second.min())
        if link not in known:
            known[link] = transfer_ns(graph.tensor_bytes, *link)
        return known[link]

    for device in np.flatnonzero(~host):
        peers = np.flatnonzero(host)[:1] if host.any() else np.delete(np.arange(len(cluster)), device)
        if len(peers):
            to_device[:, device] = priced(
                cluster.latency_ns[peers, device], cluster.bytes_per_second[peers, device]
            )
            from_device[:, device] = priced(
                cluster.latency_ns[device, peers], cluster.bytes_per_second[device, peers]
            )
    return to_device, from_device
