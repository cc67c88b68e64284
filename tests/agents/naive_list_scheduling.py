"""The list schedulers once more: slow, from their rules alone, everything recomputed at each step."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from opgym.problems import PlacementProblem


@dataclass
class NaiveSchedule:
    """A partial schedule; every question is answered from the decisions alone."""

    problem: PlacementProblem
    unit: np.ndarray
    capacity: np.ndarray
    device: dict[int, int] = field(default_factory=dict)  # decided ops, and variables that have a home
    decided: list[int] = field(default_factory=list)
    end: dict[int, int] = field(default_factory=dict)
    copy: dict[tuple[int, int], int] = field(default_factory=dict)  # (tensor, device) -> when it is there
    free: dict[tuple[object, ...], int] = field(default_factory=dict)  # device or channel -> when it is free
    spans: dict[tuple[object, ...], list[tuple[int, int]]] = field(
        default_factory=dict
    )  # ... -> when it is busy

    def __post_init__(self) -> None:
        self.graph = self.problem.graph
        self.devices = range(len(self.problem.cluster))

    # --- rules

    def is_variable(self, op: int) -> bool:
        return bool(self.graph.is_variable[op])

    def members(self, op: int) -> list[int]:
        return np.flatnonzero(self.unit == self.unit[op]).tolist()

    def unit_home(self, op: int) -> int | None:
        return next((self.device[v] for v in self.members(op) if v in self.device), None)

    def allowed(self, op: int, d: int) -> bool:
        return bool(self.problem.allowed[op, d]) and self.unit_home(op) in (None, d)

    def duration(self, tensor: int, source: int, destination: int) -> int:
        cluster = self.problem.cluster
        if cluster.channel == "free":
            return 0
        rate = int(cluster.bytes_per_second[source, destination])
        size = int(self.graph.tensor_bytes[tensor])
        return int(cluster.latency_ns[source, destination]) + -(-size * 10**9 // rate)

    def home(self, tensor: int, reader_device: int) -> int:
        """Device of a tensor's producer; of a homeless variable, where the reader would have it."""
        producer = int(self.graph.tensor_producer[tensor])
        if producer in self.device:
            return self.device[producer]
        assert self.is_variable(producer)
        if self.allowed(producer, reader_device):
            return reader_device
        homes = [h for h in self.devices if self.allowed(producer, h)]
        return min(homes, key=lambda h: (self.duration(tensor, h, reader_device), h))

    # --- time

    def waiting_transfers(self, op: int, d: int) -> list[tuple[int, int, int]]:
        """(release, tensor, source) of what must be sent for the op to run on a device."""
        found = []
        for tensor in self.graph.inputs(op).tolist():
            producer = int(self.graph.tensor_producer[tensor])
            if producer < 0 or (tensor, d) in self.copy:
                continue
            source = self.home(tensor, d)
            if source == d:
                continue
            release = self.end.get(producer, 0)
            if self.problem.cluster.channel == "port":
                release = max(release, self.free.get(("send", source), 0))
            found.append((release, tensor, source))
        return sorted(found)

    def transfers(self, op: int, d: int) -> list[tuple[int, int, int]]:
        """(tensor, source, end) of the op's transfers; each channel takes them in order of their release."""
        free = dict(self.free)
        ends = []
        for release, tensor, source in self.waiting_transfers(op, d):
            channel = self.channel(source, d)
            end = release
            if channel is not None:
                end = max(free.get(channel, 0), release) + self.duration(tensor, source, d)
                free[channel] = end
            ends.append((tensor, source, end))
        return ends

    def channel(self, source: int, d: int) -> tuple[object, ...] | None:
        return {"port": ("receive", d), "send": ("send", source), "link": ("link", source, d), "free": None}[
            self.problem.cluster.channel
        ]

    def start(self, op: int, d: int) -> int:
        there = [self.free.get(("device", d), 0)]
        for tensor in self.graph.inputs(op).tolist():
            if self.graph.tensor_producer[tensor] < 0:
                continue
            if (tensor, d) in self.copy:
                there.append(self.copy[tensor, d])
            elif self.home(tensor, d) == d:
                there.append(self.end.get(int(self.graph.tensor_producer[tensor]), 0))
        return max(there + [end for _, _, end in self.transfers(op, d)])

    def slowdown(self, op: int, d: int) -> int:
        cost = self.problem.cost_ns[op]
        return int(cost[d] - cost[self.problem.allowed[op]].min())

    def remote_bytes(self, op: int, d: int) -> int:
        remote = [
            t
            for t in self.graph.inputs(op).tolist()
            if self.graph.tensor_producer[t] >= 0 and self.home(t, d) != d
        ]
        return sum(int(self.graph.tensor_bytes[t]) + 1 for t in remote)

    # --- memory

    def committed(self, d: int) -> int:
        graph, total = self.graph, 0
        decided = set(self.decided)
        for tensor in range(graph.num_tensors):
            producer = int(graph.tensor_producer[tensor])
            readers = graph.consumers(tensor).tolist()
            here = any(v in decided and self.device[v] == d for v in readers)
            size = int(graph.tensor_bytes[tensor])
            if producer < 0:
                total += size if here else 0
                continue
            home = self.device.get(producer)
            if self.is_variable(producer):
                total += size if home == d else 0
            elif (
                home == d
                and graph.op_update_of[producer] < 0
                and (graph.tensor_is_output[tensor] or not decided.issuperset(readers))
            ):
                total += size
            if home is not None and home != d and here and not decided.issuperset(readers):
                total += size
        return total

    def added(self, op: int, d: int) -> int:
        graph = self.graph
        total = int(graph.op_workspace_bytes[op])
        if graph.op_update_of[op] < 0:
            total += sum(int(graph.tensor_bytes[t]) for t in graph.outputs(op))
        homed = [op] if self.unit_home(op) is None else []
        for tensor in graph.inputs(op).tolist():
            producer = int(graph.tensor_producer[tensor])
            if producer < 0:
                here = any(self.device.get(v) == d for v in graph.consumers(tensor) if v in self.decided)
                total += 0 if here else int(graph.tensor_bytes[tensor])
            elif producer not in self.device and self.unit[producer] == self.unit[op]:
                continue
            elif self.home(tensor, d) == d:
                if producer not in self.device:
                    homed.append(producer)
            elif (tensor, d) not in self.copy:
                total += int(graph.tensor_bytes[tensor])
        for unit in {int(self.unit[v]) for v in homed}:
            for v in np.flatnonzero((self.unit == unit) & graph.is_variable):
                total += sum(int(graph.tensor_bytes[t]) for t in graph.outputs(v))
        return total

    def overflow(self, op: int, d: int) -> int:
        return self.committed(d) + self.added(op, d) - int(self.capacity[d])

    # --- decisions

    def ready(self) -> list[int]:
        decided = set(self.decided)
        graph = self.graph
        return [
            op
            for op in range(graph.num_ops)
            if op not in decided
            and not self.is_variable(op)
            and all(
                p < 0 or self.is_variable(p) or p in decided
                for p in graph.tensor_producer[graph.inputs(op)].tolist()
            )
        ]

    def commit(self, op: int, d: int) -> None:
        for tensor in self.graph.inputs(op).tolist():
            producer = int(self.graph.tensor_producer[tensor])
            if producer >= 0 and producer not in self.device:
                self.settle(producer, self.home(tensor, d))
        start = self.start(op, d)
        for tensor, source, end in self.transfers(op, d):
            self.copy[tensor, d] = end
            channel = self.channel(source, d)
            if channel is not None:
                self.free[channel] = end
                if self.problem.cluster.channel == "port":
                    self.free["send", source] = end
        self.settle(op, d)
        self.device[op] = d
        self.decided.append(op)
        self.end[op] = start + int(self.problem.cost_ns[op, d])
        self.free["device", d] = self.end[op]

    # --- insertion: busy times instead of free times

    def busy(self, *resources: tuple[object, ...]) -> list[tuple[int, int]]:
        """When any of the resources is busy; touching spans of one are one, so that nothing fits between them."""
        found: list[tuple[int, int]] = []
        for resource in resources:
            own: list[tuple[int, int]] = []
            for begin, end in sorted(span for span in self.spans.get(resource, []) if span[0] < span[1]):
                if own and own[-1][1] == begin:
                    begin = own.pop()[0]
                own.append((begin, end))
            found += own
        return found

    @staticmethod
    def first_gap(ready: int, duration: int, busy: list[tuple[int, int]]) -> int:
        """First start from which nothing is busy."""
        starts = [ready] + [end for _, end in busy if end > ready]
        return min(s for s in starts if all(s + duration <= a or s >= b for a, b in busy))

    def inserted(self, op: int, d: int) -> tuple[list[tuple[int, int, int, int]], int]:
        """(tensor, source, start, end) of the op's transfers put into gaps, and its own start."""
        channel = self.problem.cluster.channel
        waiting = []
        there = [0]
        for tensor in self.graph.inputs(op).tolist():
            producer = int(self.graph.tensor_producer[tensor])
            if producer < 0:
                continue
            source = self.home(tensor, d)
            made = self.end.get(producer, 0)
            if source == d or (tensor, d) in self.copy:
                there.append(made if source == d else self.copy[tensor, d])
            else:
                waiting.append((0 if channel == "port" else source, made, tensor, source))
        transfers, last = [], {}
        for queue, made, tensor, source in sorted(waiting):
            duration = self.duration(tensor, source, d)
            if channel == "free":
                start = made
            else:
                channels = {
                    "port": [("send", source), ("receive", d)],
                    "send": [("send", source)],
                    "link": [("link", source, d)],
                }[channel]
                start = self.first_gap(max(made, last.get(queue, 0)), duration, self.busy(*channels))
            last[queue] = start + duration
            transfers.append((tensor, source, start, start + duration))
        ready = max(there + [end for *_, end in transfers])
        return transfers, self.first_gap(ready, int(self.problem.cost_ns[op, d]), self.busy(("device", d)))

    def insert(self, op: int, d: int) -> None:
        for tensor in self.graph.inputs(op).tolist():
            producer = int(self.graph.tensor_producer[tensor])
            if producer >= 0 and producer not in self.device:
                self.settle(producer, self.home(tensor, d))
        transfers, start = self.inserted(op, d)
        for tensor, source, begin, end in transfers:
            self.copy[tensor, d] = end
            for resource in (("send", source), ("receive", d), ("link", source, d)):
                self.spans.setdefault(resource, []).append((begin, end))
        self.settle(op, d)
        self.device[op] = d
        self.decided.append(op)
        self.end[op] = start + int(self.problem.cost_ns[op, d])
        self.spans.setdefault(("device", d), []).append((start, self.end[op]))

    def settle(self, op: int, d: int) -> None:
        """Gives the variables of an op's unit a home."""
        for v in self.members(op):
            if self.is_variable(v):
                self.device[v] = d


