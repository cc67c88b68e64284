"""Small graphs of every kind that people bring, and players."""

from collections.abc import Callable
from typing import Any

import numpy as np

from opgym.envs import GraphPlacementEnv
from opgym.graphs import VARIABLE, Cluster, Graph, GraphBuilder, TableCost
from opgym.graphs.profiles import PROFILES, Link

MEGABYTE = 10**6


def one_op() -> Graph:
    b = GraphBuilder("test", "one-op")
    b.op("Relu", outputs=[b.tensor(bytes=MEGABYTE)], flops=10**9)
    return b.build()


def no_edges() -> Graph:
    b = GraphBuilder("test", "no-edges")
    for _ in range(5):
        b.op("Relu", outputs=[b.tensor(bytes=MEGABYTE)], flops=10**9)
    return b.build()


def disconnected() -> Graph:
    b = GraphBuilder("test", "disconnected")
    for _ in range(2):
        x = b.tensor(bytes=MEGABYTE)
        b.op("Conv", outputs=[x], flops=10**9)
        b.op("Relu", inputs=[x], outputs=[b.tensor(bytes=MEGABYTE)], flops=10**8)
    return b.build()


def multi_edges() -> Graph:
    """Two tensors between the same two ops, and one read twice."""
    b = GraphBuilder("test", "multi-edges")
    x, y = b.tensor(bytes=MEGABYTE), b.tensor(bytes=2 * MEGABYTE)
    b.op("Split", outputs=[x, y], flops=10**9)
    b.op("Add", inputs=[x, y, x], outputs=[b.tensor(bytes=MEGABYTE)], flops=10**8)
    return b.build()


def zero_bytes() -> Graph:
    """A tensor with an axis of length 0, and an op that costs nothing on a free cluster."""
    b = GraphBuilder("test", "zero-bytes")
    x = b.tensor(shape=(0, 3))
    b.op("Slice", outputs=[x])
    b.op("Relu", inputs=[x], outputs=[b.tensor(shape=(0, 3))])
    return b.build()


def mixed_support() -> Graph:
    """Five ops in a row; the second cannot run on a CPU, the fourth not on a GPU."""
    b = GraphBuilder("test", "mixed-support")
    x = b.tensor(bytes=MEGABYTE, role="input")
    for i in range(5):
        y = b.tensor(bytes=MEGABYTE)
        unsupported = {1: ["cpu"], 3: ["gpu"]}.get(i, [])
        b.op("Op", inputs=[x], outputs=[y], flops=10**8, unsupported=unsupported, name=f"op{i}")
        x = y
    return b.build()


SHAPES: dict[str, Callable[[], Graph]] = {
    f.__name__: f for f in (one_op, no_edges, disconnected, multi_edges, zero_bytes)
}


def random_graph(seed: int, ops: int = 30, *, training: bool = True) -> Graph:
    """A random layered graph: fan-in up to 3, shared weights, outputs; in training variables and updates."""
    rng = np.random.default_rng(seed)
    b = GraphBuilder("test", f"random-{seed}")
    made = [b.tensor(bytes=MEGABYTE, role="input")]
    weights, homes = [], []
    for i in range(3):
        weights.append(b.tensor(bytes=int(rng.integers(1, 20)) * MEGABYTE, role="parameter"))
        if training:
            homes.append(b.op(VARIABLE, outputs=[weights[-1]], group=f"w{i}"))
    for i in range(ops):
        reads = rng.choice(made[-8:], size=min(len(made), int(rng.integers(1, 4))), replace=False).tolist()
        if rng.random() < 0.4:
            reads.append(weights[int(rng.integers(3))])
        output = b.tensor(bytes=int(rng.integers(0, 4)) * MEGABYTE, is_output=bool(rng.random() < 0.1))
        kind = ["MatMul", "Relu", "Conv", "Concat", "Foo"][int(rng.integers(5))]
        b.op(kind, inputs=reads, outputs=[output], flops=int(rng.integers(0, 5)) * 10**8,
             workspace_bytes=int(rng.integers(0, 2)) * MEGABYTE, layer=f"layer{i // 8}",
             direction="forward" if 2 * i < ops else "backward")  # fmt: skip
        made.append(output)
    for i, home in enumerate(homes):
        b.op("SGD", inputs=[weights[i], made[-1 - i]], flops=10**7, group=f"w{i}", update_of=home,
             direction="update", layer=f"layer{i}")  # fmt: skip
    return b.build()


def table_cluster(devices: int, capacity_bytes: int = 10**12, channel: str = "port") -> Cluster:
    """Equal accelerators whose times come from a table; 1 byte takes 1 ns, a transfer waits 5 ns first."""
    link = Link("test", 10**9, 5)
    profile = PROFILES["REGAL"]
    return Cluster.uniform([profile] * devices, link, channel, "table").with_capacity(capacity_bytes)


def table_costs(costs_ns: list[int]) -> TableCost:
    return TableCost({"REGAL": np.array(costs_ns)})


def play(env: Any, choose: Callable[[Any, dict[str, Any]], Any]) -> tuple[list[float], dict[str, Any]]:
    """Plays one episode; returns its rewards and the last info."""
    observation, info = env.reset()
    rewards, over = [], False
    while not over:
        observation, reward, over, truncated, info = env.step(choose(observation, info))
        assert not truncated
        rewards.append(reward)
    return rewards, info


def play_devices(env: GraphPlacementEnv, devices: list[int]) -> tuple[list[float], dict[str, Any]]:
    """Plays one episode with given devices, one per decision."""
    choices = iter(devices)
    return play(env, lambda observation, info: next(choices))
