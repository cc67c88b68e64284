"""The earliest-finish estimate once more: slow, from the rules alone, by brute force on the graph."""

from collections.abc import Iterator, Sequence, Set

import numpy as np

from opgym.problems import PlacementProblem


class NaiveEstimate:
    """Groups appended in decision order; every figure by brute force."""

    def __init__(self, problem: PlacementProblem, group_of_op: np.ndarray) -> None:
        self.problem = problem
        self.graph, self.cluster, self.cost = problem.graph, problem.cluster, problem.cost_ns
        self.group_of_op = group_of_op
        self.device: dict[int, int] = {}
        self.free = [0] * len(self.cluster)
        self.peak = [0] * len(self.cluster)
        self.written: dict[int, int] = {}  # tensor -> time
        self.arrived: dict[tuple[int, int], int] = {}  # (tensor, device) -> time
        self.channel: dict[tuple[object, ...], int] = {}

    def ops(self, group: int) -> list[int]:
        return np.flatnonzero(self.group_of_op == group).tolist()

    def channels(self, source: int, destination: int) -> list[tuple[object, ...]]:
        return {
            "port": [("send", source), ("receive", destination)],
            "send": [("send", source)],
            "link": [("link", source, destination)],
            "free": [],
        }[self.cluster.channel]

    def duration(self, tensor: int, source: int, destination: int) -> int:
        if self.cluster.channel == "free":
            return 0
        rate = int(self.cluster.bytes_per_second[source, destination])
        size = int(self.graph.tensor_bytes[tensor])
        return int(self.cluster.latency_ns[source, destination]) + (size * 10**9 + rate - 1) // rate

    def readers(self, tensor: int) -> set[int]:
        """Groups that read a tensor, its writer's apart."""
        groups = {int(self.group_of_op[op]) for op in self.graph.consumers(tensor)}
        producer = int(self.graph.tensor_producer[tensor])
        return groups - ({int(self.group_of_op[producer])} if producer >= 0 else set())

    def reads(self, group: int) -> Iterator[tuple[int, int, int]]:
        """``(tensor, first op that reads it, home)`` for what comes from groups decided before."""
        first: dict[int, int] = {}
        for op in self.ops(group):
            for tensor in self.graph.inputs(op).tolist():
                first.setdefault(tensor, op)
        for tensor, op in sorted(first.items()):
            producer = int(self.graph.tensor_producer[tensor])
            if producer >= 0 and self.group_of_op[producer] != group:
                home = self.device.get(int(self.group_of_op[producer]))
                if home is not None:
                    yield tensor, op, home

    def start(self, group: int, device: int) -> tuple[int, dict[int, int], dict[tuple[object, ...], int]]:
        """Start of a block; arrivals of new copies; channels afterwards."""
        ops = self.ops(group)
        scheduled = [op for op in ops if not self.graph.is_variable[op]]
        start = self.free[device] if scheduled else 0
        channel, new = dict(self.channel), {}
        for tensor, op, home in self.reads(group):
            time = self.written[tensor]
            if home != device:
                if (tensor, device) in self.arrived:
                    time = self.arrived[tensor, device]
                else:
                    uses = self.channels(home, device)
                    time = max([time, *(channel.get(c, 0) for c in uses)]) + self.duration(
                        tensor, home, device
                    )
                    channel.update(dict.fromkeys(uses, time))
                    new[tensor] = time
            lead = sum(int(self.cost[o, device]) for o in ops if o < op)
            start = max(start, time - lead)
        return start, new, channel

    def append(self, group: int, device: int) -> None:
        start, new, self.channel = self.start(group, device)
        self.peak[device] = max(self.peak[device], self.bytes_while_running(group, device))
        self.device[group] = device
        self.arrived.update({(tensor, device): time for tensor, time in new.items()})
        now = start
        for op in self.ops(group):
            now += int(self.cost[op, device])
            for tensor in self.graph.outputs(op):
                self.written[tensor] = 0 if self.graph.is_variable[op] else now
        if any(not self.graph.is_variable[op] for op in self.ops(group)):
            self.free[device] = now

    def live_bytes(self, device: int) -> int:
        """Memory held on a device by the decided groups."""
        return self._held_bytes(device, self.device, self.arrived.keys(), set(self.device))

    def bytes_while_running(self, group: int, device: int) -> int:
        """Memory of a device while a group that is not decided yet runs there: nothing of what it reads is freed."""
        arrived = self.arrived.keys() | {(tensor, device) for tensor in self.start(group, device)[1]}
        held = self._held_bytes(device, self.device | {group: device}, arrived, set(self.device))
        return held + self._inner_peak_bytes(group)

    def _held_bytes(
        self, device: int, home_of: dict[int, int], arrived: Set[tuple[int, int]], done: set[int]
    ) -> int:
        """Memory on a device when some groups are placed, and some have read what they read."""
        graph, total = self.graph, 0
        for tensor in range(graph.num_tensors):
            size, producer = int(graph.tensor_bytes[tensor]), int(graph.tensor_producer[tensor])
            readers = self.readers(tensor)
            waiting = bool(readers - done)
            if producer < 0:
                total += size * any(home_of.get(g) == device for g in readers)
                continue
            home = home_of.get(int(self.group_of_op[producer]))
            stays = graph.is_variable[producer] or graph.tensor_is_output[tensor]
            if home == device and graph.op_update_of[producer] < 0 and (stays or waiting):
                total += size
            if (tensor, device) in arrived and waiting:
                total += size
        return total

    def _inner_peak_bytes(self, group: int) -> int:
        """Most that the tensors which nobody else reads, and workspaces, take while the ops of a group run."""
        graph, ops, peak = self.graph, self.ops(group), 0
        for now in ops:
            live = int(graph.op_workspace_bytes[now])
            for op in ops:
                permanent = graph.is_variable[op] or graph.op_update_of[op] >= 0
                for tensor in graph.outputs(op):
                    if permanent or graph.tensor_is_output[tensor] or self.readers(tensor):
                        continue
                    last = max([op, *graph.consumers(tensor).tolist()])
                    live += int(graph.tensor_bytes[tensor]) * (op <= now <= last)
            peak = max(peak, live)
        return peak

    def device_fields(
        self, group: int, placed: Sequence[int], reference_ns: int, block_ns: float
    ) -> np.ndarray:
        """``DEVICE_FIELDS`` about a group before clipping, ``[devices, fields]``; placed: -1, or where a group is."""
        devices, ops = range(len(self.cluster)), self.ops(group)
        allowed = self.problem.allowed[ops].all(axis=0)
        cost = [int(self.cost[ops, d].sum()) for d in devices]
        starts, new = zip(*((s, n) for s, n, _ in (self.start(group, d) for d in devices)), strict=True)
        first_start = min(s for d, s in enumerate(starts) if allowed[d])
        first_finish = min(s + cost[d] for d, s in enumerate(starts) if allowed[d])
        reads = list(self.reads(group))
        homes = {tensor: home for tensor, _, home in reads}
        readable = sum(int(self.graph.tensor_bytes[tensor]) for tensor in homes)
        parents = {
            int(self.group_of_op[p])
            for op in ops
            for t in self.graph.inputs(op).tolist()
            if (p := int(self.graph.tensor_producer[t])) >= 0
        } - {group}
        children = {g for op in ops for t in self.graph.outputs(op) for g in self.readers(t)} - {group}
        rows = []
        for d in devices:
            capacity = int(self.cluster.capacity_bytes[d])
            moved = sum(int(self.graph.tensor_bytes[t]) for t in new[d])
            rows.append([
                (starts[d] - first_start) / block_ns,
                (starts[d] + cost[d] - first_finish) / block_ns,
                cost[d] / block_ns,
                sum(self.duration(t, homes[t], d) for t in new[d]) / block_ns,
                starts[d] / reference_ns,
                self.free[d] / reference_ns,
                moved / readable if readable else 0.0,
                share([self.device[g] for g in parents if g in self.device], d),
                share([placed[g] for g in children if placed[g] >= 0], d),
                (capacity - self.live_bytes(d)) / capacity,
                (capacity - self.bytes_while_running(group, d)) / capacity,
                (capacity - self.peak[d]) / capacity,
                placed[group] == d,
                allowed[d] and allowed.sum() == 1,
                allowed[d],
            ])  # fmt: skip
        return np.array(rows, np.float64)


def share(homes: list[int], device: int) -> float:
    """Share of the homes that are a device, added up one by one."""
    total = 0.0
    for home in homes:
        total += (home == device) / len(homes)
    return total
