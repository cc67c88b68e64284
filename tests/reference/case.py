"""A small instance, written down by names, and what a simulator says about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from opgym.benchmark.reference_simulator import ReferenceRun, simulate
from opgym.graphs import Cluster, DeviceProfile, Graph, GraphBuilder, Simulator

#: A bandwidth at which a byte takes a nanosecond.
BYTE_PER_NS = 10**9


def device_profile(name: str = "A") -> DeviceProfile:
    """A device whose times come with the graph."""
    return DeviceProfile(name, "accelerator", {}, 0, capacity_bytes=10**6)


def cluster(
    devices: int = 1,
    channel: str = "port",
    *,
    latency: int | Sequence[Sequence[int]] = 0,
    bandwidth: int | Sequence[Sequence[int]] = BYTE_PER_NS,
    classes: str = "",
) -> Cluster:
    """A cluster; ``classes`` names the class of each device by a letter."""
    shape = (devices, devices)
    return Cluster(
        tuple(device_profile(letter) for letter in classes or "A" * devices),
        np.broadcast_to(np.array(latency, np.int64), shape),
        np.broadcast_to(np.array(bandwidth, np.int64), shape),
        channel,
    )


def play_reference(graph, cluster, cost, device, priority=None, transfer_priority=None) -> ReferenceRun:
    """Runs the plain Python simulator."""
    run = simulate(graph, cluster, cost, device, priority, transfer_priority)
    return replace(run, transfers=sorted(run.transfers))


def play_core(graph, cluster, cost, device, priority=None, transfer_priority=None) -> ReferenceRun:
    """Runs the C++ simulator; the figures in the form of the reference."""
    simulator = Simulator(graph, cluster, np.asarray(cost, np.int64))
    run = simulator.run(device, priority, transfer_priority=transfer_priority, timeline=True)
    timeline = run.timeline
    assert timeline.op_device.tolist() == np.asarray(device).tolist()
    sent = (
        timeline.transfer_tensor,
        timeline.transfer_source,
        timeline.transfer_destination,
        timeline.transfer_start_ns,
        timeline.transfer_end_ns,
    )
    memory = (timeline.memory_time_ns, timeline.memory_device, timeline.memory_bytes)
    return ReferenceRun(
        makespan_ns=run.makespan_ns,
        dynamic_peak_bytes=run.dynamic_peak_bytes.tolist(),
        resident_bytes=run.resident_bytes.tolist(),
        busy_ns=run.busy_ns.tolist(),
        transfer_ns=run.transfer_ns.tolist(),
        op_start_ns=timeline.op_start_ns.tolist(),
        op_end_ns=timeline.op_end_ns.tolist(),
        transfers=sorted(zip(*(column.tolist() for column in sent), strict=True)),
        memory=list(zip(*(column.tolist() for column in memory), strict=True)),
    )


@dataclass(frozen=True)
class Played:
    """Figures of a run, by the names of the case."""

    graph: Graph
    run: ReferenceRun

    def span(self, op: str) -> tuple[int, int]:
        """Start and end of an op."""
        v = self.graph.op_names.index(op)
        return self.run.op_start_ns[v], self.run.op_end_ns[v]

    def start(self, op: str) -> int:
        """Start of an op."""
        return self.span(op)[0]

    @property
    def sent(self) -> dict[tuple[str, int], tuple[int, int]]:
        """Start and end of each transfer, by tensor and destination."""
        names = self.graph.tensor_names
        found = {(names[t], d): (start, end) for t, _, d, start, end in self.run.transfers}
        assert len(found) == len(self.run.transfers), "a tensor was sent to one device twice"
        return found

    def live(self, device: int = 0) -> list[tuple[int, int]]:
        """(time, bytes) after each round that changed the memory of a device."""
        return [(time, size) for time, d, size in self.run.memory if d == device]


@dataclass
class Row:
    """One op of a case."""

    name: str
    reads: list[str]
    writes: dict[str, int]
    cost: int | Sequence[int]
    on: int
    workspace: int = 0
    elementwise: bool = False
    updates: str = ""
    priority: float = 0.0
    kind: str = "work"


@dataclass
class Case:
    """Collects ops by name; tensors are made at first mention, of the bytes given where they are written."""

    in_place: bool = False
    rows: list[Row] = field(default_factory=list)
    sources: dict[str, tuple[int, str]] = field(default_factory=dict)
    outputs: set[str] = field(default_factory=set)

    def source(self, name: str, size: int, role: str = "parameter") -> None:
        """A tensor without a producer."""
        self.sources[name] = (size, role)

    def op(
        self,
        name: str,
        reads: str = "",
        writes: Mapping[str, int] | None = None,
        *,
        cost: int | Sequence[int] = 1,
        on: int = 0,
        workspace: int = 0,
        elementwise: bool = False,
        updates: str = "",
        priority: float = 0.0,
    ) -> None:
        """An op: the tensors that it reads, bytes of those it writes, its cost (by class), its device."""
        self.rows.append(
            Row(name, reads.split(), dict(writes or {}), cost, on, workspace, elementwise, updates, priority)
        )

    def variable(self, name: str, size: int, *, on: int = 0, cost: int = 0) -> None:
        """The home of a parameter; its tensor has the same name."""
        self.rows.append(Row(name, [], {name: size}, cost, on, kind="variable"))

    def output(self, *names: str) -> None:
        """Flags tensors that must survive."""
        self.outputs.update(names)

    def build(self) -> Graph:
        """The graph."""
        b = GraphBuilder(level="test", in_place=self.in_place)
        handle = {
            name: b.tensor(bytes=size, role=role, name=name, is_output=name in self.outputs)
            for name, (size, role) in self.sources.items()
        }
        for row in self.rows:
            for name, size in row.writes.items():
                handle[name] = b.tensor(bytes=size, name=name, is_output=name in self.outputs)
        file_index = {row.name: i for i, row in enumerate(self.rows)}
        for row in self.rows:
            b.op(
                row.kind,
                name=row.name,
                inputs=[handle[t] for t in row.reads],
                outputs=[handle[t] for t in row.writes],
                workspace_bytes=row.workspace,
                elementwise=row.elementwise,
                update_of=file_index[row.updates] if row.updates else None,
            )
        return b.build()

    def by_index(self, key: str, graph: Graph) -> list:
        """A field of the rows in the order of the graph's ops."""
        by_name = {row.name: getattr(row, key) for row in self.rows}
        return [by_name[name] for name in graph.op_names]

    def play(
        self,
        play: Callable[..., ReferenceRun],
        on: Cluster,
        *,
        priority: str | None = "given",
        dtype: type = np.float64,
        transfers: Mapping[tuple[str, int], float] | None = None,
    ) -> Played:
        """Runs the case.

        Args:
            play: An implementation.
            on: The cluster.
            priority: ``"given"``: those of the ops (0 unless stated, so that the lower index goes first);
                None: the default of the simulator.
            dtype: Of the priorities.
            transfers: Transfer priorities by tensor and destination, 0 where absent; None: the default.
        """
        graph = self.build()
        classes = len(on.classes)
        cost = [[c] * classes if isinstance(c, int) else list(c) for c in self.by_index("cost", graph)]
        matrix = None
        if transfers is not None:
            matrix = np.zeros((graph.num_tensors, len(on)))
            for (tensor, d), value in transfers.items():
                matrix[graph.tensor_names.index(tensor), d] = value
        return Played(
            graph,
            play(
                graph,
                on,
                np.array(cost, np.int64),
                np.array(self.by_index("on", graph), np.uint8),
                np.array(self.by_index("priority", graph), dtype) if priority == "given" else None,
                matrix,
            ),
        )
