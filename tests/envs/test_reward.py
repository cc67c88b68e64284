"""Returns: -(value / reference), graded where infeasible, equal for terminal and dense rewards."""

from typing import Any

import numpy as np
import pytest

from opgym.datasets import example
from opgym.envs import GraphPlacementEnv
from opgym.envs.placement.reward import reference_of, score
from opgym.graphs import Cluster, GraphBuilder
from opgym.outcome import Outcome, Verdict
from opgym.problems import Objective, Placement, PlacementProblem, program_order

from .instances import (
    SHAPES,
    mixed_support,
    play_devices,
    random_graph,
    table_cluster,
    table_costs,
)

OBJECTIVES = ("step_time", "peak_memory", "max_load", "latency")


def random_devices(env: GraphPlacementEnv, seed: int) -> list[int]:
    rng = np.random.default_rng(seed)
    return [int(rng.choice(np.flatnonzero(row))) for row in env._blocks.allowed]


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("groups", ["op", "metis:6"])
@pytest.mark.parametrize("cluster", ["2xP100", "1xCPU+2xP100"])
def test_dense_rewards_sum_to_the_terminal_return(objective: str, groups: str, cluster: str) -> None:
    for seed in range(3):
        options: dict[str, Any] = {"cluster": cluster, "objective": objective, "groups": groups}
        graph = random_graph(seed, training=seed % 2 == 0)
        terminal = GraphPlacementEnv(graph, reward="terminal", **options)
        dense = GraphPlacementEnv(graph, reward="dense", **options)
        devices = random_devices(terminal, seed)
        sparse_rewards, info = play_devices(terminal, devices)
        dense_rewards, _ = play_devices(dense, devices)
        value = terminal.problem.evaluate(Placement(np.array(info["device"]))).value
        assert sparse_rewards[:-1] == [0.0] * (len(devices) - 1)
        assert sparse_rewards[-1] == pytest.approx(-value / terminal.reference, rel=1e-12)
        assert sum(dense_rewards) == pytest.approx(sum(sparse_rewards), abs=1e-9)
        assert sum(reward != 0 for reward in dense_rewards[:-1]) > 1


@pytest.mark.parametrize("reward", ["terminal", "dense"])
def test_out_of_memory_is_graded(reward: str) -> None:
    tight = GraphPlacementEnv(problem=tight_problem(), reward=reward)
    rewards, info = play_devices(tight, [0, 0, 0])  # 300 + 300 live at once: 600 of 500
    assert info["outcome"].verdict is Verdict.OUT_OF_MEMORY
    assert info["peak_bytes"].tolist() == [600, 0]
    assert sum(rewards) == pytest.approx(-(1 + 2 + 0.2), abs=1e-9)
    rewards, info = play_devices(tight, [0, 1, 0])
    assert info["outcome"].ok
    assert sum(rewards) == pytest.approx(-info["outcome"].value / 3, abs=1e-9)


def tight_problem(objective: str = "step_time") -> PlacementProblem:
    """Two results of 300 bytes and an op without any, 1 ns each, on two devices of 500 bytes."""
    b = GraphBuilder("test", "branches")
    x, y = (b.tensor(bytes=300, is_output=True) for _ in range(2))
    b.op("A", outputs=[x])
    b.op("B", outputs=[y])
    b.op("C", outputs=[])
    return PlacementProblem(b.build(), table_cluster(2, 500), Objective(objective), table_costs([1] * 3))


def test_score() -> None:
    assert score(Outcome(30.0, "ns"), 20.0) == 1.5
    assert score(Outcome(30.0, "ns", Verdict.OUT_OF_MEMORY, 0.25), 20.0) == 3.75


@pytest.mark.parametrize("reward", ["terminal", "dense"])
@pytest.mark.parametrize("steps", [None, 5, 200])
def test_refine_sums_to_the_improvement(reward: str, steps: int | None) -> None:
    env = GraphPlacementEnv(example.load("two-branch"), mode="refine", reward=reward, steps=steps)
    _, info = env.reset()
    initial, length = info["outcome"].value, steps or env.num_groups
    assert initial == env.reference  # one device
    rng = np.random.default_rng(0)
    rewards, info = play_devices(env, rng.integers(2, size=length).tolist())
    assert len(rewards) == length
    assert sum(rewards) == pytest.approx((initial - info["outcome"].value) / env.reference, abs=1e-9)
    if reward == "terminal":
        assert rewards[:-1] == [0.0] * (length - 1)


def test_refine_rewards_each_move_by_its_improvement() -> None:
    env = GraphPlacementEnv(example.load("two-branch"), mode="refine")
    _, info = env.reset()
    before = info["outcome"].value
    right = [env.problem.graph.layers[layer].startswith("right") for layer in env.problem.graph.op_layer]
    for group in range(env.num_groups):
        _, reward, _, _, info = env.step(int(right[group]))
        after = env.problem.evaluate(Placement(env.device)).value
        assert info["outcome"].value == after
        assert reward == pytest.approx((before - after) / env.reference, abs=1e-12)
        before = after
    assert before < env.reference  # the branches run side by side


