"""The front door of the C++ simulator: semantics in docs/simulator.md."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _core
from ..errors import InvalidCostError, InvalidSolutionError
from .cluster import CHANNELS, Cluster
from .core_graph import core_graph, thread_count
from .costs import CostModel, RooflineCost
from .graph import Graph

Int64 = NDArray[np.int64]
Int32 = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Timeline:
    """When and where everything happened in one run.

    Attributes:
        op_device: Device of each op, ``[ops] uint8``.
        op_start_ns: Start of each op, ``[ops] int64``; -1 for variable ops, which never run.
        op_end_ns: End of each op, ``[ops] int64``; -1 for variable ops.
        transfer_tensor: Tensor of each transfer, ``[transfers] int32``; sorted by start, tensor, destination.
        transfer_source: Device it leaves, ``[transfers] int32``.
        transfer_destination: Device it reaches, ``[transfers] int32``.
        transfer_start_ns: ``[transfers] int64``.
        transfer_end_ns: ``[transfers] int64``.
        memory_time_ns: Time of each sample, ``[samples] int64``, ascending. A sample is taken after the
            allocations of a round, for each device whose live bytes differ from its sample before (at first:
            from its resident bytes); several rounds may share one instant.
        memory_device: Device of each sample, ``[samples] int32``.
        memory_bytes: Live bytes, resident ones included, ``[samples] int64``.
    """

    op_device: NDArray[np.uint8]
    op_start_ns: Int64
    op_end_ns: Int64
    transfer_tensor: Int32
    transfer_source: Int32
    transfer_destination: Int32
    transfer_start_ns: Int64
    transfer_end_ns: Int64
    memory_time_ns: Int64
    memory_device: Int32
    memory_bytes: Int64


@dataclass(frozen=True, eq=False)
class Simulation:
    """The result of one run.

    Attributes:
        makespan_ns: Last end of an op or a transfer; 0 if there is none.
        dynamic_peak_bytes: Largest sum of live bytes, resident ones apart, ``[devices] int64``.
        resident_bytes: Bytes held from start to end, ``[devices] int64``.
        busy_ns: Time in which each device ran ops, ``[devices] int64``.
        transfer_ns: Sum of the durations of the transfers that each device sent, ``[devices] int64``.
        timeline: Every start and end, if asked for.
    """

    makespan_ns: int
    dynamic_peak_bytes: Int64
    resident_bytes: Int64
    busy_ns: Int64
    transfer_ns: Int64
    timeline: Timeline | None = None

    @property
    def peak_bytes(self) -> Int64:
        """Largest sum of live bytes with the resident ones, ``[devices] int64``."""
        return self.resident_bytes + self.dynamic_peak_bytes


@dataclass(frozen=True, eq=False)
class BatchSimulation:
    """The results of a batch of candidates; see :class:`Simulation` for each figure.

    Attributes:
        makespan_ns: ``[candidates] int64``.
        dynamic_peak_bytes: ``[candidates, devices] int64``.
        resident_bytes: ``[candidates, devices] int64``.
    """

    makespan_ns: Int64
    dynamic_peak_bytes: Int64
    resident_bytes: Int64

    @property
    def peak_bytes(self) -> Int64:
        """Largest sum of live bytes with the resident ones, ``[candidates, devices] int64``."""
        return self.resident_bytes + self.dynamic_peak_bytes


@dataclass(frozen=True, eq=False)
class BoundRun:
    """A run whose buffers are bound: write into ``device`` and ``priority``, call, read the peaks.

    A call takes no arguments and allocates nothing; it costs about 0.1 us beyond the run itself. One object
    must not be called by two threads at once.

    Attributes:
        run: Simulates what is now in the buffers and returns the makespan in ns. Raises ValueError for a
            device out of range or a priority that is NaN.
        device: ``[ops] uint8``, read by every call.
        priority: ``[ops] float32 or float64``, read by every call; ``None``: upward rank.
        dynamic_peak_bytes: ``[devices] int64``, written by every call.
        resident_bytes: ``[devices] int64``, written by every call.
    """

    run: Callable[[], int]
    device: NDArray[np.uint8]
    priority: NDArray[Any] | None
    dynamic_peak_bytes: Int64
    resident_bytes: Int64


class Simulator:
    """Simulates placements of one graph on one cluster; see docs/simulator.md for what a run means.

    All methods may be called from several threads. A simulator pickles and copies as its graph, cluster and
    costs.

    Args:
        graph: The computation graph.
        cluster: Its devices and links.
        costs: A cost model (roofline by default), or times of each op on each class of ``cluster.classes``,
            ``[ops, classes] int`` ns.

    Raises:
        InvalidCostError: A cost is negative, has the wrong shape or no integer dtype, or all times together
            could pass 2^63 - 1 ns.
        InvalidGraphError: All tensors together pass 2^63 - 1 bytes.

    Example:
        >>> from opgym.graphs import Cluster, GraphBuilder, Simulator
        >>> b = GraphBuilder(level="example")
        >>> x, y = b.tensor(bytes=1000), b.tensor(bytes=10, is_output=True)
        >>> _ = b.op("MatMul", outputs=[x], flops=10**9), b.op("Relu", inputs=[x], outputs=[y])
        >>> run = Simulator(b.build(), Cluster.parse("2xP100")).run([0, 1])
        >>> run.dynamic_peak_bytes.tolist()
        [1000, 1010]
    """

    def __init__(self, graph: Graph, cluster: Cluster, costs: CostModel | ArrayLike | None = None) -> None:
        self.graph = graph
        self.cluster = cluster
        self.class_cost_ns = _class_costs(graph, cluster, RooflineCost() if costs is None else costs)
        frozen = core_graph(graph)
        try:
            #: The simulator in the core, for other parts of it.
            self.core = _core.Simulator(
                frozen,
                self.class_cost_ns,
                cluster.device_class,
                cluster.latency_ns,
                cluster.bytes_per_second,
                CHANNELS.index(cluster.channel),
            )
        except ValueError as error:
            raise InvalidCostError(f"graph {graph.name!r} on {cluster.name!r}: {error}") from None

    def __reduce__(self) -> tuple[Any, ...]:
        return Simulator, (self.graph, self.cluster, self.class_cost_ns)

    def __repr__(self) -> str:
        return f"Simulator({self.graph!r}, {self.cluster!r})"

    def run(
        self,
        device: ArrayLike,
        priority: ArrayLike | None = None,
        *,
        transfer_priority: ArrayLike | None = None,
        timeline: bool = False,
    ) -> Simulation:
        """Runs one candidate.

        Args:
            device: Device of each op, ``[ops] int``.
            priority: Priority of each op, higher first, ties by lower index, ``[ops] float32 or float64``;
                ``None``: upward rank under the placement.
            transfer_priority: Priority of each (tensor, destination), higher first,
                ``[tensors, devices] float64``; ``None``: the rank of the best-ranked consumer there.
            timeline: Whether to record every start and end (slower).

        Raises:
            InvalidSolutionError: A wrong length, a device out of range, a priority that is NaN.
        """
        devices = self._devices(device, (self.graph.num_ops,))
        priorities = self._priorities(priority, ((self.graph.num_ops,),))
        transfers = None
        if transfer_priority is not None:
            transfers = _floats(transfer_priority, "transfer_priority", keep_float32=False)
            _expect(transfers.shape, ((self.graph.num_tensors, len(self.cluster)),), "transfer_priority")
        try:
            run = self.core.run(devices, priorities, transfers, timeline)
        except ValueError as error:
            raise InvalidSolutionError(str(error)) from None
        arrays = run.timeline
        return Simulation(
            run.makespan_ns,
            run.dynamic_peak_bytes,
            run.resident_bytes,
            run.busy_ns,
            run.transfer_ns,
            None if arrays is None else Timeline(op_device=devices, **arrays),
        )

    def run_batch(
        self, device: ArrayLike, priority: ArrayLike | None = None, *, threads: int = 1
    ) -> BatchSimulation:
        """Runs many candidates, without holding Python's global lock.

        Args:
            device: ``[candidates, ops] int``.
            priority: ``[candidates, ops]``, or ``[ops]`` for all of them, float32 or float64; ``None``:
                upward rank under each placement.
            threads: How many threads share the work; 0: one per processor. The results do not depend on it.

        Raises:
            InvalidSolutionError: As for :meth:`run`; no candidate is run then.
        """
        return self._run_batch(np.asarray(device), priority, threads)

    def _run_batch(
        self,
        given: NDArray[Any],
        priority: ArrayLike | None,
        threads: int,
        busy_ns: Int64 | None = None,
        transfer_ns: Int64 | None = None,
    ) -> BatchSimulation:
        ops = self.graph.num_ops
        size = given.shape[0] if given.ndim == 2 else 0
        devices = self._devices(given, (size, ops))
        priorities = self._priorities(priority, ((ops,), (size, ops)))
        makespan_ns = np.empty(size, np.int64)
        dynamic_peak_bytes = np.empty((size, len(self.cluster)), np.int64)
        resident_bytes = np.empty((size, len(self.cluster)), np.int64)
        try:
            self.core.run_batch(
                devices,
                priorities,
                makespan_ns,
                dynamic_peak_bytes,
                resident_bytes,
                thread_count(threads),
                busy_ns,
                transfer_ns,
            )
        except ValueError as error:
            raise InvalidSolutionError(str(error)) from None
        return BatchSimulation(makespan_ns, dynamic_peak_bytes, resident_bytes)

    def run_each(
        self, device: ArrayLike, priority: ArrayLike | None = None, *, threads: int = 1
    ) -> list[Simulation]:
        """Runs many candidates as :meth:`run_batch` does, and says of each what :meth:`run` says.

        Args:
            device: ``[candidates, ops] int``.
            priority: As for :meth:`run_batch`.
            threads: As for :meth:`run_batch`.

        Raises:
            InvalidSolutionError: As for :meth:`run`; no candidate is run then.
        """
        given = np.asarray(device)
        shape = (given.shape[0] if given.ndim == 2 else 0, len(self.cluster))
        busy_ns, transfer_ns = np.empty(shape, np.int64), np.empty(shape, np.int64)
        batch = self._run_batch(given, priority, threads, busy_ns, transfer_ns)
        rows = zip(
            batch.makespan_ns.tolist(),
            batch.dynamic_peak_bytes,
            batch.resident_bytes,
            busy_ns,
            transfer_ns,
            strict=True,
        )
        return [Simulation(*row) for row in rows]

    def bind(self, device: NDArray[np.uint8], priority: NDArray[Any] | None = None) -> BoundRun:
        """Binds buffers that the caller then changes in place; for loops where the call itself counts.

        Args:
            device: ``[ops] uint8``, C-contiguous; not copied.
            priority: ``[ops] float32 or float64``, C-contiguous; not copied. ``None``: upward rank.

        Raises:
            InvalidSolutionError: A wrong dtype, length or layout.
        """
        dynamic_peak_bytes = np.zeros(len(self.cluster), np.int64)
        resident_bytes = np.zeros(len(self.cluster), np.int64)
        _expect(np.shape(device), ((self.graph.num_ops,),), "device")
        if priority is not None:
            _expect(np.shape(priority), ((self.graph.num_ops,),), "priority")
        try:
            core = self.core.bind(device, priority, dynamic_peak_bytes, resident_bytes)
        except TypeError:
            raise InvalidSolutionError(
                "bound buffers must be C-contiguous arrays: device uint8, priority float32 or float64"
            ) from None
        return BoundRun(core, device, priority, dynamic_peak_bytes, resident_bytes)

    def upward_rank(self, device: ArrayLike) -> Int64:
        """Length of the longest path from each op to an end under a placement, ``[ops] int64`` ns.

        The op's own time and the transfers between devices count (Topcuoglu, Hariri, Wu 2002, section 4, with
        the times of the placement instead of averages).

        Args:
            device: Device of each op, ``[ops] int``.

        Raises:
            InvalidSolutionError: A wrong length, a device out of range.
        """
        return self.core.upward_rank(self._devices(device, (self.graph.num_ops,)))

    def _devices(self, given: ArrayLike, shape: tuple[int, ...]) -> NDArray[np.uint8]:
        """A fresh or untouched ``uint8`` array of that shape, every entry a device."""
        array = np.asarray(given)
        _expect(array.shape, (shape,), "device")
        if array.dtype == np.uint8:
            return np.ascontiguousarray(array)  # the core checks the range
        if not np.issubdtype(array.dtype, np.integer):
            raise InvalidSolutionError(f"device has dtype {array.dtype}; expected integers")
        count = len(self.cluster)
        outside = (array < 0) | (array >= count)
        if outside.any():
            where = tuple(int(i) for i in np.argwhere(outside)[0])
            raise InvalidSolutionError(
                f"op {where[-1]} is on device {array[where]}; devices are 0 to {count - 1}"
            )
        return np.ascontiguousarray(array, np.uint8)

    @staticmethod
    def _priorities(given: ArrayLike | None, shapes: tuple[tuple[int, ...], ...]) -> NDArray[Any] | None:
        if given is None:
            return None
        array = _floats(given, "priority", keep_float32=True)
        _expect(array.shape, shapes, "priority")
        return array


def _class_costs(graph: Graph, cluster: Cluster, costs: CostModel | ArrayLike) -> Int64:
    table = np.asarray(costs.cost_ns(graph, cluster) if hasattr(costs, "cost_ns") else costs)
    shape = (graph.num_ops, len(cluster.classes))
    if table.shape != shape:
        raise InvalidCostError(
            f"costs have shape {table.shape}; expected {shape}: ops, device classes of {cluster.name!r}"
        )
    if not np.issubdtype(table.dtype, np.integer):
        raise InvalidCostError(f"costs have dtype {table.dtype}; expected integers (nanoseconds)")
    if (table < 0).any():
        op, which = (int(i) for i in np.argwhere(table < 0)[0])
        raise InvalidCostError(
            f"op {op} {graph.op_names[op]!r} costs {table[op, which]} ns on {cluster.classes[which].name}; "
            "times are 0 or more"
        )
    if (table > np.iinfo(np.int64).max).any():
        raise InvalidCostError("a cost passes 2^63 - 1 ns")
    own = np.array(table, np.int64, order="C")
    own.setflags(write=False)
    return own


def _floats(given: ArrayLike, what: str, *, keep_float32: bool) -> NDArray[Any]:
    array = np.asarray(given)
    if keep_float32 and array.dtype == np.float32:
        return np.ascontiguousarray(array)
    if array.dtype.kind not in "fiub":
        raise InvalidSolutionError(f"{what} has dtype {array.dtype}; expected numbers")
    return np.ascontiguousarray(array, np.float64)


def _expect(shape: tuple[int, ...], allowed: tuple[tuple[int, ...], ...], what: str) -> None:
    if shape not in allowed:
        expected = " or ".join(str(s) for s in allowed)
        raise InvalidSolutionError(f"{what} has shape {shape}; expected {expected}")
