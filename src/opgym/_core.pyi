"""
The hot core of opgym: frozen graphs, the event simulator, and search loops.
"""

from typing import Annotated, Any

import numpy
from numpy.typing import NDArray


class Graph:
    """A frozen graph; see opgym.graphs.Graph for the arrays."""

    def __init__(self, input_ptr: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], input_tensor: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], output_ptr: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], tensor_bytes: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], workspace_bytes: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], is_variable: Annotated[NDArray[numpy.bool_], dict(shape=(None,), order='C', device='cpu', writable=False)], update_of: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], is_output: Annotated[NDArray[numpy.bool_], dict(shape=(None,), order='C', device='cpu', writable=False)], elementwise: Annotated[NDArray[numpy.bool_], dict(shape=(None,), order='C', device='cpu', writable=False)], in_place: bool) -> None: ...

    def __getstate__(self) -> tuple[Any, ...]: ...

    def __setstate__(self, state: tuple[Any, ...], /) -> None: ...

    @property
    def num_ops(self) -> int: ...

    @property
    def num_tensors(self) -> int: ...

class Run:
    """
    What one simulated run gave; times in ns, per-device arrays [devices] int64.
    """

    @property
    def makespan_ns(self) -> int: ...

    @property
    def dynamic_peak_bytes(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C')]: ...

    @property
    def resident_bytes(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C')]: ...

    @property
    def busy_ns(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C')]: ...

    @property
    def transfer_ns(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C')]: ...

    @property
    def timeline(self) -> dict[str, NDArray[Any]] | None:
        """Arrays of opgym.graphs.Timeline by name, or None if not asked for."""

class BoundRun:
    """A run whose buffers are bound; not for several threads at once."""

    def __call__(self) -> int:
        """
        Reads device and priority, writes the peaks, returns the makespan in ns.
        """

class Simulator:
    """Simulates one graph on one platform; see opgym.graphs.Simulator."""

    def __init__(self, graph: Graph, class_cost_ns: Annotated[NDArray[numpy.int64], dict(shape=(None, None), order='C', device='cpu', writable=False)], device_class: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], latency_ns: Annotated[NDArray[numpy.int64], dict(shape=(None, None), order='C', device='cpu', writable=False)], bytes_per_second: Annotated[NDArray[numpy.int64], dict(shape=(None, None), order='C', device='cpu', writable=False)], channel: int) -> None: ...

    def run(self, device: NDArray[numpy.uint8], priority: NDArray[numpy.float32] | NDArray[numpy.float64] | None = None, transfer_priority: NDArray[numpy.float64] | None = None, timeline: bool = False) -> Run: ...

    def run_batch(self, device: NDArray[numpy.uint8], priority: NDArray[numpy.float32] | NDArray[numpy.float64] | None, makespan_ns: NDArray[numpy.int64], dynamic_peak_bytes: NDArray[numpy.int64], resident_bytes: NDArray[numpy.int64], threads: int = 1) -> None: ...

    def bind(self, device: NDArray[numpy.uint8], priority: NDArray[numpy.float32] | NDArray[numpy.float64] | None, dynamic_peak_bytes: NDArray[numpy.int64], resident_bytes: NDArray[numpy.int64]) -> BoundRun: ...

    def upward_rank(self, device: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C')]: ...

def peak_of_order(graph: Graph, order: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> int:
    """
    Largest dynamic bytes on one device when ops run in this order; resident bytes are apart.
    """

def peak_of_orders(graph: Graph, orders: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order='C', device='cpu', writable=False)], threads: int = 1) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C')]:
    """peak_of_order of every row of orders, [orders] int64."""

class IncrementalPeak:
    """The peak of an order while single ops move."""

    def __init__(self, graph: Graph, order: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

    @property
    def peak(self) -> int: ...

    @property
    def order(self) -> Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C')]: ...

    def move(self, i: int, j: int) -> bool:
        """
        Moves the op at position i to position j if that is legal; returns whether it did.
        """
