"""Instance-dependent random search: runs of BRKGA with random proposals, in one budget."""

from itertools import pairwise

import numpy as np
import pytest

from opgym.agents import make
from opgym.agents.search.keys import KeyEncoding, Proposal
from opgym.agents.search.keys.idrs import random_betas
from opgym.datasets import load, read
from opgym.errors import InvalidProblemError
from opgym.graphs import Cluster
from opgym.problems import Budget, Objective, PlacementProblem, SchedulingProblem

GRAPH = "synthetic/ws?n=40&seed=2"


def _problem(devices):
    if devices == 1:
        return SchedulingProblem(load(GRAPH))
    imported = read(GRAPH)
    return PlacementProblem(imported.graph, Cluster.parse("2xREGAL"), Objective.PEAK_MEMORY, imported.costs)


@pytest.mark.parametrize("devices", [1, 2])
def test_the_best_of_runs_of_brkga_with_drawn_proposals(devices):
    problem = _problem(devices)
    found = make("idrs", evaluations_per_proposal=200, population=40, elites=8, mutants=6).solve(
        problem, Budget(evaluations=500), np.random.default_rng(5)
    )
    rng = np.random.default_rng(5)
    values = []
    for evaluations in (200, 200, 100):
        proposal = Proposal(random_betas(KeyEncoding(problem).genes, rng))
        brkga = make("brkga", population=40, elites=8, mutants=6, proposal=proposal)
        values.append(brkga.solve(problem, Budget(evaluations=evaluations), rng).outcome.value)
    assert found.evaluations == 500
    assert found.outcome.value == min(values)
    assert found.note == f"3 proposals, the best is number {1 + int(np.argmin(values))}"
    assert problem.evaluate(found.solution) == found.outcome


def test_the_curve_descends_and_counts_all_runs():
    found = make("idrs", evaluations_per_proposal=100).solve(
        _problem(1), Budget(evaluations=1_000), np.random.default_rng(0)
    )
    spent = [point.evaluations for point in found.curve]
    values = [point.value for point in found.curve]
    assert spent == sorted(spent)
    assert spent[0] >= 1
    assert spent[-1] <= 1_000
    assert all(later < earlier for earlier, later in pairwise(values))
    assert values[-1] == found.outcome.value


def test_a_fixed_seed_fixes_the_course_whatever_the_threads():
    def run(seed, threads):
        solver = make("idrs", evaluations_per_proposal=300, threads=threads)
        return solver.solve(_problem(2), Budget(evaluations=900), np.random.default_rng(seed))

    one, two = run(1, 1), run(1, 2)
    assert one.outcome == two.outcome
    np.testing.assert_array_equal(one.solution.device, two.solution.device)
    assert [p.value for p in run(2, 1).curve] != [p.value for p in one.curve]


def test_without_a_budget_its_own_default_ends_it():
    assert make("idrs", evaluations=250, evaluations_per_proposal=100).solve(_problem(1)).evaluations == 250


def test_distributions_cover_the_square_evenly():
    a, b = random_betas(20_000, np.random.default_rng(0)).T
    mean, share = a / (a + b), 1 / (1 + a + b)
    for values in (mean, share):
        steps, counts = np.unique(np.round(values, 6), return_counts=True)
        np.testing.assert_allclose(steps, (np.arange(16) + 0.5) / 16, atol=1e-6)
        assert counts.min() > 20_000 / 16 * 0.85
    assert abs(np.corrcoef(mean, share)[0, 1]) < 0.03


@pytest.mark.parametrize("options", [{"evaluations_per_proposal": 0}, {"elites": 0}, {"bias": 2.0}])
def test_wrong_options_are_refused(options):
    with pytest.raises(InvalidProblemError):
        make("idrs", **options)


def test_other_objectives_are_refused():
    imported = read(GRAPH)
    problem = PlacementProblem(imported.graph, Cluster.parse("2xREGAL"), Objective.MAX_LOAD, imported.costs)
    with pytest.raises(InvalidProblemError, match="does not optimise max_load"):
        make("idrs").solve(problem)
