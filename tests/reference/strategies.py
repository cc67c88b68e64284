"""Random instances of everything that the semantics speaks of, for comparisons of two implementations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from opgym.graphs import ROLES, VARIABLE, Cluster, Graph, GraphBuilder
from opgym.graphs.cluster import CHANNELS

from .case import device_profile

# Few distinct values, so that ties, coincidences of events and equal buffers are common; a few large ones.
sizes = st.sampled_from([0, 0, 1, 2, 3, 4, 4, 4, 7, 1000, 10**12])
costs = st.sampled_from([0, 0, 1, 2, 2, 3, 5, 1000, 10**13])
latencies = st.sampled_from([0, 0, 0, 1, 2, 5, 10**6])
bandwidths = st.sampled_from([10**9, 10**9, 5 * 10**8, 3 * 10**9, 10**6 + 7, 10**18])
numbers = st.one_of(
    st.sampled_from([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, 1e-45, -1e-45]),
    st.integers(-3, 3).map(float),
    st.floats(width=32, allow_nan=False),
)


@dataclass(frozen=True)
class Instance:
    """What a simulator is asked."""

    graph: Graph
    cluster: Cluster
    cost_ns: NDArray[np.int64]  # [ops, classes]
    device: NDArray[np.uint8]  # [ops]
    priority: NDArray[np.floating] | None  # [ops]
    transfer_priority: NDArray[np.float64] | None  # [tensors, devices]

    @property
    def arguments(self) -> tuple:
        """In the order in which implementations take them."""
        return (self.graph, self.cluster, self.cost_ns, self.device, self.priority, self.transfer_priority)


@st.composite
def graphs(draw: st.DrawFn, max_ops: int = 14) -> Graph:
    """Graphs with all that the semantics knows.

    Variables and updates, outputs, workspaces, in-place ops, source tensors, tensors that nobody reads, ops
    that read nothing or write nothing, several outputs per op and several edges between two ops.
    """
    in_place = draw(st.booleans())
    b = GraphBuilder(level="random", in_place=in_place)
    readable = [
        b.tensor(bytes=draw(sizes), role=draw(st.sampled_from(ROLES)), is_output=draw(st.booleans()))
        for _ in range(draw(st.integers(0, 3)))
    ]
    # Training graphs have variables; most others have none.
    variables: list[tuple[int, list[int], list[int]]] = []
    for i in range(draw(st.sampled_from([0, 0, 1, 2, 3]))):
        bytes_out = [draw(sizes) for _ in range(draw(st.sampled_from([1, 1, 1, 2])))]
        outputs = [
            b.tensor(bytes=size, role="parameter", is_output=draw(st.booleans())) for size in bytes_out
        ]
        colocated = draw(st.booleans())
        home = b.op(VARIABLE, outputs=outputs, group=f"v{i}" if colocated else None)
        variables.append((home, outputs, bytes_out))
        readable += outputs
    # An op reads mostly recent tensors (long chains), sometimes any.
    for v in range(draw(st.integers(1, max_ops))):
        reads = []
        if readable:
            near = st.integers(max(0, len(readable) - 4), len(readable) - 1)
            anywhere = st.integers(0, len(readable) - 1)
            picks = draw(st.lists(st.one_of(near, near, anywhere), max_size=4))
            reads = [readable[i] for i in picks]  # a tensor may be listed twice
        update = (
            draw(st.integers(0, len(variables) - 1)) if variables and draw(st.integers(0, 4)) == 0 else None
        )
        if update is None:
            outputs_bytes = [draw(sizes) for _ in range(draw(st.sampled_from([0, 1, 1, 1, 1, 2, 3])))]
        else:
            outputs_bytes = variables[update][2]
        outputs = [b.tensor(bytes=size, is_output=draw(st.integers(0, 5)) == 0) for size in outputs_bytes]
        b.op(
            f"kind{v % 3}",
            inputs=reads,
            outputs=outputs,
            workspace_bytes=draw(st.sampled_from([0, 0, 0, 1, 5, 10**12])),
            elementwise=draw(st.booleans()),
            update_of=None if update is None else variables[update][0],
            group=None if update is None else draw(st.sampled_from([None, f"v{update}"])),
        )
        readable += outputs
    return b.build()


@st.composite
def clusters(draw: st.DrawFn, max_devices: int = 5) -> Cluster:
    """Devices of mixed classes, every channel model, a latency and bandwidth for each ordered pair."""
    count = draw(st.integers(1, max_devices))
    channel = draw(st.sampled_from(CHANNELS))
    pairs = count * count
    latency = draw(st.lists(latencies, min_size=pairs, max_size=pairs))
    bandwidth = draw(st.lists(bandwidths, min_size=pairs, max_size=pairs))
    if draw(st.booleans()):  # the same link everywhere makes more transfers end together
        latency, bandwidth = latency[:1] * pairs, bandwidth[:1] * pairs
    return Cluster(
        tuple(device_profile(draw(st.sampled_from("AAB"))) for _ in range(count)),
        np.array(latency, np.int64).reshape(count, count),
        np.array(bandwidth, np.int64).reshape(count, count),
        channel,
    )


@st.composite
def priorities(draw: st.DrawFn, ops: int) -> NDArray[np.floating] | None:
    """None, float32 or float64, with many ties, signed zeros and infinities."""
    dtype = draw(st.sampled_from([None, np.float32, np.float64]))
    if dtype is None:
        return None
    with np.errstate(over="ignore"):
        return np.array(draw(st.lists(numbers, min_size=ops, max_size=ops)), dtype)


@st.composite
def transfer_priorities(draw: st.DrawFn, tensors: int, devices: int) -> NDArray[np.float64] | None:
    """None, or a matrix with many ties."""
    if draw(st.integers(0, 3)):
        return None
    count = tensors * devices
    values = draw(
        st.lists(st.sampled_from([0.0, -0.0, 1.0, 2.0, np.inf, -np.inf, 0.5]), min_size=count, max_size=count)
    )
    return np.array(values, np.float64).reshape(tensors, devices)


@st.composite
def placements(draw: st.DrawFn, graph: Graph, devices: int) -> NDArray[np.uint8]:
    """A device of each op; colocation groups are sometimes kept together (the simulator does not look)."""
    device = np.array(
        draw(st.lists(st.integers(0, devices - 1), min_size=graph.num_ops, max_size=graph.num_ops)), np.uint8
    )
    if draw(st.booleans()):
        for group in range(graph.num_groups):
            members = np.flatnonzero(graph.op_group == group)
            device[members] = device[members[0]]
    return device


@st.composite
def cost_tables(draw: st.DrawFn, graph: Graph, classes: int) -> NDArray[np.int64]:
    """A time for each op and class."""
    count = graph.num_ops * classes
    table = draw(st.lists(costs, min_size=count, max_size=count))
    return np.array(table, np.int64).reshape(graph.num_ops, classes)


@st.composite
def instances(draw: st.DrawFn, max_ops: int = 14, max_devices: int = 5) -> Instance:
    """Everything at once."""
    graph = draw(graphs(max_ops))
    cluster = draw(clusters(max_devices))
    return Instance(
        graph,
        cluster,
        draw(cost_tables(graph, len(cluster.classes))),
        draw(placements(graph, len(cluster))),
        draw(priorities(graph.num_ops)),
        draw(transfer_priorities(graph.num_tensors, len(cluster))),
    )


@st.composite
def orders(draw: st.DrawFn, graph: Graph) -> NDArray[np.int32]:
    """A topological order of the ops that are no variables; sometimes with the variables at any place."""
    random = draw(st.randoms(use_true_random=False))
    producers = [
        {int(u) for u in graph.tensor_producer[graph.inputs(v)] if u >= 0} for v in range(graph.num_ops)
    ]
    done = set(np.flatnonzero(graph.is_variable).tolist())
    listed = sorted(done) if draw(st.booleans()) else []
    left = [v for v in range(graph.num_ops) if v not in done]
    order = []
    while left:
        v = random.choice([v for v in left if producers[v] <= done])
        left.remove(v)
        done.add(v)
        order.append(v)
    for v in listed:
        order.insert(random.randrange(len(order) + 1), v)
    return np.array(order, np.int32)
