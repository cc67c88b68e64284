"""The incremental estimate equals a slow one, and the node observation suffices for list scheduling."""

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings

from opgym.datasets import example
from opgym.envs import GraphPlacementEnv
from opgym.envs.placement.features import DEVICE_FIELDS
from opgym.graphs import Graph, GraphBuilder

from .instances import mixed_support, play, random_graph, table_cluster, table_costs
from .naive_estimate import NaiveEstimate
from .placement_games import refinements

FIELD = {field.name: i for i, field in enumerate(DEVICE_FIELDS)}
CLUSTERS = ("1xP100", "2xP100", "3xP100:send", "3xP100:link", "1xCPU+2xP100@nvlink", "2xP100@free")


def labels(seed: int, graph: Graph) -> Any:
    """Random groups that do not split colocation groups; they may form cycles."""
    rng = np.random.default_rng(seed)
    label = rng.integers(6, size=graph.num_ops)
    for group in range(graph.num_groups):
        label[graph.op_group == group] = 100 + group
    return label


@pytest.mark.parametrize("grouping", ["op", "layer", "metis:5", "labels"])
@pytest.mark.parametrize("cluster", CLUSTERS)
def test_estimate_equals_the_naive_one(cluster: str, grouping: str) -> None:
    for seed in range(3):
        graph = random_graph(seed)
        groups = labels(seed, graph) if grouping == "labels" else grouping
        env = GraphPlacementEnv(graph, cluster=cluster, groups=groups)
        naive = NaiveEstimate(env.problem, env.groups)
        rng = np.random.default_rng(seed)
        env.reset()
        for group in range(env.num_groups):
            estimate = env.fork().estimate
            for device in range(len(env.problem.cluster)):
                start, moved_bytes, moved_ns = estimate.preview(group, device)
                expected, new, _ = naive.start(group, device)
                assert start == expected
                assert moved_bytes == sum(int(graph.tensor_bytes[t]) for t in new)
                homes = {tensor: home for tensor, _, home in naive.reads(group)}
                assert moved_ns == sum(naive.duration(t, homes[t], device) for t in new)
            device = int(rng.integers(len(env.problem.cluster)))
            env.step(device)
            naive.append(group, device)
            estimate = env.fork().estimate
            assert estimate.free_ns == naive.free
            assert estimate.finish_ns == max(naive.free)
            assert estimate.live_bytes == [naive.live_bytes(d) for d in range(len(env.problem.cluster))]


@settings(max_examples=60, deadline=None)
@given(refinements())
def test_device_fields_equal_naive_ones(game: tuple[GraphPlacementEnv, int]) -> None:
    """Of any problem, in both games about one group, bit by bit."""
    env, seed = game
    rng, devices = np.random.default_rng(seed), len(env.problem.cluster)
    total_ns = env.problem.cost_ns.sum(axis=0)
    able = env.problem.allowed.all(axis=0)
    assume(able.any())  # else the reference is mixed, which has a test of its own
    reference_ns = max(int(total_ns[able].min()), 1)
    low, high = (np.array([getattr(f, name) for f in DEVICE_FIELDS]) for name in ("low", "high"))
    observation, _ = env.reset(seed=seed)
    over, step = False, 0
    while not over:
        group = step % env.num_groups
        if group == 0:
            naive = NaiveEstimate(env.problem, env.groups)
        placed = env.fork().device.tolist()
        # The mean block is that of the environment: reference_ns / groups.
        fields = naive.device_fields(group, placed, reference_ns, reference_ns / env.num_groups)
        expected = np.clip(fields, low, high).astype(np.float32)
        assert observation[: devices * len(DEVICE_FIELDS)].tobytes() == expected.tobytes(), (step, fields)
        observation, _, over, _, _ = env.step(rng.integers(-1, devices))
        naive.append(group, int(env.fork().device[group]))
        step += 1


def linear_policy(env: GraphPlacementEnv, feature: str) -> Any:
    """A policy that sees nothing but the observation: -1 times one field, and -1000 where not allowed."""
    devices = len(env.problem.cluster)
    weights = np.zeros((devices, *env.observation_space.shape))
    bias = np.full(devices, -1000.0)
    for d in range(devices):
        weights[d, d * len(DEVICE_FIELDS) + FIELD[feature]] = -1
        weights[d, d * len(DEVICE_FIELDS) + FIELD["allowed"]] = 1000
    return lambda observation: int(np.argmax(weights @ observation + bias))


GRAPHS = {
    "rnn-train": example.rnn_train,
    "two-branch": example.two_branch,
    "random-1": lambda: random_graph(1),
    "random-2": lambda: random_graph(2, training=False),
    "mixed-support": mixed_support,
}
TASKS = [
    (graph, cluster)
    for graph in GRAPHS
    for cluster in ("2xP100", "4xP100", "1xCPU+3xP100@nvlink", "8xP100:link")
    if graph != "mixed-support" or "CPU" in cluster  # one of its ops runs on CPUs only
]


