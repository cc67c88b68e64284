"""The semantics of the simulator in plain Python, to be read beside docs/simulator.md.

It is written from the text of that page alone and shares no code with the C++ core: tests hold the two equal,
and ``opgym benchmark simulator`` compares their speed. The headings in the comments are those of the page.
Everything is a Python integer, so nothing can overflow.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import InvalidCostError, InvalidSolutionError, OpgymError
from ..graphs import Cluster, Graph


class Transfer(NamedTuple):
    """One tensor sent to one device."""

    tensor: int
    source: int
    destination: int
    start_ns: int
    end_ns: int


class MemorySample(NamedTuple):
    """Resident and dynamic bytes of a device after a round that changed them."""

    time_ns: int
    device: int
    bytes: int


@dataclass(frozen=True)
class ReferenceRun:
    """What a run gave.

    Attributes:
        makespan_ns: The last end of an op or a transfer; 0 if there is none.
        dynamic_peak_bytes: Largest live bytes of each device, resident apart, ``[devices]``.
        resident_bytes: Bytes held from start to end on each device, ``[devices]``.
        busy_ns: Sum of the costs of each device's ops, ``[devices]``.
        transfer_ns: Sum of the durations of the transfers that each device sent, ``[devices]``.
        op_start_ns: Start of each op, ``[ops]``; -1 for a variable.
        op_end_ns: End of each op, ``[ops]``; -1 for a variable.
        transfers: In order of start.
        memory: In order of rounds, then devices.
    """

    makespan_ns: int
    dynamic_peak_bytes: list[int]
    resident_bytes: list[int]
    busy_ns: list[int]
    transfer_ns: list[int]
    op_start_ns: list[int]
    op_end_ns: list[int]
    transfers: list[Transfer]
    memory: list[MemorySample]


def simulate(
    graph: Graph,
    cluster: Cluster,
    class_cost_ns: ArrayLike,
    device: ArrayLike,
    priority: ArrayLike | None = None,
    transfer_priority: ArrayLike | None = None,
) -> ReferenceRun:
    """Runs a placement.

    Args:
        graph: The graph.
        cluster: Devices and channels.
        class_cost_ns: ``[ops, classes] int64``, the classes being those of the cluster.
        device: Device of each op, ``[ops] int``.
        priority: ``[ops] float32 | float64``, higher first; the upward rank where absent.
        transfer_priority: ``[tensors, devices] float64``, higher first; the rank of the best-ranked consumer
            on the destination where absent.

    Raises:
        InvalidCostError: A negative cost, a wrong shape.
        InvalidSolutionError: A device out of range, NaN, a wrong length.
    """
    return _Run(graph, cluster, class_cost_ns, device, priority, transfer_priority).play()


def upward_rank(graph: Graph, cluster: Cluster, class_cost_ns: ArrayLike, device: ArrayLike) -> list[int]:
    """Upward rank of each op under a placement, ``[ops]`` ns; arguments as in :func:`simulate`."""
    placed_on = _checked_devices(graph, cluster, device)
    return _upward_rank(graph, cluster, _checked_costs(graph, cluster, class_cost_ns, placed_on), placed_on)


def transfer_duration_ns(cluster: Cluster, size: int, source: int, destination: int) -> int:
    """Time that ``size`` bytes take from one device to another."""
    if source == destination or cluster.channel == "free":
        return 0
    latency = int(cluster.latency_ns[source, destination])
    return latency - (-size * 10**9 // int(cluster.bytes_per_second[source, destination]))  # rounded up


class _Run:
    """The state of one run; :meth:`play` is the text from top to bottom."""

    def __init__(
        self,
        graph: Graph,
        cluster: Cluster,
        class_cost_ns: ArrayLike,
        device: ArrayLike,
        priority: ArrayLike | None,
        transfer_priority: ArrayLike | None,
    ) -> None:
        self.graph = graph
        self.cluster = cluster
        self.devices = range(len(cluster))
        self.device = _checked_devices(graph, cluster, device)
        self.cost = _checked_costs(graph, cluster, class_cost_ns, self.device)
        self.bytes: list[int] = graph.tensor_bytes.tolist()
        self.workspace: list[int] = graph.op_workspace_bytes.tolist()
        self.inputs = [graph.inputs(v).tolist() for v in range(graph.num_ops)]
        self.producer: list[int] = graph.tensor_producer.tolist()
        self.is_output: list[bool] = graph.tensor_is_output.tolist()
        self.is_variable: list[bool] = graph.is_variable.tolist()
        self.is_update: list[bool] = (graph.op_update_of >= 0).tolist()

        # Consumers of each tensor by device, and the devices that need a copy of it.
        self.consumers_on: dict[tuple[int, int], list[int]] = defaultdict(list)
        for v in range(graph.num_ops):
            for t in self.inputs[v]:
                self.consumers_on[t, self.device[v]].append(v)
        self.destinations: list[list[int]] = [[] for _ in range(graph.num_tensors)]
        for t, d in sorted(self.consumers_on):
            if self.producer[t] >= 0 and self.device[self.producer[t]] != d:
                self.destinations[t].append(d)

        # --- Priorities: one total order of the ops, and one of the transfers.
        keys = _checked_priorities(priority, (graph.num_ops,))
        if keys is None:
            keys = _upward_rank(graph, cluster, self.cost, self.device)
        best_first = sorted(range(graph.num_ops), key=lambda v: (-keys[v], v))
        self.rank = [0] * graph.num_ops
        for position, v in enumerate(best_first):
            self.rank[v] = position
        self.transfer_priority = _checked_priorities(transfer_priority, (graph.num_tensors, len(cluster)))

        # --- Ops
        # Inputs not yet present where the op runs; ready ops of each device, heaps of (rank, op).
        self.absent = [sum(self.producer[t] >= 0 for t in inputs) for inputs in self.inputs]
        self.ready: list[list[tuple[int, int]]] = [[] for _ in self.devices]
        self.running: list[int | None] = [None for _ in self.devices]
        self.op_start = [-1] * graph.num_ops
        self.op_end = [-1] * graph.num_ops

        # --- Transfers: what waits, by pair of devices: heaps of (key, tensor, destination); channels in use
        self.waiting: dict[tuple[int, int], list[tuple[Any, int, int]]] = {}
        self.channels = {(s, d): self._channels(s, d) for s in self.devices for d in self.devices}
        self.held: set[Any] = set()
        self.transfers: list[Transfer] = []

        # --- What ends when: heaps of (time, op) and (time, position in transfers)
        self.op_ends: list[tuple[int, int]] = []
        self.transfer_ends: list[tuple[int, int]] = []

        # --- Memory: uses of a tensor on a device that have not ended; live bytes, resident apart
        self.uses = {key: len(readers) for key, readers in self.consumers_on.items()}
        for t, destinations in enumerate(self.destinations):
            if destinations:
                home = self.device[self.producer[t]]
                self.uses[t, home] = self.uses.get((t, home), 0) + len(destinations)
        self.resident = self._resident_bytes()
        self.live = [0 for _ in self.devices]
        self.peak = [0 for _ in self.devices]
        self.sampled = [0 for _ in self.devices]
        self.memory: list[MemorySample] = []
        self.taken_over: dict[int, int] = {}  # op -> input whose buffer its output took

    # --- Instants ---------------------------------------------------------------------------------

    def play(self) -> ReferenceRun:
        """Plays rounds until nothing is left to end."""
        time = 0
        arrivals = self._begin()
        while True:
            # (a) everything that ends now ends, with its frees, then ready flags
            arrivals += self._end_ops(time)
            arrivals += self._end_transfers(time)
            for t, d in arrivals:
                self._becomes_present(t, d)
            # (b) starts: devices, then channels
            for d in self.devices:
                self._start_op(d, time)
            self._start_transfers(time)
            self._look_at_memory(time)
            # The next round is at the same time if something without duration started.
            upcoming = [heap[0][0] for heap in (self.op_ends, self.transfer_ends) if heap]
            if not upcoming:
                break
            time = min(upcoming)
            arrivals = []
        return self._result()

    def _begin(self) -> list[tuple[int, int]]:
        """The start of the first round: what is present, ready or waiting without anything having ended."""
        for v in range(self.graph.num_ops):
            if self.absent[v] == 0 and not self.is_variable[v]:
                heapq.heappush(self.ready[self.device[v]], (self.rank[v], v))
        arrivals: list[tuple[int, int]] = []
        for v in range(self.graph.num_ops):
            if self.is_variable[v]:
                arrivals += self._hand_out(v, 0)
        return arrivals

    # --- Ops --------------------------------------------------------------------------------------

    def _becomes_present(self, tensor: int, device: int) -> None:
        for v in self.consumers_on.get((tensor, device), ()):
            self.absent[v] -= 1
            if self.absent[v] == 0:
                heapq.heappush(self.ready[device], (self.rank[v], v))

    def _start_op(self, device: int, time: int) -> None:
        if self.running[device] is not None or not self.ready[device]:
            return
        _, v = heapq.heappop(self.ready[device])
        self.running[device] = v
        self.op_start[v] = time
        self._allocate_for_op(v)
        heapq.heappush(self.op_ends, (time + self.cost[v], v))

    def _end_ops(self, time: int) -> list[tuple[int, int]]:
        """Ends ops; returns the (tensor, device) pairs that are present from now on."""
        arrivals: list[tuple[int, int]] = []
        while self.op_ends and self.op_ends[0][0] == time:
            _, v = heapq.heappop(self.op_ends)
            self.op_end[v] = time
            self.running[self.device[v]] = None
            self._free_after_op(v)
            arrivals += self._hand_out(v, time)
        return arrivals

    # --- Transfers and channels -------------------------------------------------------------------

    def _hand_out(self, producer: int, time: int) -> list[tuple[int, int]]:
        """Makes an op's outputs present at home and queues their transfers (free channels: sends them)."""
        home = self.device[producer]
        arrivals: list[tuple[int, int]] = []
        for t in self.graph.outputs(producer):
            arrivals.append((t, home))
            for d in self.destinations[t]:
                if self.cluster.channel == "free":
                    self.transfers.append(Transfer(t, home, d, time, time))
                    self.live[d] += self.bytes[t]
                    self._one_use_less(t, home)
                    arrivals.append((t, d))
                else:
                    heapq.heappush(self.waiting.setdefault((home, d), []), (self._transfer_key(t, d), t, d))
        return arrivals

    def _transfer_key(self, tensor: int, destination: int) -> Any:
        """Lower goes first; the heap breaks ties by tensor, then destination."""
        if self.transfer_priority is not None:
            return -self.transfer_priority[tensor][destination]
        return min(self.rank[v] for v in self.consumers_on[tensor, destination])

    def _channels(self, source: int, destination: int) -> tuple[Any, ...]:
        """What a transfer holds from its start to its end."""
        if self.cluster.channel == "port":
            return (("send", source), ("receive", destination))
        if self.cluster.channel == "send":
            return (("send", source),)
        return (("link", source, destination),)

    def _start_transfers(self, time: int) -> None:
        """Starts waiting transfers, best first, skipping those whose channels are held.

        All transfers of a pair of devices need the same channels, so at most the best of each pair can start
        in a round, and only those tops of heaps need a look.
        """
        tops = [
            (*queue[0], source)
            for (source, destination), queue in self.waiting.items()
            if queue and self.held.isdisjoint(self.channels[source, destination])
        ]
        for _, tensor, destination, source in sorted(tops):
            channels = self.channels[source, destination]
            if not self.held.isdisjoint(channels):  # a better one has just taken them
                continue
            heapq.heappop(self.waiting[source, destination])
            self.held.update(channels)
            end = time + transfer_duration_ns(self.cluster, self.bytes[tensor], source, destination)
            heapq.heappush(self.transfer_ends, (end, len(self.transfers)))
            self.transfers.append(Transfer(tensor, source, destination, time, end))
            self.live[destination] += self.bytes[tensor]

    def _end_transfers(self, time: int) -> list[tuple[int, int]]:
        """Ends transfers; returns the (tensor, device) pairs that are present from now on."""
        arrivals = []
        while self.transfer_ends and self.transfer_ends[0][0] == time:
            _, position = heapq.heappop(self.transfer_ends)
            sent = self.transfers[position]
            self.held.difference_update(self.channels[sent.source, sent.destination])
            self._one_use_less(sent.tensor, sent.source)
            arrivals.append((sent.tensor, sent.destination))
        return arrivals

    # --- Memory -----------------------------------------------------------------------------------

    def _resident_bytes(self) -> list[int]:
        """Variables at home, and source tensors on every device with a consumer."""
        resident = [0 for _ in self.devices]
        for v in range(self.graph.num_ops):
            if self.is_variable[v]:
                resident[self.device[v]] += sum(self.bytes[t] for t in self.graph.outputs(v))
        for t, d in self.consumers_on:
            if self.producer[t] < 0:
                resident[d] += self.bytes[t]
        return resident

    def _is_dynamic(self, tensor: int, device: int) -> bool:
        """Whether the bytes of a tensor on a device come and go (rather than being resident or an alias)."""
        producer = self.producer[tensor]
        if producer < 0:
            return False
        at_home = self.device[producer] == device
        return not (at_home and (self.is_variable[producer] or self.is_update[producer]))

    def _allocate_for_op(self, v: int) -> None:
        d = self.device[v]
        self.live[d] += self.workspace[v]
        taken = _taken_over(
            self.graph,
            v,
            lambda t: self.uses[t, d] if self._is_dynamic(t, d) and not self.is_output[t] else 0,
        )
        if taken is not None:
            self.taken_over[v] = taken
        elif not self.is_update[v]:
            self.live[d] += sum(self.bytes[t] for t in self.graph.outputs(v))

    def _free_after_op(self, v: int) -> None:
        d = self.device[v]
        self.live[d] -= self.workspace[v]
        for t in self.inputs[v]:
            self._one_use_less(t, d, keep=self.taken_over.get(v) == t)
        for t in self.graph.outputs(v):
            if self.uses.get((t, d), 0) == 0:
                self._free(t, d)

    def _one_use_less(self, tensor: int, device: int, keep: bool = False) -> None:
        self.uses[tensor, device] -= 1
        if self.uses[tensor, device] == 0 and not keep:
            self._free(tensor, device)

    def _free(self, tensor: int, device: int) -> None:
        at_home = self.producer[tensor] >= 0 and self.device[self.producer[tensor]] == device
        if self._is_dynamic(tensor, device) and not (at_home and self.is_output[tensor]):
            self.live[device] -= self.bytes[tensor]

    def _look_at_memory(self, time: int) -> None:
        for d in self.devices:
            self.peak[d] = max(self.peak[d], self.live[d])
            if self.live[d] != self.sampled[d]:
                self.sampled[d] = self.live[d]
                self.memory.append(MemorySample(time, d, self.resident[d] + self.live[d]))

    # --- Result -----------------------------------------------------------------------------------

    def _result(self) -> ReferenceRun:
        busy = [0 for _ in self.devices]
        for v in range(self.graph.num_ops):
            busy[self.device[v]] += self.cost[v]
        sending = [0 for _ in self.devices]
        for sent in self.transfers:
            sending[sent.source] += sent.end_ns - sent.start_ns
        return ReferenceRun(
            makespan_ns=max([0, *self.op_end, *(sent.end_ns for sent in self.transfers)]),
            dynamic_peak_bytes=self.peak,
            resident_bytes=self.resident,
            busy_ns=busy,
            transfer_ns=sending,
            op_start_ns=self.op_start,
            op_end_ns=self.op_end,
            transfers=self.transfers,
            memory=self.memory,
        )


