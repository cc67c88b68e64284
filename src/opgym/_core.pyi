"""
The hot core of opgym: frozen graphs, the event simulator, and search loops.
"""

from collections.abc import Sequence
from typing import Annotated, Any

import numpy
from numpy.typing import NDArray


class Benchmark:
    """
    Times the core on a generated graph; every method returns thread CPU time in ns per op, and that of a first-in-first-out topological sort in the same moments.
    """

    def __init__(self, ops: int, seconds: float) -> None: ...

    def stream(self) -> tuple[float, float]:
        """Reading the consumers of every op once, row by row."""

    def rank(self) -> tuple[float, float]:
        """Ranking float32 priorities."""

    def peak_of_orders(self, batch: bool) -> tuple[float, float]:
        """Peak memory of given orders."""

    def simulate(self, devices: int, channel: int, clustered: bool) -> tuple[float, float]:
        """One evaluation with memory, ranking included."""

class Graph:
    """A frozen graph; see opgym.graphs.Graph for the arrays."""

    def __init__(self, input_ptr: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], input_tensor: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], output_ptr: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], tensor_bytes: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], workspace_bytes: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], is_variable: Annotated[NDArray[numpy.bool_], dict(shape=(None,), order='C', device='cpu', writable=False)], update_of: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], is_output: Annotated[NDArray[numpy.bool_], dict(shape=(None,), order='C', device='cpu', writable=False)], elementwise: Annotated[NDArray[numpy.bool_], dict(shape=(None,), order='C', device='cpu', writable=False)], in_place: bool) -> None: ...

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
    def op_order(self) -> Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C')]:
        """
        Ops that are no variables in the order in which they started; empty without a timeline.
        """

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

    def run_batch(self, device: NDArray[numpy.uint8], priority: NDArray[numpy.float32] | NDArray[numpy.float64] | None, makespan_ns: NDArray[numpy.int64], dynamic_peak_bytes: NDArray[numpy.int64], resident_bytes: NDArray[numpy.int64], threads: int = 1, busy_ns: NDArray[numpy.int64] | None = None, transfer_ns: NDArray[numpy.int64] | None = None) -> None: ...

    def bind(self, device: NDArray[numpy.uint8], priority: NDArray[numpy.float32] | NDArray[numpy.float64] | None, dynamic_peak_bytes: NDArray[numpy.int64], resident_bytes: NDArray[numpy.int64]) -> BoundRun: ...

    def upward_rank(self, device: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C')]: ...

class OrderPeak:
    """Evaluates orders of one graph; not for two threads at once."""

    def __init__(self, graph: Graph) -> None: ...

    def peak(self, order: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> int:
        """
        Largest dynamic bytes on one device when ops run in this order; resident bytes are apart.
        """

def peak_of_orders(graph: Graph, orders: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order='C', device='cpu', writable=False)], threads: int = 1) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C')]:
    """OrderPeak.peak of every row of orders, [orders] int64."""

def cut_bytes(graph: Graph) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C')]:
    """
    Bytes that are live while each op runs in every order, [ops] int64; 0 for variables.
    """

def end_bytes(graph: Graph) -> int:
    """Bytes that are live while the last op runs in every order."""

class IncrementalPeak:
    """The peak of an order while ops of it move."""

    def __init__(self, graph: Graph, order: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

    @property
    def peak(self) -> int: ...

    @property
    def order(self) -> Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C')]: ...

    def move(self, i: int, j: int, length: int = 1) -> bool:
        """
        Moves `length` ops from position i on so that they begin at position j, if that is legal; returns whether it did.
        """

    def move_later(self, position: int, end: int) -> bool:
        """
        Moves the op at a position, and what depends on it before `end`, behind the rest before `end`; returns whether there was a rest.
        """

    def move_earlier(self, position: int, begin: int) -> bool:
        """
        Moves the op at a position, and what it depends on from `begin` on, before the rest from `begin` on; returns whether there was a rest.
        """

class OrderSearch:
    """A search over orders that goes on where the last call left it."""

    def run(self, evaluations: int, seconds: float) -> int:
        """
        Spends up to this many evaluations within a time; returns how many it spent.
        """

    @property
    def over(self) -> bool:
        """Whether there is nothing left to do."""

    @property
    def proven(self) -> bool:
        """Whether nothing better can exist."""

    @property
    def best_peak(self) -> int: ...

    @property
    def best_order(self) -> Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C')]: ...

    @property
    def improvements(self) -> list[tuple[int, float, int]]:
        """
        New best peaks of the last call: (evaluations and seconds since it began, peak).
        """

class RandomOrders(OrderSearch):
    """Independent random orders."""

    def __init__(self, graph: Graph, seed: int, target: int) -> None: ...

class KeyDescent(OrderSearch):
    """Local search on the keys by which a device lists its ops."""

    def __init__(self, graph: Graph, order: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], seed: int, target: int) -> None: ...

