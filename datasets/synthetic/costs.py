"""Sizes of tensors and times of ops, and how the times travel with a graph."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ...graphs import Cluster, Graph, RooflineCost, TableCost
from ...graphs.profiles import DeviceProfile
from .family import Topology
from .parameters import Word
from .random_bits import NORMAL_BITS, Int64, Stream

#: What stands for 1 in N(50, 10), which second-hand accounts of REGAL name: a size of 1 MB and a time of 100 us.
#: So a tensor takes about as long over PCIe as an op, and a graph of 200 ops has at most some 10 GB alive.
SIZE_UNIT_BYTES = 10**6
TIME_UNIT_NS = 10**5
MEAN_UNITS = 50
DEVIATION_UNITS = 10
#: Work of an op per nanosecond of its time: times are those of a device of 10 TFLOP/s.
FLOPS_PER_NS = 10**4
_BYTES_PER_NS = SIZE_UNIT_BYTES // TIME_UNIT_NS
#: Noise of the rule "bytes": a factor N(1, 0.1), at least 0.1, in units of 2^-16.
_ONE = 2**NORMAL_BITS
_NOISE_DIVISOR = 10
_LEAST_NOISE = _ONE // 10

#: The class of device that the times are for, see ``TableCost``.
DEVICE_CLASS = "accelerator"

COSTS = Word(
    "costs",
    "bytes",
    "bytes: time of an op in proportion to its input and output bytes, with 10 % noise; normal: N(50, 10)",
    ("bytes", "normal"),
)


def draw_bytes(topology: Topology, stream: Callable[[str], Stream]) -> Int64:
    """Size of each op's output, N(50, 10) MB, ``[ops] int64``."""
    size = _normal_units(stream("sizes"), topology.num_ops, SIZE_UNIT_BYTES)
    if topology.concatenates is not None and topology.concatenates.any():
        joins = topology.concatenates[topology.target]
        size[topology.concatenates] = 0
        np.add.at(size, topology.target[joins], size[topology.source[joins]])
    return size


def draw_times(rule: str, accessed_bytes: Int64, stream: Stream) -> Int64:
    """Time of each op by a rule of :data:`COSTS`, ``[ops] int64`` ns, at least 1.

    Args:
        rule: ``"bytes"`` or ``"normal"``.
        accessed_bytes: Bytes of the inputs and the output of each op, ``[ops] int64``.
        stream: Where random numbers come from.
    """
    ops = len(accessed_bytes)
    if rule == "normal":
        return _normal_units(stream, ops, TIME_UNIT_NS)
    noise = np.maximum(_LEAST_NOISE, _ONE + stream.normal(ops) // _NOISE_DIVISOR)
    scale = _ONE * _BYTES_PER_NS
    time_ns: Int64 = (accessed_bytes * noise + scale // 2) // scale
    return np.maximum(time_ns, 1)


def _normal_units(stream: Stream, count: int, unit: int) -> Int64:
    """N(50, 10) times a unit, rounded, at least 1, ``[count] int64``."""
    spread = (stream.normal(count) * (DEVIATION_UNITS * unit) + _ONE // 2) >> NORMAL_BITS
    figure: Int64 = spread + MEAN_UNITS * unit
    return np.maximum(figure, 1)


@dataclass(frozen=True, eq=False)
class SyntheticCost(TableCost):
    """The drawn times on devices of kind ``"accelerator"`` (such as ``REGAL``), the roofline elsewhere.

    The flops of a synthetic op are its time on a device of 10 TFLOP/s, so both describe the same ops.
    """

    def cost_ns(self, graph: Graph, cluster: Cluster) -> Int64:
        """See ``CostModel``.

        Raises:
            InvalidCostError: The times are of another graph.
        """
        columns = [self._class_cost_ns(graph, profile) for profile in cluster.classes]
        return np.concatenate(columns, axis=1)

    def _class_cost_ns(self, graph: Graph, profile: DeviceProfile) -> Int64:
        alone = Cluster((profile,), np.zeros((1, 1), np.int64), np.zeros((1, 1), np.int64), "free")
        times_given = profile.kind in self.table_ns
        return super().cost_ns(graph, alone) if times_given else RooflineCost().cost_ns(graph, alone)
