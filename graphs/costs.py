"""Cost models: a graph and a cluster give integer nanoseconds per op and device class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidCostError
from .cluster import Cluster
from .graph import Graph
from .profiles import DeviceProfile


class CostModel(Protocol):
    """Anything that prices ops."""

    def cost_ns(self, graph: Graph, cluster: Cluster) -> NDArray[np.int64]:
        """Time of each op on each of ``cluster.classes``, ``[ops, classes] int64`` ns; 0 for variables."""
        ...


@dataclass(frozen=True)
class RooflineCost:
    """launch overhead + max(flops / peak rate, bytes / bandwidth), the peaks by the op's dtype.

    The dtype is that of the op's first output (of its first input where it has none); a dtype for which the
    profile states no peak uses the float32 rate. An op without work costs its launch. See Williams, Waterman,
    Patterson 2009, "Roofline: an insightful visual performance model for multicore architectures".
    """

    def cost_ns(self, graph: Graph, cluster: Cluster) -> NDArray[np.int64]:
        """See :class:`CostModel`.

        Raises:
            InvalidCostError: A profile states no rates (its times come with the graph), or a time passes
                2^62 ns.
        """
        columns = [self._class_cost_ns(graph, profile) for profile in cluster.classes]
        return np.stack(columns, axis=1)

    @staticmethod
    def _class_cost_ns(graph: Graph, profile: DeviceProfile) -> NDArray[np.int64]:
        if "float32" not in profile.peak_flops_per_s or profile.memory_bytes_per_s <= 0:
            raise InvalidCostError(
                f"device profile {profile.name!r} states no compute rates: its times come with the graph; "
                "use a graph that brings a cost table, or another profile"
            )
        float32 = profile.peak_flops_per_s["float32"]
        rate_by_dtype = np.array(
            [profile.peak_flops_per_s.get(d, float32) for d in graph.dtypes] or [float32]
        )
        rate = rate_by_dtype[_compute_dtype(graph)] * profile.compute_efficiency
        compute_ns = graph.op_flops * 1e9 / rate
        memory_ns = graph.op_accessed_bytes * 1e9 / (profile.memory_bytes_per_s * profile.memory_efficiency)
        work_ns = np.ceil(np.maximum(compute_ns, memory_ns))
        if (work_ns > 2.0**62).any():
            op = int(np.argmax(work_ns))
            raise InvalidCostError(
                f"op {op} {graph.op_names[op]!r} would take {work_ns[op]:.3g} ns on {profile.name}"
            )
        total: NDArray[np.int64] = work_ns.astype(np.int64) + profile.launch_overhead_ns
        total[graph.is_variable] = 0
        return total


def _compute_dtype(graph: Graph) -> NDArray[np.int64]:
    """Position in ``graph.dtypes`` of the dtype each op computes in, ``[ops]``; 0 where it has no tensors."""
    tensor = np.full(graph.num_ops, -1, np.int64)
    reads = np.diff(graph.input_ptr) > 0
    tensor[reads] = graph.input_tensor[graph.input_ptr[:-1][reads]]
    writes = np.diff(graph.output_ptr) > 0
    tensor[writes] = graph.output_ptr[:-1][writes]
    return np.where(tensor >= 0, graph.tensor_dtype[tensor] if graph.num_tensors else 0, 0).astype(np.int64)


@dataclass(frozen=True, eq=False)
class TableCost:
    """Measured or given times.

    Attributes:
        table_ns: For each device class (the name of a profile, or a kind such as ``"gpu"``), times of the
            graph's ops, ``[ops] int64`` ns. A profile's own name goes before its kind.
    """

    table_ns: Mapping[str, NDArray[np.int64]]

    def cost_ns(self, graph: Graph, cluster: Cluster) -> NDArray[np.int64]:
        """See :class:`CostModel`.

        Raises:
            InvalidCostError: A class is missing, a length is wrong, a time is negative or no number.
        """
        columns = []
        for profile in cluster.classes:
            name = profile.name if profile.name in self.table_ns else profile.kind
            if name not in self.table_ns:
                raise InvalidCostError(
                    f"the cost table has no column for {profile.name!r} or {profile.kind!r}; "
                    f"it has {', '.join(sorted(self.table_ns))}"
                )
            column = np.asarray(self.table_ns[name])
            if column.shape != (graph.num_ops,):
                raise InvalidCostError(
                    f"cost column {name!r} has shape {column.shape}; expected ({graph.num_ops},)"
                )
            if column.dtype.kind not in "iuf":
                raise InvalidCostError(
                    f"cost column {name!r} has dtype {column.dtype}; expected numbers of nanoseconds"
                )
            # not (0 <= x < 2^63) is true of NaN too.
            bad = ~((column >= 0) & (column < 2.0**63) & (np.floor(column) == column))
            if bad.any():
                op = int(np.argmax(bad))
                raise InvalidCostError(
                    f"cost column {name!r}: op {op} {graph.op_names[op]!r} has {column[op]} ns; "
                    "expected a whole number, 0 or more and below 2^63"
                )
            columns.append(column.astype(np.int64))
        total = np.stack(columns, axis=1)
        total[graph.is_variable] = 0
        return total
