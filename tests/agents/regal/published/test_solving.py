"""Learners of proposals as solvers: within the budget, on every problem that they do not refuse, and deterministic."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("torch")

from opgym import agents
from opgym.agents.regal.task import skip_reason
from opgym.datasets import load
from opgym.errors import InvalidProblemError
from opgym.graphs import Cluster
from opgym.problems import Budget, Objective, PlacementProblem, SchedulingProblem

from ...edge_cases import EDGE_CASES
from ..problems import QUICK, capped, order, placement, tasks, with_variables

NAMES = ["regal", "gas"]


def make(name="regal", **options):
    return agents.make(name, **{**QUICK, **options})


@pytest.fixture(scope="module")
def trained():
    everything = [*tasks(), PlacementProblem(load("example/two-branch"), Cluster.parse("1xP100"))]
    return {name: make(name).fit(everything, steps=6) for name in NAMES}


@pytest.mark.parametrize("objective", [o.value for o in Objective])
@pytest.mark.parametrize("case", EDGE_CASES)
@pytest.mark.parametrize("name", NAMES)
def test_every_kind_of_problem(name, case, objective, trained):
    p = EDGE_CASES[case](objective)
    for solver in (make(name), trained[name]):
        if (reason := solver.skip_reason(p)) is not None:
            assert len(p.cluster) > 2 or not p.objective.simulated or "was trained for" in reason
            with pytest.raises(InvalidProblemError, match=f"solver '{name}': "):
                solver.solve(p)
            continue
        result = solver.solve(p, Budget(evaluations=50))
        assert np.isfinite(result.outcome.value)
        assert p.evaluate(result.solution) == result.outcome


@pytest.mark.parametrize("evaluations", [1, 2, 41])
@pytest.mark.parametrize("name", NAMES)
def test_never_exceeds_the_budget_and_uses_it_up(name, evaluations, trained):
    for solver in (make(name), trained[name]):
        for p in tasks():
            result = solver.solve(p, Budget(evaluations=evaluations))
            assert result.evaluations <= evaluations
            assert result.evaluations == evaluations or result.proven_optimal
            assert result.curve[-1].value == result.outcome.value


@pytest.mark.parametrize("name", NAMES)
def test_no_time_still_allows_one_evaluation_and_no_evaluation_is_refused(name, trained):
    for solver in (make(name), trained[name]):
        assert solver.solve(placement(), Budget(seconds=0.0)).evaluations == 1
        with pytest.raises(InvalidProblemError, match="evaluated nothing"):
            solver.solve(placement(), Budget(evaluations=0))


@pytest.mark.parametrize("name", NAMES)
def test_the_same_seed_gives_the_same_result_whatever_the_threads(name, trained):
    for solver in (make(name), trained[name]):
        first, second = (
            replace_options(solver, threads=threads).solve(
                capped(), Budget(evaluations=90), np.random.default_rng(7)
            )
            for threads in (1, 2)
        )
        assert [(c.evaluations, c.value) for c in first.curve] == [
            (c.evaluations, c.value) for c in second.curve
        ]
        assert first.solution.device.tolist() == second.solution.device.tolist()


def replace_options(solver, **options):
    return replace(solver, **options).with_learned(solver.learned)


def test_untrained_it_learns_from_every_sample_and_stops_at_a_proof():
    result = make(samples=4).solve(placement(), Budget(evaluations=200))
    assert (
        result.note == f"untrained: {200 // QUICK['evaluations_per_sample']} proposals"
        or result.proven_optimal
    )
    one = PlacementProblem(load("example/two-branch"), Cluster.parse("1xP100"), Objective.STEP_TIME)
    proven = make().solve(one, Budget(evaluations=200))
    assert proven.proven_optimal
    assert proven.evaluations < 200


def test_trained_it_runs_brkga_with_its_proposal(trained):
    from opgym.agents.regal.published.instance import Instance, proposal_of
    from opgym.agents.regal.published.policy import Policy

    learner, p = trained["regal"], placement(seed=4)
    instance = Instance.of(p)
    proposal = proposal_of(
        instance, Policy.of(learner.learned.network, learner.learned.weights).propose(instance), False
    )
    brkga = agents.make("brkga", population=10, elites=2, mutants=3, proposal=proposal)
    expected = brkga.solve(p, Budget(evaluations=150), np.random.default_rng(3))
    result = learner.solve(p, Budget(evaluations=150), np.random.default_rng(3))
    assert [(c.evaluations, c.value) for c in result.curve] == [
        (c.evaluations, c.value) for c in expected.curve
    ]
    assert result.note == expected.note


def test_heuristics_may_be_in_the_first_generation(trained):
    p = placement(seed=4)
    for solver in (make(), trained["regal"]):
        seeded = replace_options(solver, starts=("metis",))
        assert (
            seeded.solve(p, Budget(evaluations=3)).outcome
            == agents.make("metis").solve(p, Budget(evaluations=3)).outcome
        )


def test_graphs_with_variables_links_and_orders(trained):
    p = with_variables()
    linked = PlacementProblem(p.graph, Cluster.parse("2xP100@nvlink"), Objective.PEAK_MEMORY)
    for solver in (make(), trained["regal"]):
        for problem in (p, linked, SchedulingProblem(p.graph)):
            assert solver.skip_reason(problem) is None
            assert solver.solve(problem, Budget(evaluations=60)).outcome.ok


def test_why_not():
    p = placement()
    three = PlacementProblem(p.graph, Cluster.parse("3xREGAL"), p.objective, p.costs)
    load_ = PlacementProblem(p.graph, p.cluster, Objective.MAX_LOAD, p.costs)
    untrained = make()
    assert untrained.skip_reason(three) == "proposes devices of at most 2, and this cluster has 3"
    assert untrained.skip_reason(load_) == "does not optimise max_load"
    assert untrained.skip_reason(p) is skip_reason(p) is None
    trained = untrained.fit([order()], steps=6)
    assert trained.skip_reason(order(1)) is None
    assert trained.skip_reason(p) == (
        "was trained for peak_memory on one device, and this is peak_memory on 2 devices"
    )
    one = PlacementProblem(p.graph, Cluster.parse("1xREGAL"), p.objective, p.costs)
    assert trained.skip_reason(one) is None  # the same task as an order


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"width": 1}, "width = 1"),
        ({"rounds": 0}, "rounds = 0"),
        ({"samples": 1}, "samples = 1; expected a whole number, 2 or more"),
        ({"baseline": "mean"}, "unknown baseline 'mean'; known: samples, value"),
        ({"elites": 0}, "elites = 0"),
        ({"learning_rate": 0.0}, "learning_rate = 0.0"),
        ({"entropy": -1.0}, "entropy = -1.0"),
        ({"initial": 1}, "initial = 1"),
        ({"edge_messages": "no"}, "edge_messages = 'no'"),
        ({"weights": 3}, "weights = 3"),
        ({"threads": 0}, "threads = 0"),
        ({"starts": ("no-such",)}, "unknown solver 'no-such'"),
    ],
)
def test_impossible_options_are_refused(options, message):
    with pytest.raises(Exception, match=message):
        make(**options)
    assert make(samples=1, baseline="value").samples == 1