def earliest_task_first(
    problem: PlacementProblem, unit: np.ndarray, capacity: np.ndarray, rank: np.ndarray
) -> list[tuple[int, int]]:
    """The (op, device) pairs in the order in which m-ETF decides them."""
    schedule = NaiveSchedule(problem, unit, capacity)
    decisions = []
    while ready := schedule.ready():
        pairs = [(op, d) for op in ready for d in schedule.devices if schedule.allowed(op, d)]
        fitting = [pair for pair in pairs if schedule.overflow(*pair) <= 0]
        if fitting:
            op, d = min(
                fitting,
                key=lambda pair: (
                    schedule.start(*pair) + schedule.slowdown(*pair),
                    -rank[pair[0]],
                    pair[0],
                    schedule.remote_bytes(*pair),
                    pair[1],
                ),
            )
        else:
            smallest = [
                min((schedule.added(op, d), op, d) for op, other in pairs if other == d)
                for d in sorted({d for _, d in pairs})
            ]
            _, op, d = min(smallest, key=lambda s: (schedule.overflow(s[1], s[2]) / capacity[s[2]], s[2]))
        schedule.commit(op, d)
        decisions.append((op, d))
    return decisions


def highest_level_first(
    problem: PlacementProblem, unit: np.ndarray, capacity: np.ndarray, rank: np.ndarray
) -> list[tuple[int, int]]:
    """The (op, device) pairs in the order in which HLFET decides them."""
    schedule = NaiveSchedule(problem, unit, capacity)
    decisions = []
    while ready := schedule.ready():
        op = min(ready, key=lambda v: (-rank[v], v))
        d = min(
            (d for d in schedule.devices if schedule.allowed(op, d)),
            key=lambda d: (
                max(0.0, schedule.overflow(op, d) / capacity[d]),
                schedule.start(op, d) + schedule.slowdown(op, d),
                schedule.remote_bytes(op, d),
                d,
            ),
        )
        schedule.commit(op, d)
        decisions.append((op, d))
    return decisions


def earliest_finish_with_insertion(
    problem: PlacementProblem, unit: np.ndarray, capacity: np.ndarray, rank: np.ndarray
) -> list[tuple[int, int]]:
    """The (op, device) pairs in the order in which HEFT decides them; ``rank`` falls along edges."""
    schedule = NaiveSchedule(problem, unit, capacity)
    decisions = []
    for op in sorted(range(problem.graph.num_ops), key=lambda v: (-rank[v], v)):
        if schedule.is_variable(op):
            continue
        keys = []
        for d in (d for d in schedule.devices if schedule.allowed(op, d)):
            transfers, start = schedule.inserted(op, d)
            moved = sum(int(problem.graph.tensor_bytes[t]) + 1 for t, *_ in transfers)
            over = max(0.0, schedule.overflow(op, d) / capacity[d])
            keys.append((over, start + int(problem.cost_ns[op, d]), moved, d))
        schedule.insert(op, min(keys)[-1])
        decisions.append((op, min(keys)[-1]))
    return decisions