def peak_of_order(graph: Graph, order: ArrayLike) -> int:
    """Dynamic peak of running ops one after another on one device, resident apart.

    Args:
        graph: The graph.
        order: Every op that is no variable, once, producers first; variables may be listed too, anywhere.

    Raises:
        InvalidSolutionError: The order is no such list.
    """
    listed = np.asarray(order).tolist()
    run = [v for v in listed if 0 <= v < graph.num_ops and not graph.is_variable[v]]
    scheduled = np.flatnonzero(~graph.is_variable).tolist()
    if sorted(run) != scheduled or sorted(listed) not in (scheduled, list(range(graph.num_ops))):
        raise InvalidSolutionError(
            f"the order lists {len(listed)} ops; expected each of {len(scheduled)} once"
        )

    uses = np.diff(graph.consumer_ptr).tolist()
    size: list[int] = graph.tensor_bytes.tolist()

    def aliases(op: int) -> bool:  # its outputs have no bytes of their own that come and go
        return op < 0 or bool(graph.is_variable[op]) or bool(graph.op_update_of[op] >= 0)

    present = [producer < 0 or bool(graph.is_variable[producer]) for producer in graph.tensor_producer]
    dynamic = [not aliases(int(producer)) for producer in graph.tensor_producer]
    may_go = [dynamic[t] and not graph.tensor_is_output[t] for t in range(graph.num_tensors)]
    live = peak = 0
    for v in run:
        inputs, outputs = graph.inputs(v).tolist(), graph.outputs(v)
        if not all(present[t] for t in inputs):
            raise InvalidSolutionError(
                f"the order runs op {v} {graph.op_names[v]!r} before an op that it reads from"
            )
        workspace = int(graph.op_workspace_bytes[v])
        taken = _taken_over(graph, v, lambda t: uses[t] if may_go[t] else 0)
        live += workspace + (0 if taken is not None else sum(size[t] for t in outputs if dynamic[t]))
        peak = max(peak, live)
        live -= workspace
        for t in inputs:
            uses[t] -= 1
            if uses[t] == 0 and may_go[t] and t != taken:
                live -= size[t]
        for t in outputs:
            present[t] = True
            if uses[t] == 0 and may_go[t]:
                live -= size[t]
    return peak