class OrderBeam(OrderSearch):
    """Beam search over the sets of ops that have run."""

    def __init__(self, graph: Graph, order: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], target: int, widths: Sequence[int]) -> None: ...

class OrderAnnealing(OrderSearch):
    """Simulated annealing in rounds from several starts."""

    def __init__(self, graph: Graph, starts: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order='C', device='cpu', writable=False)], seed: int, target: int, temperature: float, round_length: int) -> None: ...

    def set_round_length(self, evaluations: int) -> None: ...

class OrderDescent(OrderSearch):
    """Local search with kicks."""

    def __init__(self, graph: Graph, order: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], seed: int, target: int, patience: int, kick: int) -> None: ...

class OrderProgram:
    """The least peak over all orders, by exact search."""

    def __init__(self, graph: Graph, order: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], lower: int, max_bytes: int) -> None: ...

    def run(self, work: int, seconds: float) -> None:
        """
        Goes on for about as much work, or as long, or until a better order is found.
        """

    def offer(self, order: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None:
        """Tells of a legal order from somewhere else."""

    @property
    def proven(self) -> bool:
        """Whether no order is better than the best one."""

    @property
    def over(self) -> bool:
        """Whether there is nothing left to do, or no memory to do it with."""

    @property
    def lower(self) -> int:
        """A peak that no order can beat."""

    @property
    def upper(self) -> int:
        """Peak of the best order."""

    @property
    def best_order(self) -> Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C')]: ...

    @property
    def work(self) -> int:
        """Sets of ops that were looked at, or as much work."""

class KeyDecoder:
    """Keys in [0, 1] as a placement with priorities."""

    def __init__(self, simulator: Simulator, objective: int, unit: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], allowed: Annotated[NDArray[numpy.bool_], dict(shape=(None, None), order='C', device='cpu', writable=False)], transfer_tensor: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], capacity_bytes: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

    @property
    def num_genes(self) -> int: ...

    def decode(self, keys: NDArray[numpy.float32]) -> tuple[NDArray[numpy.uint8], NDArray[numpy.float32], NDArray[numpy.float64]]:
        """
        Device and priority of each op, and priority of each (tensor, device), flat; empty without such keys.
        """

    def evaluate(self, keys: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> tuple[float, int]:
        """Overflow share (0: it fits) and value."""

    def evaluate_all(self, keys: NDArray[numpy.float32]) -> tuple[NDArray[numpy.float64], NDArray[numpy.int64]]:
        """
        The same of every row of ``keys``, ``[rows, genes]``: overflow shares and values, each ``[rows]``.
        """

    def reconcile(self, keys: NDArray[numpy.float32], preferred: NDArray[numpy.float32], seed: int) -> tuple[NDArray[numpy.float32], tuple[float, int], int]:
        """
        Keys with as much of ``preferred`` as is not worse: keys, overflow share and value, evaluations.
        """

def draw_keys(distribution: tuple[Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], float], chromosomes: int, seed: int) -> Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C')]:
    """Keys drawn as BRKGA draws its mutants, [chromosomes * genes]."""

