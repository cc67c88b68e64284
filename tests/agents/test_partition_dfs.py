"""Graph partitioning with depth-first order: the parts of METIS, the order of ``dfs``."""

import numpy as np
import pytest

from opgym import agents
from opgym.agents.heuristics.metis import partition
from opgym.agents.heuristics.partition_dfs import depth_first_priority
from opgym.datasets import load
from opgym.graphs import Cluster
from opgym.problems import Budget, Placement, PlacementProblem, SchedulingProblem

GRAPH = "synthetic/ws?costs=normal&seed=1000000"


def _two(objective: str, capacity_bytes: int | None = None) -> PlacementProblem:
    cluster = Cluster.parse("2xP100:free")
    if capacity_bytes is not None:
        cluster = cluster.with_capacity(capacity_bytes)
    return PlacementProblem(load(GRAPH), cluster, objective)


def test_on_one_device_it_is_the_depth_first_order() -> None:
    problem = SchedulingProblem(load(GRAPH))
    found, dfs = (agents.make(name).solve(problem) for name in ("partition-dfs", "dfs"))
    assert found.solution.op.tolist() == dfs.solution.op.tolist()
    assert (found.outcome, found.evaluations) == (dfs.outcome, 1)


def test_peaks_are_split_by_bytes_and_run_depth_first() -> None:
    problem = _two("peak_memory")
    found = agents.make("partition-dfs").solve(problem)
    assert found.solution.device.tolist() == partition(problem, 1.0, 1).tolist()
    assert set(found.solution.device.tolist()) == {0, 1}
    assert (found.evaluations, found.note) == (1, "balanced by bytes")
    order = agents.make("dfs").solve(SchedulingProblem(problem.graph)).solution.op
    ranks = np.argsort(-found.solution.priority, kind="stable")
    assert ranks.tolist() == order.tolist()


def test_step_times_are_split_by_time_unless_memory_says_otherwise() -> None:
    roomy = agents.make("partition-dfs").solve(_two("step_time"))
    assert (roomy.evaluations, roomy.note) == (1, "balanced by time")
    limit = max(roomy.outcome.details["peak_bytes"]) - 1
    tight = agents.make("partition-dfs").solve(_two("step_time", limit))
    assert tight.evaluations > 1
    assert tight.note in ("balanced by time and bytes", "balanced by bytes")
    only_one = agents.make("partition-dfs").solve(_two("step_time", limit), Budget(evaluations=1))
    assert not only_one.outcome.ok
    assert only_one.outcome.better_than(tight.outcome) is False


def test_variables_come_first() -> None:
    graph = load("example/rnn-train")
    priority = depth_first_priority(graph)
    assert (priority[graph.is_variable] == 1).all()
    assert graph.is_variable.any()
    assert len(np.unique(priority[~graph.is_variable])) == (~graph.is_variable).sum()
    assert priority[~graph.is_variable].max() == 0


def test_another_seed_of_metis_may_split_otherwise() -> None:
    problem = _two("peak_memory")
    found = {agents.make("partition-dfs", seed=seed).solve(problem).outcome.value for seed in range(1, 9)}
    assert len(found) > 1


@pytest.mark.parametrize("objective", ["max_load", "latency"])
def test_objectives_without_an_order_are_skipped(objective: str) -> None:
    reason = agents.make("partition-dfs").skip_reason(_two(objective))
    assert reason == f"does not optimise {objective}"


def test_it_is_there_to_be_compared_with() -> None:
    solver = agents.make("partition-dfs")
    assert solver.control
    assert {PlacementProblem, SchedulingProblem} == set(solver.problem_types)
    problem = _two("peak_memory")
    assert isinstance(solver.solve(problem).solution, Placement)
