"""The earliest-finish estimate once more: slow, from the rules alone, by brute force on the graph."""

from collections.abc import Iterator

import numpy as np

from opgym.problems import PlacementProblem


class NaiveEstimate:
    """Groups appended in decision order; every figure by brute force."""

    def __init__(self, problem: PlacementProblem, group_of_op: np.ndarray) -> None:
        self.graph, self.cluster, self.cost = problem.graph, problem.cluster, problem.cost_ns
        self.group_of_op = group_of_op
        self.device: dict[int, int] = {}
        self.free = [0] * len(self.cluster)
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
        graph, total = self.graph, 0
        for tensor in range(graph.num_tensors):
            size, producer = int(graph.tensor_bytes[tensor]), int(graph.tensor_producer[tensor])
            readers = self.readers(tensor)
            waiting = bool(readers - set(self.device))
            if producer < 0:
                total += size * any(self.device.get(g) == device for g in readers)
                continue
            home = self.device.get(int(self.group_of_op[producer]))
            stays = graph.is_variable[producer] or graph.tensor_is_output[tensor]
            if home == device and graph.op_update_of[producer] < 0 and (stays or waiting):
                total += size
            if (tensor, device) in self.arrived and waiting:
                total += size
        return total