# --- In place -------------------------------------------------------------------------------------


def _taken_over(graph: Graph, v: int, uses_of_free_input: Callable[[int], int]) -> int | None:
    """The input whose buffer the output of an op takes over, if any.

    Args:
        graph: The graph.
        v: An op that starts.
        uses_of_free_input: For an input, its uses on the device that have not ended (this op is one of them),
            or 0 if it may never be taken over: it is resident, an alias of a variable, or an output.
    """
    outputs = graph.outputs(v)
    if not graph.in_place or not graph.op_elementwise[v] or graph.op_update_of[v] >= 0 or len(outputs) != 1:
        return None
    size = graph.tensor_bytes[outputs[0]]
    for t in graph.inputs(v).tolist():
        if graph.tensor_bytes[t] == size and uses_of_free_input(t) == 1:
            return int(t)
    return None


# --- Priorities -----------------------------------------------------------------------------------


def _upward_rank(graph: Graph, cluster: Cluster, cost: Sequence[int], device: Sequence[int]) -> list[int]:
    rank = [0] * graph.num_ops
    for v in reversed(range(graph.num_ops)):
        best = 0
        for t in graph.outputs(v):
            size = int(graph.tensor_bytes[t])
            for w in graph.consumers(t).tolist():
                best = max(best, transfer_duration_ns(cluster, size, device[v], device[w]) + rank[w])
        rank[v] = cost[v] + best
    return rank


