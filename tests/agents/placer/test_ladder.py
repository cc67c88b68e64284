"""More evaluations of the same weights: samples, annealing, learning on."""

import numpy as np
import pytest

pytest.importorskip("torch")

from opgym import agents, datasets
from opgym.agents.placer.instance import Instance
from opgym.agents.placer.moves import LearnedMoves
from opgym.agents.placer.policy import Policy
from opgym.agents.placer.ppo import Ppo, Recipe
from opgym.agents.placer.shape import Shape
from opgym.graphs import Cluster
from opgym.problems import Budget, PlacementProblem
from opgym.problems.grouping import colocation_units

from ..networks.test_every_placer import chains, make

LADDER = ("gdp-plus", "gdp-plus-100", "gdp-plus-anneal", "gdp-plus-finetune")


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    folder = tmp_path_factory.mktemp("agents") / "agent"
    make("gdp-plus").fit([chains(4)], steps=64, seed=0).save(folder)
    return str(folder)


def test_every_rung_has_the_weights_of_gdp_plus(weights):
    looks = [
        agents.make(name, weights=weights).solve(chains(), Budget(evaluations=1), np.random.default_rng(0))
        for name in LADDER
    ]
    assert len({found.solution.device.tobytes() for found in looks}) == 1
    assert {agents.make(name, weights=weights).trained_on for name in LADDER} == {
        frozenset({chains(4).graph.fingerprint})
    }


@pytest.mark.parametrize("name", LADDER[1:])
def test_rungs_spend_what_they_are_given(name, weights):
    for evaluations in (1, 2, 37, 150):
        solver = agents.make(name, weights=weights)
        found = solver.solve(chains(), Budget(evaluations=evaluations), np.random.default_rng(0))
        assert found.evaluations == evaluations or found.proven_optimal


def test_what_rungs_spend_without_a_budget(weights):
    spent = {name: agents.make(name, weights=weights).solve(chains(12)).evaluations for name in LADDER[:2]}
    assert spent["gdp-plus"] <= 2  # in both orders
    assert spent["gdp-plus-100"] == 100


def test_more_evaluations_find_better_placements(weights):
    problem = PlacementProblem(datasets.load("zoo/rnnlm-2l-train"), Cluster.parse("2xP100"))
    first, best, annealed = (
        agents.make(name, weights=weights)
        .solve(problem, Budget(evaluations=evaluations), np.random.default_rng(0))
        .outcome.value
        for name, evaluations in (("gdp-plus", 1), ("gdp-plus-100", 40), ("gdp-plus-anneal", 400))
    )
    assert annealed < best < first


def test_the_policy_moves_what_it_would_have_put_elsewhere():
    problem = PlacementProblem(datasets.load("zoo/rnnlm-2l-train"), Cluster.parse("4xP100"))
    shape = Shape(devices=16, groups=16, width=8, rounds=1, heads=1)
    placer = Ppo(Policy.untrained(shape, 0), shape, Recipe(2, 1, 0.2, 1e-3, 0.0), "cpu")
    instance = placer.instance(problem)
    assert isinstance(instance, Instance)
    moves = LearnedMoves(placer, instance, problem, 0.2)
    unit = colocation_units(problem.graph)
    group = instance.tables.blocks.group_of_op
    device = np.zeros(unit.max() + 1, np.uint8)
    rng, drawn = np.random.default_rng(0), np.zeros((len(instance), 4))
    for _ in range(2_000):
        [(members, target)] = moves.draw(device, rng)
        [moved] = np.unique(group[np.isin(unit, members)])
        assert np.isin(unit, members).sum() == (group == moved).sum()
        drawn[moved, target] += 1
    expected = placer.probabilities(instance, np.zeros(len(instance), np.int64)).astype(float)
    expected[:, 0] = 0
    assert np.abs(drawn / drawn.sum() - expected / expected.sum()).max() < 0.02
