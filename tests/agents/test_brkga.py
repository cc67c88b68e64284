"""BRKGA and annealing on (device, priority) pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from opgym import agents, datasets
from opgym.agents import Result
from opgym.agents.search.keys import Brkga, KeyEncoding, PairAnnealing, Proposal
from opgym.errors import InvalidProblemError, UnknownIdError
from opgym.graphs import Cluster
from opgym.problems import (
    Budget,
    BudgetExhausted,
    Objective,
    Order,
    Placement,
    PlacementProblem,
    SchedulingProblem,
)
from opgym.problems.checker import check

from ..problems.exhaustive_orders import least_peak
from ..reference.strategies import graphs
from .edge_cases import EDGE_CASES
from .exhaustive_placement import best_value


@pytest.fixture(scope="module")
def order_problem() -> SchedulingProblem:
    return SchedulingProblem(datasets.load("synthetic/ws?n=80&seed=5"))


@pytest.fixture(scope="module", params=["peak_memory", "step_time"])
def joint_problem(request) -> PlacementProblem:
    imported = datasets.read("synthetic/er?n=60&seed=4")
    return PlacementProblem(imported.graph, Cluster.parse("2xREGAL"), request.param, imported.costs)


def course(result: Result[Any]) -> list[tuple[int, float]]:
    return [(point.evaluations, point.value) for point in result.curve]


@settings(max_examples=40, deadline=None)
@given(graphs(max_ops=6).filter(lambda graph: not graph.is_variable.all()))
def test_finds_the_best_order_of_small_graphs(graph):
    problem = SchedulingProblem(graph)
    result = Brkga().solve(problem, Budget(evaluations=1_000))
    assert result.outcome.value == least_peak(graph)
    assert check(problem, result.solution) == result.outcome


@pytest.mark.parametrize("objective", ["step_time", "peak_memory"])
@pytest.mark.parametrize("case", [case for case in EDGE_CASES if case != "memory_nowhere"])
def test_finds_the_best_placement_of_tiny_problems(case, objective):
    problem = EDGE_CASES[case](objective)
    result = Brkga().solve(problem, Budget(evaluations=2_000))
    assert result.outcome.ok
    # With keys of its own for transfers it may beat every placement whose transfers go by their consumers.
    assert result.outcome.value <= best_value(problem)
    assert result.outcome.value >= problem.lower_bound().value


def test_improves_on_random_keys_by_far(order_problem):
    drawn = Brkga(population=5_000, elites=1, mutants=0).solve(order_problem, Budget(evaluations=5_000))
    bred = Brkga().solve(order_problem, Budget(evaluations=5_000))
    assert drawn.curve[-1].evaluations <= 5_000
    assert bred.outcome.value < 0.9 * drawn.outcome.value


@pytest.mark.parametrize(
    "options",
    [{}, {"populations": 3, "exchange_every": 2}, {"restart_after": 2, "mutant_beta": (2.0, 0.5)}],
    ids=["plain", "populations", "restarts"],
)
def test_the_course_is_the_same_for_any_number_of_threads(joint_problem, options):
    results = [
        Brkga(threads=threads, population=30, elites=6, mutants=5, **options).solve(
            joint_problem, Budget(evaluations=1_000), np.random.default_rng(3)
        )
        for threads in (1, 2, 5)
    ]
    assert course(results[0]) == course(results[1]) == course(results[2])
    assert np.array_equal(results[0].solution.priority, results[1].solution.priority)
    assert results[0].note == results[2].note


def test_a_larger_budget_only_adds(order_problem):
    short, long = (Brkga().solve(order_problem, Budget(evaluations=n)) for n in (777, 2_000))
    assert course(long)[: len(course(short))] == course(short)
    assert all(evaluations > 777 for evaluations, _ in course(long)[len(course(short)) :])


def test_seeds_differ(order_problem):
    first, second = (
        Brkga().solve(order_problem, Budget(evaluations=300), np.random.default_rng(seed))
        for seed in range(2)
    )
    assert course(first) != course(second)


def test_children_of_elites_alone_are_nothing_new(order_problem):
    """With bias 1 a child is its elite parent; without mutants nothing new comes after the first generation."""
    result = Brkga(bias=1.0, mutants=0).solve(order_problem, Budget(evaluations=1_000))
    assert result.curve[-1].evaluations <= 100
    genes = KeyEncoding(order_problem).genes
    same = Brkga(mutants=0, proposal=Proposal(inherit=np.ones(genes))).solve(
        order_problem, Budget(evaluations=1_000)
    )
    assert course(same) == course(result)
    begun_anew = Brkga(bias=1.0, mutants=0, restart_after=1).solve(order_problem, Budget(evaluations=1_000))
    assert begun_anew.curve[-1].evaluations > 100


def test_populations_learn_from_each_other_only_by_exchange(order_problem):
    options: dict[str, Any] = {"populations": 2, "population": 40, "elites": 4, "mutants": 0}
    apart = Brkga(exchange_every=0, **options).solve(order_problem, Budget(evaluations=3_000))
    together = Brkga(exchange_every=1, **options).solve(order_problem, Budget(evaluations=3_000))
    before = 2 * 40  # the generation that no exchange has changed
    assert [c for c in course(together) if c[0] <= before] == [c for c in course(apart) if c[0] <= before]
    assert course(together) != course(apart)


def test_one_population_has_nobody_to_exchange_with(order_problem):
    budget = Budget(evaluations=600)
    alone = Brkga(exchange_every=0).solve(order_problem, budget)
    many = Brkga(exchange_every=1, exchanged=10**8).solve(order_problem, budget)
    assert course(alone) == course(many)


def test_starts_are_in_the_first_generation(order_problem):
    greedy = agents.make("greedy-freed-bytes").solve(order_problem)
    result = Brkga(starts=("greedy-freed-bytes", "dfs")).solve(order_problem, Budget(evaluations=102))
    assert result.outcome.value <= greedy.outcome.value
    assert "started from" in result.note
    # Counted twice: by the heuristics, and as individuals.
    assert Brkga(starts=("dfs",)).solve(order_problem, Budget(evaluations=1)).evaluations == 1


def test_placements_of_heuristics_are_in_the_first_generation(joint_problem):
    starts = ("m-etf", "critical-path", "metis")
    known = [agents.make(name).solve(joint_problem).outcome.value for name in starts]
    result = Brkga(starts=starts).solve(joint_problem, Budget(evaluations=400))
    assert result.outcome.value <= min(known)


@pytest.mark.parametrize("error", [BudgetExhausted, InvalidProblemError])
def test_a_start_that_gives_up_is_left_out(order_problem, monkeypatch, error):
    def give_up(self, problem, evaluator, rng):
        evaluator.evaluate(Order(problem.ops))
        raise error("enough")

    monkeypatch.setattr(type(agents.make("bfs")), "_search", give_up)
    result = Brkga(starts=("bfs", "dfs")).solve(order_problem, Budget(evaluations=150))
    assert result.evaluations == 150
    assert result.outcome.value <= agents.make("dfs").solve(order_problem).outcome.value


def test_a_start_that_does_not_exist_is_refused():
    with pytest.raises(UnknownIdError, match="greedy"):
        Brkga(starts=("greedy",))


def test_a_proposal_around_a_solution_finds_it_at_once(order_problem):
    best = Brkga().solve(order_problem, Budget(evaluations=20_000))
    keys = KeyEncoding(order_problem).encode(best.solution)
    near = np.stack([1 + 1e6 * keys, 1 + 1e6 * (1 - keys)], axis=1)
    plain = Brkga().solve(order_problem, Budget(evaluations=300))
    for proposal in (Proposal(initial=near), Proposal(mutants=near)):
        found = Brkga(proposal=proposal).solve(order_problem, Budget(evaluations=300))
        assert found.outcome.value <= 1.02 * best.outcome.value < plain.outcome.value


def test_what_fits_goes_before_what_is_fast():
    problem = EDGE_CASES["memory_for_half"]("step_time")
    result = Brkga().solve(problem, Budget(evaluations=500))
    assert result.outcome.ok
    values = [point.value for point in result.curve]
    assert values == sorted(values, reverse=True)


def test_a_problem_that_nothing_fits_gets_the_least_overflow():
    problem = EDGE_CASES["memory_nowhere"]("step_time")
    result = Brkga().solve(problem, Budget(evaluations=300))
    assert result.outcome.verdict == "out_of_memory"
    assert problem.evaluate(result.solution) == result.outcome
    assert result.curve[-1].value == result.outcome.value


def test_stops_at_the_lower_bound():
    problem = EDGE_CASES["disconnected"]("step_time")
    result = Brkga().solve(problem, Budget(evaluations=100_000))
    assert result.proven_optimal == (result.outcome.value == problem.lower_bound().value)
    assert result.proven_optimal
    assert result.evaluations < 100_000


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"population": 30}, "population = 30; expected a whole number, 35 or more"),
        ({"elites": 0}, "elites = 0"),
        ({"mutants": -1}, "mutants = -1"),
        ({"bias": 1.5}, "bias 1.5"),
        ({"bias": float("nan")}, "bias = nan"),
        ({"populations": 50}, r"\(49 x 2\) at most the 80 that are no elites"),
        ({"threads": 0}, "threads = 0"),
        ({"evaluations": 0}, "evaluations = 0"),
        ({"population": 2**31}, "population = 2147483648; expected a whole number, at most"),
        ({"restart_after": 2**40}, "restart_after = 1099511627776; expected a whole number, at most"),
        ({"threads": 100_000}, "threads = 100000; expected a whole number, at most 1024"),
        ({"bias": "0.7"}, "bias = '0.7'; expected a finite share"),
        ({"starts": "dfs"}, "starts = 'dfs'; expected a list of names of solvers"),
        ({"starts": (3,)}, "starts = .* expected a list of names of solvers"),
        ({"mutant_beta": 3}, r"mutant_beta has shape \(\)"),
        ({"initial_beta": (0, 1)}, "initial_beta holds a Beta parameter that is not positive"),
        ({"proposal": 3}, "proposal = 3; expected a Proposal"),
        ({"groups": 3}, "groups = 3; expected the name of a grouping"),
        ({"transfer_keys": "maybe"}, "transfer_keys = 'maybe'; expected true or false"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, message):
    with pytest.raises(InvalidProblemError, match=message):
        Brkga(**options)


# --- annealing on pairs


@pytest.mark.parametrize("objective", ["step_time", "peak_memory"])
@pytest.mark.parametrize("case", ["training", "memory_for_half", "colocated_and_unsupported", "disconnected"])
def test_pair_annealing_finds_the_best_placement_of_tiny_problems(case, objective):
    problem = EDGE_CASES[case](objective)
    result = PairAnnealing(temperature=0.1).solve(problem, Budget(evaluations=3_000))
    assert result.outcome.ok
    assert result.outcome.value == best_value(problem)


def test_pair_annealing_is_no_worse_than_its_starts_and_better_than_descent_from_one(joint_problem):
    best = min(
        agents.make(name).solve(joint_problem).outcome.value
        for name in PairAnnealing().starts
        if agents.make(name).skip_reason(joint_problem) is None
    )
    result = PairAnnealing().solve(joint_problem, Budget(evaluations=2_000))
    assert result.outcome.value <= best
    if joint_problem.objective is Objective.PEAK_MEMORY:  # step time meets its bound at once
        assert result.outcome.value < 0.95 * best


def test_pair_annealing_goes_on_from_a_placement():
    """Its first evaluation is that placement, and what it finds near by in three hundred moves is better."""
    problem = PlacementProblem(datasets.load("zoo/transformer-xl-2l-train"), Cluster.parse("2xP100"))
    given = agents.make("m-etf").solve(problem)
    solver = PairAnnealing(start=given.solution, groups="op", temperature=0.0)
    result = solver.solve(problem, Budget(evaluations=300))
    assert course(result)[0] == (1, given.outcome.value)
    assert result.outcome.value < given.outcome.value
    assert result.note == "started from a given placement"
    alone = PairAnnealing(start=given.solution).solve(problem, Budget(evaluations=1))
    assert alone.outcome == given.outcome
    with pytest.raises(InvalidProblemError, match="a Placement, which no file can state"):
        PairAnnealing(start="m-etf")


def test_keys_keep_the_priorities_of_a_placement():
    """Then the run is the same, transfers included; with the order in which ops start, it may be another one."""
    problem = PlacementProblem(datasets.load("zoo/transformer-xl-2l-train"), Cluster.parse("4xP100"))
    encoding = KeyEncoding(problem, "op", transfer_keys=False)
    rng = np.random.default_rng(3)
    unit = encoding.group
    for _ in range(5):
        device = rng.integers(4, size=int(unit.max()) + 1)[unit]
        placement = Placement(device, rng.random(problem.graph.num_ops))
        again = encoding.decode(encoding.encode(placement, keep_priorities=True))
        assert problem.evaluate(again) == problem.evaluate(placement)
        unordered = Placement(device)
        assert np.array_equal(encoding.encode(unordered, keep_priorities=True), encoding.encode(unordered))


def test_pair_annealing_wanders_while_it_is_hot(joint_problem):
    cold, hot = (
        PairAnnealing(temperature=t, starts=("single",)).solve(joint_problem, Budget(evaluations=1_500))
        for t in (0.0, 1e6)
    )
    early = [min(value for n, value in course(result) if n <= 400) for result in (cold, hot)]
    assert early[1] > early[0]