# --- What is refused before anything runs ---------------------------------------------------------


def _checked_devices(graph: Graph, cluster: Cluster, device: ArrayLike) -> list[int]:
    array = _of_shape(device, (graph.num_ops,), "devices", InvalidSolutionError)
    if ((array < 0) | (array >= len(cluster))).any():
        raise InvalidSolutionError(f"a device is out of range; expected 0 to {len(cluster) - 1}")
    devices: list[int] = array.tolist()
    return devices


def _checked_costs(
    graph: Graph, cluster: Cluster, class_cost_ns: ArrayLike, device: Sequence[int]
) -> list[int]:
    table = _of_shape(class_cost_ns, (graph.num_ops, len(cluster.classes)), "costs", InvalidCostError)
    if (table < 0).any():
        raise InvalidCostError("a cost is negative")
    chosen = table[np.arange(graph.num_ops), cluster.device_class[device]]
    costs: list[int] = np.where(graph.is_variable, 0, chosen).tolist()  # a variable takes no device time
    return costs


def _checked_priorities(priority: ArrayLike | None, shape: tuple[int, ...]) -> list[Any] | None:
    if priority is None:
        return None
    array = _of_shape(priority, shape, "priorities", InvalidSolutionError)
    if np.isnan(array).any():
        raise InvalidSolutionError("a priority is NaN; expected numbers or infinities")
    keys: list[Any] = array.tolist()
    return keys


def _of_shape(values: ArrayLike, shape: tuple[int, ...], what: str, error: type[OpgymError]) -> NDArray[Any]:
    array = np.asarray(values)
    if array.shape != shape:
        raise error(f"{what} have shape {array.shape}; expected {shape}")
    return array
