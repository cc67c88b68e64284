"""What each of two processes does in a step: ops and sends in a fixed order, by simulation.

The processes copy tensors themselves, so a sender's core is busy meanwhile. The simulator's channels overlap with ops;
here a send is therefore an op of its own on the sender's device, in a graph made for one placement. A tensor is sent
as soon as it is there, before anything else; among several, that of the best-ranked reader goes first.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ....graphs import Cluster, Graph, GraphBuilder, Simulator
from ....graphs.profiles import PROFILES, Link
from ....problems import Placement, PlacementProblem

DEVICES = 2
_SEND = "send"


@dataclass(frozen=True)
class LinkTimes:
    """What moving a tensor through shared memory takes.

    Attributes:
        copy_ns: Fixed part of the sender's work.
        bytes_per_second: At which the sender copies.
        signal_ns: From the end of the sender's work until the receiver goes on.
    """

    copy_ns: int
    bytes_per_second: int
    signal_ns: int

    @property
    def link(self) -> Link:
        """As one link of a cluster."""
        return Link("shared-memory", self.bytes_per_second, self.copy_ns + self.signal_ns, "measured")

    def send_ns(self, size: int) -> int:
        """Time for which a send keeps its sender."""
        return self.copy_ns + -(-size * 10**9 // self.bytes_per_second)


@dataclass(frozen=True)
class Action:
    """One thing that a process does.

    Attributes:
        op: The op that it runs; -1 for a send.
        tensor: The tensor that it sends; -1 for an op.
        arrivals: How many sends of the other process it needs before.
        frees: Tensors that this process does not need afterwards.
    """

    op: int
    tensor: int
    arrivals: int
    frees: tuple[int, ...]


@dataclass(frozen=True)
class Plan:
    """A step on two processes.

    Attributes:
        actions: Of each process, in order.
        simulated_ns: What the step should take.
        sends: How many tensors move.
        sent_bytes: Their bytes.
    """

    actions: tuple[tuple[Action, ...], tuple[Action, ...]]
    simulated_ns: int
    sends: int
    sent_bytes: int


@dataclass(frozen=True)
class _WithSends:
    """A graph with its sends as ops, for one placement.

    Attributes:
        graph: Ops in the order of the original, each followed by the sends of what it writes.
        op: The original op behind each op; -1 for sends.
        tensor: The tensor that each op sends; -1 for others.
        device: Of each op.
    """

    graph: Graph
    op: NDArray[np.int64]
    tensor: NDArray[np.int64]
    device: NDArray[np.int64]


def plan_step(problem: PlacementProblem, placement: Placement, link: LinkTimes) -> Plan:
    """Simulates a step on two processes and takes each one's order from that.

    Args:
        problem: A graph on two devices, with measured costs.
        placement: A legal placement.
        link: Measured times of sends.
    """
    graph = problem.graph
    device = np.asarray(placement.device, np.int64)
    extended = _with_sends(graph, device)
    cost_ns = np.empty(extended.graph.num_ops, np.int64)
    sends = extended.op < 0
    cost_ns[~sends] = problem.cost_ns[extended.op[~sends], device[extended.op[~sends]]]
    sizes = graph.tensor_bytes[extended.tensor[sends]].tolist()
    cost_ns[sends] = [link.send_ns(size) for size in sizes]
    # No two ops of a device may start at the same time, as starts give the order.
    cost_ns[~extended.graph.is_variable] = np.maximum(1, cost_ns[~extended.graph.is_variable])

    signals = Link("signal", 10**9, link.signal_ns)
    cluster = Cluster.uniform([PROFILES["CPU"]] * DEVICES, signals, "link", "two processes")
    costs = np.where(extended.graph.is_variable, 0, cost_ns)[:, None]
    run = Simulator(extended.graph, cluster, costs).run(
        extended.device, _priorities(problem, placement, extended), timeline=True
    )
    assert run.timeline is not None
    starts = run.timeline.op_start_ns
    order = [int(op) for op in np.argsort(starts, kind="stable") if starts[op] >= 0]
    sequences = [[op for op in order if extended.device[op] == d] for d in range(DEVICES)]
    sent = [[int(extended.tensor[op]) for op in sequence if sends[op]] for sequence in sequences]
    actions = tuple(_actions(graph, extended, sequence, sent[1 - d]) for d, sequence in enumerate(sequences))
    return Plan((actions[0], actions[1]), run.makespan_ns, len(sizes), sum(sizes))


def _with_sends(graph: Graph, device: NDArray[np.int64]) -> _WithSends:
    builder = GraphBuilder(graph.level, graph.name)
    source = [builder.tensor(bytes=0) for _ in range(graph.num_tensors)]
    copy: dict[int, int] = {}
    variables = np.flatnonzero(graph.is_variable).tolist()
    # An update writes over its variable: whatever reads or sends the old value there goes first.
    before_update: dict[int, list[int]] = {variable: [] for variable in variables}
    origin: list[tuple[int, int, int]] = []
    for op in range(graph.num_ops):
        home = int(device[op])
        inputs = graph.inputs(op).tolist()
        producers = graph.tensor_producer[inputs].tolist()
        remote = [p >= 0 and int(device[p]) != home for p in producers]
        reads = [copy[t] if away else source[t] for t, away in zip(inputs, remote, strict=True)]
        writes = [source[t] for t in graph.outputs(op)]
        updated = int(graph.op_update_of[op])
        if updated >= 0:
            reads += before_update[updated]
        old = {p for p, away in zip(producers, remote, strict=True) if p in before_update and not away}
        old.discard(updated)
        for variable in old:
            before_update[variable].append(builder.tensor(bytes=0))
            writes.append(before_update[variable][-1])
        builder.op(graph.kind(op), inputs=reads, outputs=writes)
        origin.append((op, -1, home))
        for t in graph.outputs(op):
            if any(int(device[reader]) != home for reader in graph.consumers(t)):
                copy[t] = builder.tensor(bytes=0)
                writes = [copy[t]]
                if op in before_update:
                    before_update[op].append(builder.tensor(bytes=0))
                    writes.append(before_update[op][-1])
                builder.op(_SEND, inputs=[source[t]], outputs=writes)
                origin.append((-1, t, home))
    columns = np.array(origin, np.int64)
    return _WithSends(builder.build(), columns[:, 0], columns[:, 1], columns[:, 2])


def _priorities(problem: PlacementProblem, placement: Placement, extended: _WithSends) -> NDArray[np.float64]:
    """Sends before ops; ops as the placement says, by upward rank where it says nothing."""
    graph = problem.graph
    given = placement.priority
    if given is None:
        given = problem.simulator.upward_rank(placement.device)
    rank = np.empty(graph.num_ops, np.int64)
    rank[np.lexsort((np.arange(graph.num_ops), -np.asarray(given, np.float64)))] = np.arange(graph.num_ops)
    device = np.asarray(placement.device)
    priority = np.empty(extended.graph.num_ops)
    for index, (op, tensor) in enumerate(zip(extended.op.tolist(), extended.tensor.tolist(), strict=True)):
        if op >= 0:
            priority[index] = -rank[op]
        else:
            readers = graph.consumers(tensor)
            best = rank[readers[device[readers] != extended.device[index]]].min()
            priority[index] = graph.num_ops - best
    return priority


def _actions(
    graph: Graph, extended: _WithSends, sequence: list[int], incoming: list[int]
) -> tuple[Action, ...]:
    """The sequence of one process, with what it waits for and frees."""
    number = {tensor: position + 1 for position, tensor in enumerate(incoming)}
    kept = graph.tensor_is_output | (graph.tensor_producer < 0)
    kept |= graph.is_variable[graph.tensor_producer]
    last_use: dict[int, int] = {}
    steps = []
    for position, index in enumerate(sequence):
        op, tensor = int(extended.op[index]), int(extended.tensor[index])
        reads = graph.inputs(op).tolist() if op >= 0 else []
        touched = [*reads, *graph.outputs(op)] if op >= 0 else [tensor]
        steps.append((op, tensor, max((number.get(t, 0) for t in reads), default=0)))
        last_use |= dict.fromkeys(touched, position)
    frees: list[list[int]] = [[] for _ in sequence]
    for tensor, position in last_use.items():
        if not kept[tensor] and tensor not in number:
            frees[position].append(tensor)
    return tuple(
        Action(op, tensor, arrivals, tuple(frees[position]))
        for position, (op, tensor, arrivals) in enumerate(steps)
    )