class KeySearch:
    """A search over keys that goes on where the last call left it."""

    def run(self, evaluations: int, seconds: float) -> int:
        """
        Spends up to this many evaluations within a time; returns how many it spent.
        """

    @property
    def over(self) -> bool:
        """Whether there is nothing left to do."""

    @property
    def proven(self) -> bool:
        """Whether nothing better can exist."""

    @property
    def best_keys(self) -> Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C')]: ...

    @property
    def improvements(self) -> list[tuple[int, float, float, int]]:
        """
        New bests of the last call: (evaluations and seconds since it began, overflow share, value).
        """

class Brkga(KeySearch):
    """The biased random-key genetic algorithm."""

    def __init__(self, decoder: KeyDecoder, seed: int, target: tuple[float, int], *, population: int, elites: int, mutants: int, bias: float, populations: int, exchange_every: int, exchanged: int, restart_after: int, threads: int, starts: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], initial: tuple[Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], float] | None, mutant: tuple[Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], float] | None, inherit: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None) -> None: ...

    @property
    def generation(self) -> int:
        """Complete generations."""

class KeyAnnealing(KeySearch):
    """Simulated annealing on (device, priority) pairs."""

    def __init__(self, decoder: KeyDecoder, keys: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], seed: int, target: tuple[float, int], temperature: float, length: int) -> None: ...

    def set_length(self, evaluations: int) -> None: ...

class Plan:
    """What a list scheduler decided, and what it expects."""

    @property
    def device(self) -> Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C')]: ...

    @property
    def position(self) -> Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C')]: ...

    @property
    def makespan_ns(self) -> int: ...

    @property
    def forced(self) -> int: ...

def earliest_task_first(simulator: Simulator, allowed: Annotated[NDArray[numpy.bool_], dict(shape=(None, None), order='C', device='cpu', writable=False)], unit: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], capacity_bytes: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], rank: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], favourite: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None) -> Plan:
    """m-ETF; m-SCT with favourite children."""

def highest_level_first(simulator: Simulator, allowed: Annotated[NDArray[numpy.bool_], dict(shape=(None, None), order='C', device='cpu', writable=False)], unit: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], capacity_bytes: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], rank: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Plan:
    """HLFET: list scheduling by rank."""

def earliest_finish_with_insertion(simulator: Simulator, allowed: Annotated[NDArray[numpy.bool_], dict(shape=(None, None), order='C', device='cpu', writable=False)], unit: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], capacity_bytes: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], rank: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Plan:
    """HEFT."""

def static_upward_rank(simulator: Simulator, cost_ns: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], transfer_ns: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C')]:
    """
    Longest path to the end with one cost per op and one time per tensor, [ops].
    """

class DownSets:
    """All down-sets of an acyclic graph of blocks, up to a limit."""

    def __init__(self, child_ptr: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], child: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], limit: int, limit_words: int) -> None: ...

    @property
    def count(self) -> int: ...

    @property
    def complete(self) -> bool: ...

def contiguous_split(sets: DownSets, class_count: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], class_capacity: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], block_ns: Annotated[NDArray[numpy.int64], dict(shape=(None, None), order='C', device='cpu', writable=False)], block_bytes: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], tensor_producer: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], tensor_bytes: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], to_device_ns: Annotated[NDArray[numpy.int64], dict(shape=(None, None), order='C', device='cpu', writable=False)], from_device_ns: Annotated[NDArray[numpy.int64], dict(shape=(None, None), order='C', device='cpu', writable=False)], reader_ptr: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], reader: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], seconds: float) -> tuple[int, bool, Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C')], Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C')]]:
    """
    (load_ns, finished, stage of each block, device class of each stage) of the best contiguous split; load_ns is 2^63 - 1 if none fits.
    """

class PlacementTables:
    """What never changes in episodes of one placement environment."""

    def __init__(self, arrays: dict[str, Any]) -> None:
        """Arrays and numbers by name; see csrc/placement_tables.hpp."""

    def __getstate__(self) -> dict[str, Any]: ...

    def __setstate__(self, arrays: dict[str, Any], /) -> None: ...

