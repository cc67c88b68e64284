"""Structured simulated annealing."""

from __future__ import annotations

import time

import numpy as np
import pytest

from opgym import agents
from opgym.agents.search.clusters import metis_levels, structured_levels, unit_level
from opgym.datasets import example
from opgym.graphs import Cluster
from opgym.problems import Budget, Objective, PlacementProblem
from opgym.problems.grouping import colocation_units

from ..problems.instances import accelerator, dag, problem
from .edge_cases import EDGE_CASES

HEURISTICS = ("single", "human-expert", "metis", "m-topo", "critical-path", "m-etf", "heft")


@pytest.fixture(scope="module")
def recurrent() -> PlacementProblem:
    return PlacementProblem(example.rnn_train(layers=3, steps=8), Cluster.parse("3xP100"))


def test_starts_from_the_best_heuristic_and_counts_what_it_cost(recurrent):
    results = [agents.make(name).solve(recurrent) for name in HEURISTICS]
    best, spent = min(r.outcome.value for r in results), sum(r.evaluations for r in results)
    started = agents.make("annealing").solve(recurrent, Budget(evaluations=spent))
    assert started.outcome.value == best
    assert started.evaluations == spent
    winner = min(results, key=lambda r: r.outcome.value).solver
    further = agents.make("annealing").solve(recurrent, Budget(evaluations=spent + 300))
    assert further.note == f"started from {winner} after {spent} evaluations"
    assert further.outcome.value < best


def test_beats_every_heuristic_clearly_on_a_recurrent_network(recurrent):
    best = min(agents.make(name).solve(recurrent).outcome.value for name in HEURISTICS)
    found = agents.make("annealing").solve(recurrent, Budget(evaluations=1000), np.random.default_rng(0))
    assert found.outcome.value < 0.98 * best


def test_spends_its_own_default_without_a_budget(recurrent):
    assert agents.make("annealing", evaluations=123).solve(recurrent).evaluations == 123
    assert agents.make("random", evaluations=12).solve(recurrent).evaluations == 12
    # the budget goes before the default
    assert (
        agents.make("annealing", evaluations=123).solve(recurrent, Budget(evaluations=50)).evaluations == 50
    )


def test_time_alone_limits_it_too(recurrent):
    begin = time.perf_counter()
    result = agents.make("annealing", evaluations=1).solve(recurrent, Budget(seconds=0.5))
    assert 0.45 < time.perf_counter() - begin < 5.0
    assert result.evaluations > 50


def test_does_not_depend_on_the_clock_without_a_time_limit(recurrent, monkeypatch):
    first = agents.make("annealing").solve(recurrent, Budget(evaluations=200), np.random.default_rng(3))
    ticks = iter(range(10**9))
    monkeypatch.setattr(time, "perf_counter", lambda: float(next(ticks)))
    second = agents.make("annealing").solve(recurrent, Budget(evaluations=200), np.random.default_rng(3))
    assert first.solution.device.tolist() == second.solution.device.tolist()
    assert [c.value for c in first.curve] == [c.value for c in second.curve]


def test_different_seeds_take_different_courses(recurrent):
    values = {
        agents.make("annealing")
        .solve(recurrent, Budget(evaluations=300), np.random.default_rng(s))
        .outcome.value
        for s in range(4)
    }
    assert len(values) > 1


def test_stops_when_it_meets_the_bound():
    p = problem(dag({v: [] for v in range(4)}), (accelerator(), accelerator()), "step_time", [10] * 4)
    result = agents.make("annealing").solve(p)
    assert result.outcome.value == p.lower_bound().value == 20
    assert result.proven_optimal
    assert result.evaluations < 50
    assert result.note.endswith("met the lower bound")


def test_the_curve_falls_and_ends_at_the_result(recurrent):
    result = agents.make("annealing").solve(recurrent, Budget(evaluations=400))
    values = [c.value for c in result.curve]
    assert values == sorted(values, reverse=True)
    assert values[-1] == result.outcome.value
    assert all(b.seconds >= a.seconds for a, b in zip(result.curve, result.curve[1:], strict=False))


@pytest.mark.parametrize("seed", range(5))
def test_finds_what_fits_where_no_heuristic_does(seed):
    """Bin packing: parameters of 6, 5, 5, 4, 4 and 4 bytes on two devices of 14 fit only as 6 + 4 + 4 | 5 + 5 + 4."""
    sizes = [6, 5, 5, 4, 4, 4]
    graph = dag({v: [] for v in range(6)}, sizes=[0] * 6, parameters=dict(enumerate(sizes)))
    p = problem(graph, (accelerator(14), accelerator(14)), "step_time", [1] * 6)
    result = agents.make("annealing").solve(p, Budget(evaluations=500), np.random.default_rng(seed))
    assert result.outcome.ok
    loads = np.bincount(result.solution.device, weights=sizes)
    assert loads.tolist() == [14, 14]


@pytest.mark.parametrize("objective", [o.value for o in Objective])
def test_improves_every_objective(objective):
    p = PlacementProblem(example.rnn_train(layers=2, steps=4), Cluster.parse("2xP100"), Objective(objective))
    start = agents.make("random", evaluations=1).solve(p, Budget(evaluations=1)).outcome.value
    result = agents.make("annealing").solve(p, Budget(evaluations=300))
    assert result.outcome.ok
    assert result.outcome.value < start


# --- the clusters that it moves


def test_every_level_divides_the_units(recurrent):
    units = int(colocation_units(recurrent.graph).max()) + 1
    levels = [*structured_levels(recurrent), *metis_levels(recurrent), unit_level(recurrent)]
    assert len({level.name for level in levels}) == len(levels)
    for level in levels:
        assert sorted(level.unit.tolist()) == list(range(units))
        assert all(len(level.members(c)) > 0 for c in range(len(level)))


def test_levels_know_layers_directions_and_parameters(recurrent):
    graph = recurrent.graph
    unit = colocation_units(graph)
    levels = {level.name: level for level in structured_levels(recurrent)}
    assert len(levels["block"]) == len(graph.layers)
    first = np.unique(unit, return_index=True)[1]
    for name, attributes in (("block", 1), ("block x direction", 2)):
        for c in range(len(levels[name])):
            ops = first[levels[name].members(c)]
            assert len({int(graph.op_layer[v]) for v in ops}) == 1
            assert attributes == 1 or len({graph.op_direction[v] > 0 for v in ops}) == 1
    assert len(levels["block x direction x parameter"]) > len(levels["block x direction"])


def test_only_metis_parts_know_no_layers():
    solver = agents.make("annealing-metis")
    p = EDGE_CASES["training"]("step_time")
    assert {level.name for level in solver.levels(p)} <= {"metis:16", "metis:64", "metis:256", "unit"}
    assert "human-expert" not in solver.starts