def test_refine_leaves_a_bad_start_for_a_good_reward() -> None:
    """From out of memory to a placement that fits: the penalty comes back as reward."""
    env = GraphPlacementEnv(problem=tight_problem(), mode="refine")
    _, info = env.reset()
    assert info["outcome"].verdict is Verdict.OUT_OF_MEMORY
    rewards, info = play_devices(env, [0, 1, 0])
    assert info["outcome"].ok
    assert sum(rewards) == pytest.approx(1 + 2 + 0.2 - info["outcome"].value / 3, abs=1e-9)


def test_refine_starts() -> None:
    graph = random_graph(0)
    single = GraphPlacementEnv(graph, cluster="1xCPU+2xP100", mode="refine")
    single.reset()
    assert single.device.tolist() == [1] * graph.num_ops  # the first of the fastest
    given = np.full(graph.num_ops, 2)
    for initial in (given, Placement(given)):
        env = GraphPlacementEnv(graph, cluster="1xCPU+2xP100", mode="refine", initial=initial)
        env.reset()
        assert env.device.tolist() == given.tolist()
    drawn = GraphPlacementEnv(mixed_support(), cluster="1xCPU+2xP100", mode="refine", initial="random")
    starts = set()
    for seed in range(60):
        drawn.reset(seed=seed)
        starts.add(tuple(drawn.device.tolist()))
    assert len(starts) > 20
    assert {start[1] for start in starts} == {1, 2}
    assert {start[3] for start in starts} == {0}
    assert {start[0] for start in starts} == {0, 1, 2}
    drawn.reset(seed=1)
    first = drawn.device
    drawn.reset(seed=1)
    assert np.array_equal(drawn.device, first)


def test_mixed_support_start_is_allowed() -> None:
    env = GraphPlacementEnv(mixed_support(), cluster="1xCPU+1xP100", mode="refine")
    _, info = env.reset()
    assert info["outcome"].ok
    assert env.device.tolist()[3] == 0
    assert env.device.tolist()[1] == 1


def test_reference_is_all_work_on_the_fastest_device() -> None:
    graph = random_graph(0)
    cluster = Cluster.parse("1xCPU+2xP100")
    problem = PlacementProblem(graph, cluster)
    reference = reference_of(problem)
    assert reference.value == reference.time_ns == problem.cost_ns.sum(axis=0).min()
    simulated = problem.evaluate(Placement(np.ones(graph.num_ops, int)))
    assert reference.value == simulated.value
    for objective in OBJECTIVES[1:]:
        other = PlacementProblem(graph, cluster, Objective(objective))
        assert reference_of(other).value == other.evaluate(Placement(np.ones(graph.num_ops, int))).value


def test_reference_ignores_capacity() -> None:
    problem = tight_problem("peak_memory")
    assert reference_of(problem).value == 600


def test_reference_without_a_device_for_everything() -> None:
    problem = PlacementProblem(mixed_support(), Cluster.parse("1xCPU+1xP100"))
    cost = np.where(problem.allowed, problem.cost_ns, np.iinfo(np.int64).max).min(axis=1)
    reference = reference_of(problem)
    assert reference.time_ns == cost.sum()
    assert np.isfinite(reference.value)


def test_reference_of_work_that_takes_no_time() -> None:
    problem = PlacementProblem(SHAPES["zero_bytes"](), table_cluster(2), costs=table_costs([0, 0]))
    reference = reference_of(problem)
    assert (reference.time_ns, reference.value) == (1, 1.0)
    env = GraphPlacementEnv(problem=problem)
    assert play_devices(env, [0, 0])[0] == [0.0, 0.0]


def test_order_is_what_the_end_is_judged_by() -> None:
    graph, values = random_graph(3), {}
    for order in ("critical_path", "program"):
        env = GraphPlacementEnv(graph, cluster="3xP100", order=order)
        _, info = play_devices(env, random_devices(env, 0))
        priority = program_order(graph) if order == "program" else None
        assert info["outcome"] == env.problem.evaluate(Placement(np.array(info["device"]), priority))
        values[order] = info["outcome"].value
    assert values["critical_path"] != values["program"]


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_info_at_the_end(objective: str) -> None:
    graph = random_graph(0)
    env = GraphPlacementEnv(graph, objective=objective)
    _, info = env.reset()
    assert set(info) == {"action_mask", "illegal_actions"}
    _, info = play_devices(env, random_devices(env, 0))
    run = env.problem.simulate(Placement(np.array(info["device"])))
    assert info["step_time_ns"] == run.makespan_ns
    assert info["peak_bytes"].tolist() == run.peak_bytes.tolist()
    assert info["peak_bytes"].dtype == np.int64
    assert info["outcome"].unit == env.problem.objective.unit
    assert np.array_equal(info["device"], env.device)
