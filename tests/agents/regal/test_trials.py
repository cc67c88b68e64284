"""Runs of BRKGA with proposals and without."""

import numpy as np
import pytest

from opgym.agents import make
from opgym.agents.regal.published.instance import BINS, Instance, proposal_of
from opgym.agents.regal.trials import INFEASIBLE_SHARE, End, Trial, Trials
from opgym.agents.search.native import seed_of
from opgym.problems import Budget

from ..edge_cases import EDGE_CASES
from .problems import order, placement, tasks

BRKGA = make("brkga", population=20, elites=4, mutants=4)


def bins_of(instance, seed=0):
    return np.random.default_rng(seed).integers(BINS, size=(len(instance.features.nodes), 6))


@pytest.mark.parametrize("problem", [order, placement])
@pytest.mark.parametrize("initial", [False, True])
def test_a_trial_ends_where_the_solver_does(problem, initial):
    p = problem()
    instance = Instance.of(p)
    seed, made = seed_of(np.random.default_rng(5)), proposal_of(instance, bins_of(instance), initial)
    with Trials(BRKGA, 300, threads=1) as trials:
        plain, proposed = trials.run([Trial(instance, seed), Trial(instance, seed, made)])
    for end, proposal in ((plain, None), (proposed, made)):
        solver = make("brkga", population=20, elites=4, mutants=4, proposal=proposal)
        result = solver.solve(p, Budget(evaluations=300), np.random.default_rng(5))
        assert (end.value, end.overflow_share) == (result.outcome.value, 0)


def test_proposals_are_for_mutants_and_only_if_asked_for_the_first_generation():
    instance = Instance.of(placement())
    bins = bins_of(instance)
    assert proposal_of(instance, bins, False).initial is None
    both = proposal_of(instance, bins, True)
    assert np.array_equal(both.initial, both.mutants)
    assert np.array_equal(both.mutants, instance.genes(bins))


def test_ends_do_not_depend_on_threads():
    instances = [Instance.of(problem) for problem in tasks()]
    wanted = [Trial(i, seed, proposal_of(i, bins_of(i, seed), True)) for i in instances for seed in range(3)]
    found = []
    for threads in (1, 3):
        with Trials(BRKGA, 100, threads=threads) as trials:
            found.append(trials.run(wanted))
    assert found[0] == found[1]


def test_what_does_not_fit_costs_more_and_is_graded():
    plain = End(100, 0.0)
    costs = [End(*end).cost(plain) for end in ((90, 0.0), (100, 0.0), (100, 0.01), (120, 0.5))]
    assert costs == pytest.approx([0.9, 1.0, 1.01 + INFEASIBLE_SHARE, 1.7 + INFEASIBLE_SHARE])
    assert End(50, 0.0).cost(End(100, 0.2)) == 0.5
    assert End(0, 0.0).cost(End(0, 0.0)) == 0


def test_an_end_that_does_not_fit_says_by_how_much():
    p = EDGE_CASES["memory_nowhere"]("step_time")
    with Trials(BRKGA, 40, threads=1) as trials:
        (end,) = trials.run([Trial(Instance.of(p), seed_of(np.random.default_rng(5)))])
    outcome = (
        make("brkga", population=20, elites=4, mutants=4)
        .solve(p, Budget(evaluations=40), np.random.default_rng(5))
        .outcome
    )
    assert (end.value, end.overflow_share) == (outcome.value, pytest.approx(outcome.overflow_share))
    assert end.overflow_share > 0