class PlacementEstimate:
    """The earliest-finish estimate; see csrc/placement_estimate.hpp."""

    def __init__(self, tables: PlacementTables) -> None: ...

    def copy(self) -> PlacementEstimate:
        """An independent copy."""

    def __copy__(self) -> PlacementEstimate: ...

    def __getstate__(self) -> tuple[Any, ...]: ...

    def __setstate__(self, state: tuple[Any, ...], /) -> None: ...

    def is_about(self, tables: PlacementTables) -> bool:
        """Whether it is of equal tables."""

    def append(self, group: int, device: int) -> None:
        """Puts a group on a device, after everything that is there already."""

    def preview(self, group: int, device: int) -> tuple[int, int, int]:
        """
        What appending would give: the start in ns; the bytes that move there, and the ns that takes.
        """

    @property
    def num_groups(self) -> int: ...

    @property
    def num_devices(self) -> int: ...

    @property
    def finish_ns(self) -> int:
        """End of the last block."""

    @property
    def potential(self) -> float:
        """
        The objective of the groups appended so far, in units of the reference.
        """

    @property
    def device(self) -> list[int]:
        """Device of each group appended so far, [groups]; -1: not appended."""

    @property
    def start_ns(self) -> list[int]:
        """Start of each appended block, [groups]; -1: not appended."""

    @property
    def free_ns(self) -> list[int]:
        """Time from which each device is free."""

    @property
    def busy_ns(self) -> list[int]:
        """Time that each device works."""

    @property
    def live_bytes(self) -> list[int]:
        """Memory held on each device after the decided prefix."""

    @property
    def peak_bytes(self) -> list[int]:
        """Largest memory held so far on each device."""

    def device_rows(self, placed: NDArray[numpy.int8], group: int) -> NDArray[numpy.float32]:
        """
        DEVICE_FIELDS of each device about a group, [devices * fields]; placed: device of each group, -1: none.
        """

    def node(self, placed: NDArray[numpy.int8], group: int, step: int) -> NDArray[numpy.float32]:
        """The observation of that name, after a number of decisions."""

class PlacementBatch:
    """
    Sequential placement games that step together; see opgym.envs.vector.BatchCore.
    """

    def __init__(self, graphs: list[PlacementTables], slots: int, padded_groups: int, dense: bool, node: bool, threads: int) -> None: ...

    def reset(self, slots: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], graphs: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

    def step(self, actions: NDArray[numpy.int64], skip: NDArray[numpy.bool_] | None, reward: NDArray[numpy.float64], terminated: NDArray[numpy.bool_], illegal_actions: NDArray[numpy.int64], action_mask: NDArray[numpy.int8], observation: list[NDArray[Any]]) -> int: ...

    def observe(self, slots: NDArray[numpy.int64], illegal_actions: NDArray[numpy.int64], action_mask: NDArray[numpy.int8], observation: list[NDArray[Any]]) -> None: ...

    def action_masks(self, action_mask: Annotated[NDArray[numpy.int8], dict(shape=(None, None), order='C', device='cpu')]) -> None: ...

    def decisions(self, slot: int) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C')]: ...

    def replay(self, slot: int, graph: int, decisions: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], illegal_actions: int) -> None: ...

class SchedulingLayout:
    """Ops to order, as nodes: what never changes in an episode."""

    def __init__(self, child_ptr: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], child: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], read_ptr: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], read: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], held_bytes: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], allocated_bytes: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], needed_bytes: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], unread_bytes: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], takeover_bytes: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

    def __reduce__(self) -> tuple[Any, ...]: ...

