"""Device and start of every op as a model of intervals: a relaxation of what the simulator does.

Every run of the simulator is a solution of the model, with the same value or a smaller one, so a bound of the model
is a bound on every placement. The converse does not hold: a solution may let a device wait although an op is ready,
which the simulator's list schedules never do.

What is relaxed: an op or a buffer that lives for no time at all takes no memory, and the rounds of one instant are
one moment.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ....problems import Objective, Placement, PlacementProblem
from ....problems.footprints import op_footprint_bytes, resident_tensors
from ....problems.host_transfers import transfer_ns

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

    from ....graphs import Timeline


@dataclass(frozen=True)
class _Transfer:
    """A tensor's way to one device.

    Attributes:
        start: When it starts, if there is one.
        by_source: For each device it may leave: a literal that is true if it does, and the duration in ns.
        read: A literal that is true if an op of the device reads the tensor.
    """

    start: Any
    by_source: dict[int, tuple[Any, int]]
    read: Any


class PlacementModel:
    """The CP-SAT model of one problem.

    Args:
        problem: The problem; its objective is simulated.
        cp: The module ``ortools.sat.python.cp_model``.
        with_memory: Whether the memory of devices is part of the model.
        horizon_ns: Everything ends by then.
    """

    def __init__(self, problem: PlacementProblem, cp: Any, *, with_memory: bool, horizon_ns: int) -> None:
        self._problem, self._horizon_ns = problem, horizon_ns
        self._devices = range(len(problem.cluster))
        self._model: cp_model.CpModel = cp.CpModel()
        self._ops = np.flatnonzero(~problem.graph.is_variable).tolist()
        self._makespan = self._time("makespan")
        self._add_ops()
        self._transfers: dict[tuple[int, int], _Transfer] = {}
        self._add_reads()
        self._objective = self._makespan
        if with_memory:
            self._add_memory()

    # --- use

    def instance(
        self, low: int, high: int, near: tuple[Placement, Timeline] | None, *, minimise: bool
    ) -> cp_model.CpModel:
        """The model for values of the objective within limits.

        Args:
            low: No placement has a smaller value.
            high: Only placements with at most this value are wanted.
            near: A good placement to start from, and its run.
            minimise: Whether the best is wanted, not just any.
        """
        model = self._model.clone()
        model.add(self._objective >= low)
        model.add(self._objective <= high)
        if minimise:
            model.minimize(self._objective)
        if near is not None:
            placement, timeline = near
            for op in range(self._problem.graph.num_ops):
                if self._problem.graph.op_group[op] < 0 or self._leader[op] == op:
                    for device, literal in self._on[op].items():
                        model.add_hint(literal, bool(placement.device[op] == device))
            for op in self._ops:
                model.add_hint(self._start[op], int(timeline.op_start_ns[op]))
            for tensor, device, start_ns in zip(
                timeline.transfer_tensor.tolist(),
                timeline.transfer_destination.tolist(),
                timeline.transfer_start_ns.tolist(),
                strict=True,
            ):
                if (tensor, device) in self._transfers:
                    model.add_hint(self._transfers[tensor, device].start, start_ns)
        return model

    def placement(self, values: Any) -> Placement:
        """The placement of a solution: devices, and priorities in the order of its starts."""
        graph = self._problem.graph
        device = np.zeros(graph.num_ops, np.uint8)
        for op in range(graph.num_ops):
            device[op] = next(d for d, literal in self._on[op].items() if values.boolean_value(literal))
        start_ns = np.full(graph.num_ops, -1, np.int64)
        for op in self._ops:
            start_ns[op] = values.value(self._start[op])
        transfers: NDArray[np.float64] | None = None
        if self._transfers:
            transfers = np.zeros((graph.num_tensors, len(self._devices)))
            for key, transfer in self._transfers.items():
                transfers[key] = -values.value(transfer.start)
        return Placement(device, _descending(start_ns), transfers)

    # --- time

    def _time(self, name: str) -> Any:
        return self._model.new_int_var(0, self._horizon_ns, name)

    def _add_ops(self) -> None:
        """Devices, starts, ends; ops of one device do not overlap."""
        model, problem = self._model, self._problem
        graph, cost_ns = problem.graph, problem.cost_ns
        first_of_group: dict[int, int] = {}
        self._leader: list[int] = []
        self._on: list[dict[int, Any]] = []
        for op in range(graph.num_ops):
            group = int(graph.op_group[op])
            leader = op if group < 0 else first_of_group.setdefault(group, op)
            self._leader.append(leader)
            if leader != op:
                self._on.append(self._on[leader])
                continue
            allowed = np.flatnonzero(problem.allowed[op]).tolist()
            self._on.append({device: model.new_bool_var(f"op_{op}_on_{device}") for device in allowed})
            model.add_exactly_one(self._on[op].values())
        self._start = {op: self._time(f"start_{op}") for op in self._ops}
        self._end = {op: self._time(f"end_{op}") for op in self._ops}
        for op in self._ops:
            time_ns = sum(int(cost_ns[op, device]) * on for device, on in self._on[op].items())
            model.add(self._end[op] == self._start[op] + time_ns)
        for device in self._devices:
            runs, work = [], []
            for op in self._ops:
                if device in self._on[op]:
                    time_ns, on = int(cost_ns[op, device]), self._on[op][device]
                    runs.append(
                        model.new_optional_fixed_size_interval_var(self._start[op], time_ns, on, f"run_{op}")
                    )
                    work.append(time_ns * on)
            model.add_no_overlap(runs)
            model.add(sum(work) <= self._makespan)
        for op in self._ops:
            model.add(self._end[op] <= self._makespan)

    def _add_reads(self) -> None:
        """An op starts when its inputs are there; transfers take time and ports."""
        model, graph, cluster = self._model, self._problem.graph, self._problem.cluster
        for u, v in sorted({(int(u), int(v)) for u, v, _ in zip(*graph.edges, strict=True)}):
            if not graph.is_variable[u]:
                model.add(self._start[v] >= self._end[u])
        if cluster.channel == "free":
            return
        duration_ns = _durations_ns(self._problem)
        channels: dict[tuple[str, int, int], list[Any]] = {}
        for tensor in range(graph.num_tensors):
            producer, readers = int(graph.tensor_producer[tensor]), graph.consumers(tensor).tolist()
            if producer < 0:
                continue
            for target in self._devices:
                here = [reader for reader in readers if target in self._on[reader]]
                sources = [source for source in self._on[producer] if source != target]
                if not here or not sources:
                    continue
                read = self._read_on(tensor, target, here)
                start = self._time(f"send_{tensor}_to_{target}")
                if not graph.is_variable[producer]:
                    model.add(start >= self._end[producer])
                by_source = {}
                for source in sources:
                    time_ns, on = int(duration_ns[source, target][tensor]), self._on[producer][source]
                    sent = model.new_bool_var(f"sent_{tensor}_{source}_{target}")
                    model.add_implication(sent, on)
                    model.add_implication(sent, read)
                    model.add_bool_or(sent, ~on, ~read)
                    by_source[source] = (sent, time_ns)
                    interval = model.new_optional_fixed_size_interval_var(
                        start, time_ns, sent, f"transfer_{tensor}"
                    )
                    for channel in _channels(cluster.channel, source, target):
                        channels.setdefault(channel, []).append(interval)
                    for reader in here:
                        arrived = model.add(self._start[reader] >= start + time_ns)
                        arrived.only_enforce_if(sent, self._on[reader][target])
                self._transfers[tensor, target] = _Transfer(start, by_source, read)
        for intervals in channels.values():
            model.add_no_overlap(intervals)

    def _read_on(self, tensor: int, device: int, readers: list[int]) -> Any:
        """A literal that is true if an op of a device reads a tensor."""
        read = self._model.new_bool_var(f"read_{tensor}_on_{device}")
        literals = [self._on[reader][device] for reader in readers]
        for literal in literals:
            self._model.add_implication(literal, read)
        self._model.add_bool_or(~read, *literals)
        return read

    # --- memory

    def _add_memory(self) -> None:
        """What is live on each device fits; its peak is the objective, if peak memory is."""
        model, problem = self._model, self._problem
        graph, capacity = problem.graph, problem.cluster.capacity_bytes.tolist()
        peak = model.new_int_var(0, max(capacity), "peak")
        passing = op_footprint_bytes(graph, ~resident_tensors(graph)).tolist()
        for device in self._devices:
            intervals, sizes = self._buffers(device)
            dynamic = model.new_int_var(0, capacity[device], f"dynamic_on_{device}")
            if intervals:
                model.add_cumulative(intervals, sizes, dynamic)
            total = dynamic + self._resident(device)
            model.add(total <= capacity[device])
            model.add(total <= peak)
            for op in self._ops:
                if device in self._on[op] and passing[op]:
                    model.add(dynamic >= passing[op]).only_enforce_if(self._on[op][device])
        if problem.objective is Objective.PEAK_MEMORY:
            self._objective = peak

    def _resident(self, device: int) -> Any:
        """Bytes that stay on a device from start to end."""
        graph, terms = self._problem.graph, []
        for tensor in range(graph.num_tensors):
            producer, size = int(graph.tensor_producer[tensor]), int(graph.tensor_bytes[tensor])
            if producer < 0:
                readers = [r for r in graph.consumers(tensor).tolist() if device in self._on[r]]
                if readers and size:
                    terms.append(size * self._read_on(tensor, device, readers))
            elif graph.is_variable[producer] and device in self._on[producer]:
                terms.append(size * self._on[producer][device])
        return sum(terms)

    def _buffers(self, device: int) -> tuple[list[Any], list[int]]:
        """Intervals and bytes of all that is allocated on a device for a while."""
        graph, found = self._problem.graph, []
        for op in self._ops:
            workspace = int(graph.op_workspace_bytes[op])
            if workspace and device in self._on[op]:
                time_ns = int(self._problem.cost_ns[op, device])
                on = self._on[op][device]
                run = self._model.new_optional_fixed_size_interval_var(
                    self._start[op], time_ns, on, f"scratch_{op}"
                )
                found.append((run, workspace))
        for tensor in range(graph.num_tensors):
            producer, size = int(graph.tensor_producer[tensor]), int(graph.tensor_bytes[tensor])
            if producer < 0 or not size:
                continue
            resident = bool(graph.is_variable[producer])
            if not resident and graph.op_update_of[producer] < 0 and device in self._on[producer]:
                found.append((self._original(tensor, producer, device), size))
            copy = self._copy(tensor, producer, device)
            if copy is not None:
                found.append((copy, size))
        return [interval for interval, _ in found], [size for _, size in found]

    def _original(self, tensor: int, producer: int, device: int) -> Any:
        """From the start of its producer until its last reader there, and its last transfer, have ended."""
        model, graph = self._model, self._problem.graph
        on, end = self._on[producer][device], self._time(f"freed_{tensor}_on_{device}")
        model.add(end >= self._end[producer]).only_enforce_if(on)
        if graph.tensor_is_output[tensor]:
            model.add(end >= self._makespan).only_enforce_if(on)
        for reader in graph.consumers(tensor).tolist():
            if device in self._on[reader]:
                model.add(end >= self._end[reader]).only_enforce_if(on, self._on[reader][device])
        for target in self._devices:
            transfer = self._transfers.get((tensor, target))
            if transfer is not None and device in transfer.by_source:
                sent, time_ns = transfer.by_source[device]
                model.add(end >= transfer.start + time_ns).only_enforce_if(sent)
        size = self._time(f"life_{tensor}_on_{device}")
        return model.new_optional_interval_var(
            self._start[producer], size, end, on, f"buffer_{tensor}_{device}"
        )

    def _copy(self, tensor: int, producer: int, device: int) -> Any:
        """From its transfer's start (with free channels, its producer's end) until its last reader there has ended."""
        model, graph = self._model, self._problem.graph
        readers = [r for r in graph.consumers(tensor).tolist() if device in self._on[r]]
        if not readers or list(self._on[producer]) == [device]:
            return None
        if self._problem.cluster.channel == "free":
            start = 0 if graph.is_variable[producer] else self._end[producer]
            here = self._on[producer].get(device)
            read = self._read_on(tensor, device, readers)
            present = read
            if here is not None:
                present = model.new_bool_var(f"copy_{tensor}_on_{device}")
                model.add_implication(present, ~here)
                model.add_implication(present, read)
                model.add_bool_or(present, here, ~read)
        else:
            transfer = self._transfers[tensor, device]
            start = transfer.start
            present = model.new_bool_var(f"copy_{tensor}_on_{device}")
            model.add(sum(sent for sent, _ in transfer.by_source.values()) == present)
        end = self._time(f"copy_freed_{tensor}_on_{device}")
        for reader in readers:
            model.add(end >= self._end[reader]).only_enforce_if(present, self._on[reader][device])
        size = self._time(f"copy_life_{tensor}_on_{device}")
        return model.new_optional_interval_var(start, size, end, present, f"copy_{tensor}_{device}")


def horizon_ns(problem: PlacementProblem) -> int:
    """No run takes longer: at any time before its end, an op or a transfer is under way."""
    total = int(problem.cost_ns.max(axis=1).sum())
    if problem.cluster.channel != "free":
        durations_ns = _durations_ns(problem)
        for target in range(len(problem.cluster)):
            ways = [time_ns for (_, to), time_ns in durations_ns.items() if to == target]
            if ways:
                total += int(np.max(ways, axis=0)[problem.graph.tensor_producer >= 0].sum())
    return total


def _durations_ns(problem: PlacementProblem) -> dict[tuple[int, int], NDArray[np.int64]]:
    """Duration of every tensor's transfer between two devices, ``[tensors] int64``, by (source, destination)."""
    size, cluster = problem.graph.tensor_bytes, problem.cluster
    return {
        (a, b): transfer_ns(size, int(cluster.latency_ns[a, b]), int(cluster.bytes_per_second[a, b]))
        for a in range(len(cluster))
        for b in range(len(cluster))
        if a != b
    }


def memory_may_bind(problem: PlacementProblem) -> bool:
    """Whether some placement needs more memory than a device has."""
    graph = problem.graph
    everything = int(graph.tensor_bytes.sum()) + int(graph.op_workspace_bytes.max(initial=0))
    return everything > int(problem.cluster.capacity_bytes.min())


def _channels(model: str, source: int, target: int) -> list[tuple[str, int, int]]:
    """What a transfer holds while it runs."""
    if model == "link":
        return [("link", source, target)]
    send = ("send", source, 0)
    return [send] if model == "send" else [send, ("receive", target, 0)]


def _descending(start_ns: NDArray[np.int64]) -> NDArray[np.float64]:
    """Priorities that run ops in the order of their starts, ties by index, ``[ops]``."""
    priority = np.empty(len(start_ns))
    priority[np.argsort(start_ns, kind="stable")] = -np.arange(len(start_ns), dtype=np.float64)
    return priority