@pytest.mark.parametrize(("graph", "cluster"), TASKS)
def test_linear_policy_is_earliest_start_scheduling(graph: str, cluster: str) -> None:
    env = GraphPlacementEnv(GRAPHS[graph](), cluster=cluster)
    choose, naive, ties = linear_policy(env, "start_delay"), NaiveEstimate(env.problem, env.groups), 0
    observation, _ = env.reset()
    for group in range(env.num_groups):
        mask = env.action_masks()
        starts = [naive.start(group, d)[0] if mask[d] else np.inf for d in range(len(mask))]
        earliest = int(np.argmin(starts))  # the lowest device of several
        ties += starts.count(min(starts)) > 1
        assert choose(observation) == earliest
        observation = env.step(earliest)[0]
        naive.append(group, earliest)
    assert ties > 0  # else this would say nothing about ties


def test_a_nanosecond_decides() -> None:
    """Delays are exact where times in units of the reference would round to equal float32 numbers."""
    b = GraphBuilder("test", "close")
    x = [b.tensor(bytes=0) for _ in range(3)]
    for tensor in x:
        b.op("Op", outputs=[tensor])
    graph = b.build()
    costs = table_costs([10**12 + 1, 10**12, 10**12])
    env = GraphPlacementEnv(graph, cluster=table_cluster(2), costs=costs)
    choose = linear_policy(env, "start_delay")
    env.reset()
    env.step(0)
    observation = env.step(1)[0]
    starts = observation[: 2 * len(DEVICE_FIELDS)].reshape(2, -1)[:, FIELD["start"]]
    assert starts[0] == starts[1]
    assert choose(observation) == 1


def test_earliest_finish_prefers_the_fast_device() -> None:
    env = GraphPlacementEnv(random_graph(0), cluster="1xCPU+1xP100")
    choose = linear_policy(env, "finish_delay")
    _, info = play(env, lambda observation, info: choose(observation))
    worked = np.array(info["outcome"].details["busy_ns"])
    assert worked[1] > 0
    everything_on_cpu = env.problem.cost_ns[:, 0].sum()
    assert info["step_time_ns"] < everything_on_cpu / 10


def test_block_by_hand() -> None:
    """Two groups of two ops: the second block starts so that its second op finds the tensor it reads."""
    b = GraphBuilder("test", "blocks")
    first, middle, other, last = (b.tensor(bytes=size) for size in (30, 40, 7, 1))
    b.op("A", outputs=[first])  # group 0, 100 ns
    b.op("B", inputs=[first], outputs=[middle])  # group 0, 50 ns
    b.op("C", outputs=[other])  # group 1, 20 ns
    b.op("D", inputs=[first, other], outputs=[last])  # group 1, 10 ns
    costs = table_costs([100, 50, 20, 10])
    env = GraphPlacementEnv(b.build(), cluster=table_cluster(2), costs=costs, groups=[0, 0, 1, 1])
    env.reset()
    env.step(0)
    estimate = env.fork().estimate
    # On device 0 it waits for the device. On device 1 the tensor is written at 100 and sent in 5 + 30 ns; D
    # reads it, and C runs 20 ns before D.
    assert [estimate.preview(1, d)[0] for d in (0, 1)] == [150, 115]
    observation = env.step(1)[0]
    estimate = env.fork().estimate
    assert estimate.start_ns == [0, 115]
    assert estimate.free_ns == [150, 145]
    assert observation[-1] == 1.0


def test_memory_by_hand() -> None:
    """Workspace, a tensor inside a block, a copy, and an output that stays."""
    b = GraphBuilder("test", "memory")
    weight = b.tensor(bytes=1_000, role="parameter")
    x, inner, y, z = (
        b.tensor(bytes=100),
        b.tensor(bytes=30),
        b.tensor(bytes=50),
        b.tensor(bytes=20, is_output=True),
    )
    b.op("A", inputs=[weight], outputs=[x], workspace_bytes=7)
    b.op("B", inputs=[x], outputs=[inner])
    b.op("C", inputs=[inner], outputs=[y])
    b.op("D", inputs=[x, y], outputs=[z])
    env = GraphPlacementEnv(b.build(), cluster=table_cluster(2, 2_000), costs=table_costs([1, 1, 1, 1]),
                            groups=[0, 1, 1, 2])  # fmt: skip
    env.reset()
    env.step(0)
    estimate = env.fork().estimate
    assert (estimate.live_bytes, estimate.peak_bytes) == ([1_100, 0], [1_107, 0])
    observation = env.step(1)[0]  # brings a copy of x (100), writes y (50), holds inner (30) meanwhile
    estimate = env.fork().estimate
    assert (estimate.live_bytes, estimate.peak_bytes) == ([1_100, 150], [1_107, 180])
    device = observation[: 2 * len(DEVICE_FIELDS)].reshape(2, -1)
    assert device[1, FIELD["free_memory"]] == np.float32(1850 / 2000)
    assert device[0, FIELD["free_memory_after"]] == np.float32((2000 - 1100 - 50 - 20) / 2000)
    assert device[1, FIELD["free_memory_least"]] == np.float32(1820 / 2000)
    env.step(1)  # everything is read: only the weight and the output stay
    assert env.fork().estimate.live_bytes == [1_000, 20]