class PartialOrder:
    """
    A beginning of an order, extended op by op.

    The *rank* of ready nodes is by net bytes freed (bytes that are freed when the op ends - bytes of its outputs), most first, then by index. An *opener* is a ready node that some other node misses alone: running it makes that one ready.
    """

    def __init__(self, layout: SchedulingLayout, order: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None) -> None: ...

    def __reduce__(self) -> tuple[Any, ...]: ...

    def run(self, node: int) -> None:
        """Runs a ready node."""

    def best(self, count: int) -> list[int]:
        """
        Up to `count` ready nodes in order of rank: all of them, or some of each kind.

        Where more are ready: the best ranked openers (nearly half of `count`), the nodes of lowest index that are not among them (a quarter), and the best ranked of all others. For two or more, the node of best rank and the one of lowest index are always there.
        """

    def ranked(self) -> list[int]:
        """All ready nodes in order of rank."""

    def copy(self) -> PartialOrder:
        """An independent copy: a few flat arrays."""

    def is_ready(self, node: int) -> bool: ...

    @property
    def order(self) -> Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C')]:
        """Nodes that have run, [steps] int32."""

    @property
    def used_bytes(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C')]:
        """Memory while each of them ran, [steps] int64."""

    @property
    def live_bytes(self) -> int:
        """Memory now."""

    @property
    def peak_bytes(self) -> int:
        """The most there has been."""

    @property
    def status(self) -> Annotated[NDArray[numpy.int8], dict(shape=(None,), order='C')]:
        """0: waits, 1: ready, 2: has run; [nodes] int8."""

    @property
    def ready(self) -> list[int]:
        """The ready nodes, ascending."""

    @property
    def first_ready(self) -> int:
        """The ready node of lowest index; -1: none."""

    @property
    def num_nodes(self) -> int: ...

    @property
    def num_ready(self) -> int: ...

    @property
    def num_done(self) -> int: ...

    @property
    def over(self) -> bool:
        """Whether everything has run."""

    @property
    def figures(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None, None), order='C')]:
        """
        Of each node: net bytes freed, bytes freed, bytes needed, last uses, nodes unlocked, step at which it became ready; right for those that are ready; [nodes, 6] int64.
        """

class SchedulingView:
    """What an observation shows of a partial order."""

    def __init__(self, layout: SchedulingLayout, fixed: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], reference_bytes: float, bound: float, most_reads: float, most_children: float, num_slots: int) -> None: ...

    def __reduce__(self) -> tuple[Any, ...]: ...

    def start(self) -> PartialOrder:
        """Of this graph, before anything has run."""

    def is_about(self, partial: PartialOrder) -> bool:
        """Whether an order is of equal ops, reads and sizes."""

    def potential(self, partial: PartialOrder) -> float:
        """The peak so far / reference."""

    def write_slots(self, partial: PartialOrder, out: object) -> None:
        """
        Writes the fields of the slots and the global ones, [slots * 17 + 6] float32.
        """

    def write_figures(self, partial: PartialOrder, out: object) -> None:
        """
        Writes the changing fields of all ready nodes, and leaves other rows alone, [nodes or more, 8] float32.
        """

    def write_globals(self, partial: PartialOrder, out: object) -> None:
        """Writes the global fields, [6] float32."""

class SchedulingBatch:
    """Many episodes that order ops, stepped in one call."""

    def __init__(self, views: Sequence[SchedulingView], size: int, *, padded_nodes: int, dense: bool, threads: int) -> None: ...

    def reset(self, slots: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], graphs: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None:
        """
        Begins an episode in each of some slots of the batch, about the graph of that index.
        """

    def step(self, actions: NDArray[numpy.int64], skip: NDArray[numpy.bool_] | None, reward: NDArray[numpy.float64], terminated: NDArray[numpy.bool_], illegal_actions: NDArray[numpy.int64], action_mask: NDArray[numpy.int8], observation: list[NDArray[Any]]) -> int:
        """
        Takes one decision in every slot of the batch that is not skipped, and writes all rows; returns how many episodes ended.
        """

    def observe(self, slots: NDArray[numpy.int64], illegal_actions: NDArray[numpy.int64], action_mask: NDArray[numpy.int8], observation: list[NDArray[Any]]) -> None:
        """Writes the rows of some slots of the batch as they are now."""

    def action_masks(self, action_mask: Annotated[NDArray[numpy.int8], dict(shape=(None, None), order='C', device='cpu')]) -> None:
        """Writes which actions are legal."""

    def decisions(self, slot: int) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C')]:
        """Nodes that have run in an episode, in order, [steps] int64."""

    def peak_bytes(self, slot: int) -> int:
        """The most memory so far in an episode."""

    def replay(self, slot: int, graph: int, decisions: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], illegal_actions: int) -> None:
        """
        Begins an episode and runs nodes at once; ValueError where one of them is not ready.
        """
