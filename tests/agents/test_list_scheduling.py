"""The list schedulers of the core against a naive version of the same rules."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from opgym import _core
from opgym.agents.heuristics.list_planning import mean_upward_rank
from opgym.graphs import TableCost
from opgym.problems import PlacementProblem
from opgym.problems.grouping import colocation_units

from ..reference.strategies import clusters, cost_tables, graphs
from . import naive_list_scheduling as naive


@st.composite
def planning(draw: st.DrawFn) -> tuple[PlacementProblem, np.ndarray, np.ndarray]:
    """A problem, capacities to plan with (often too small) and ranks (often equal)."""
    graph = draw(graphs(max_ops=10))
    cluster = draw(clusters(max_devices=4)).with_capacity(2**62)
    table = draw(cost_tables(graph, 1))[:, 0]
    slower = draw(st.sampled_from([1, 1, 3]))
    costs = {device.name: table * (1 if i == 0 else slower) for i, device in enumerate(cluster.classes)}
    problem = PlacementProblem(graph, cluster, costs=TableCost(costs))
    enough = int(graph.tensor_bytes.sum() + graph.op_workspace_bytes.sum()) + 1
    capacity = [
        draw(st.sampled_from([enough, enough, 12, 5, max(1, enough // 2)])) for _ in range(len(cluster))
    ]
    rank = draw(st.lists(st.integers(0, 4), min_size=graph.num_ops, max_size=graph.num_ops))
    return problem, np.array(capacity, np.int64), np.array(rank, np.int64)


def decisions(plan: _core.Plan) -> list[tuple[int, int]]:
    """(op, device) in the order of decision."""
    position, device = plan.position, plan.device
    order = [op for op in np.argsort(position, kind="stable").tolist() if position[op] >= 0]
    return [(op, int(device[op])) for op in order]


@given(planning())
@settings(max_examples=300, deadline=None)
def test_earliest_task_first_decides_like_a_search_over_all_pairs(case) -> None:
    problem, capacity, rank = case
    unit = colocation_units(problem.graph)
    plan = _core.earliest_task_first(problem.simulator.core, problem.allowed, unit, capacity, rank)
    assert decisions(plan) == naive.earliest_task_first(problem, unit, capacity, rank)


@given(planning())
@settings(max_examples=150, deadline=None)
def test_highest_level_first_decides_like_the_naive_version(case) -> None:
    problem, capacity, rank = case
    unit = colocation_units(problem.graph)
    plan = _core.highest_level_first(problem.simulator.core, problem.allowed, unit, capacity, rank)
    assert decisions(plan) == naive.highest_level_first(problem, unit, capacity, rank)


@given(planning())
@settings(max_examples=150, deadline=None)
def test_insertion_decides_like_the_naive_version(case) -> None:
    problem, capacity, _ = case
    unit = colocation_units(problem.graph)
    rank = mean_upward_rank(problem)
    plan = _core.earliest_finish_with_insertion(problem.simulator.core, problem.allowed, unit, capacity, rank)
    assert decisions(plan) == naive.earliest_finish_with_insertion(problem, unit, capacity, rank)
