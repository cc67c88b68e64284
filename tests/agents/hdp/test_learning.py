"""How HDP learns: the gradient is that of the score function, and what was better becomes likelier."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("safetensors")

import torch

from opgym import agents
from opgym.agents.hdp.drawing import Noise
from opgym.agents.hdp.grouped import allowed_of_groups, device_of_units, grouped
from opgym.agents.hdp.hdp import Hdp
from opgym.datasets import load
from opgym.errors import InvalidProblemError
from opgym.graphs import Cluster
from opgym.outcome import Outcome, Verdict
from opgym.problems import Budget, Placement, PlacementProblem

from ..networks.test_every_placer import chains, colocated, independent
from ..sb3.monitors import Recorder, Stopped
from ..sb3.problems import placement
from .problems import RECIPE, picky, placer_for, two_ops


def gradients_of(placer, loss):
    """Of the grouper's weights, and of the placer's."""
    weights = list(placer.policy.parameters())
    found = torch.autograd.grad(loss, weights, allow_unused=True)
    flat = [torch.zeros(w.numel()) if g is None else g.flatten() for g, w in zip(found, weights, strict=True)]
    first = len(list(placer.policy.grouper.parameters()))
    return torch.cat(flat[:first]), torch.cat(flat[first:])


def caught(placer):
    """The gradients of the losses that the placer would follow; it stays where it is."""
    gradients = []
    placer.descend = lambda loss, most: gradients.append(gradients_of(placer, loss))
    return gradients


def test_the_gradient_is_that_of_the_expected_reward():
    """Of all groupings of two ops and all placements of the groups, against many draws."""
    problem = two_ops()
    many = 4_000
    placer = placer_for(
        problem, replace(RECIPE, samples=many, groupings=many // 2), groups=2, devices=2, spread=2.0
    )
    instance, policy = placer.instance(problem), placer.policy
    value = {(0, 0): 5.0, (0, 1): 100.0, (1, 0): 60.0, (1, 1): 10.0}

    def reward(device):
        return -((value[tuple(device)] / 20) ** 0.5)

    says, expected = policy.grouper(instance).log_softmax(1), torch.zeros(())
    for grouping in product(range(2), repeat=2):
        group = torch.tensor([grouping])
        read = policy.placer.read(grouped(instance, group, policy.shape))
        allowed = allowed_of_groups(instance, group, 2)
        for device in product(range(2), repeat=2):
            chosen = torch.tensor([device])
            steps = policy.placer.log_probabilities(read, allowed, chosen, Noise())
            log_probability = steps.gather(2, chosen[..., None]).sum() + says.gather(1, group.T).sum()
            (of_ops,) = device_of_units(instance, group, chosen).tolist()
            expected = expected + log_probability.exp() * reward(of_ops)
    wanted = gradients_of(placer, -expected)

    gradients = caught(placer)
    tried, line = placer.update(
        instance, lambda device: Outcome(value[tuple(device.tolist())], "ns"), np.random.default_rng(0)
    )
    assert tried == many
    assert line["charts/reward"] == pytest.approx(expected.item(), abs=0.05)
    for found, exact in zip(gradients[0], wanted, strict=True):
        assert torch.linalg.vector_norm(found - exact) < 0.15 * torch.linalg.vector_norm(exact)


def test_rewards_are_compared_with_those_of_earlier_updates():
    problem = placement()
    placer = placer_for(problem)
    for rewards, expected in (
        ([-1.0, -3.0], [1.0, -1.0]),  # of the first update, with their own mean
        ([-2.0, -1.0], [0.0, 1.0]),  # then with -2
        ([-1.0, -1.0], [0.95, 0.95]),  # then with 0.9 x -2 + 0.1 x -1.5
    ):
        assert placer._advantages("a", torch.tensor(rewards)).tolist() == pytest.approx(expected)
    assert placer._advantages("b", torch.tensor([-5.0])).tolist() == [0]  # another graph, another baseline


@pytest.mark.parametrize("groupings", [1, 2, 4])
def test_what_was_better_becomes_likelier(groupings):
    problem = independent()
    placer = placer_for(problem, replace(RECIPE, groupings=groupings, learning_rate=3e-2))
    instance, seen = placer.instance(problem), []

    def judge(device):
        seen.append(int((device == 1).sum()))
        return Outcome(100.0 - 10 * seen[-1], "ns")  # device 1 is better for every op

    rng = np.random.default_rng(0)
    for _ in range(60):
        tried, line = placer.update(instance, judge, rng)
        assert tried == 4
    assert line["charts/feasible_share"] == 1
    assert np.mean(seen[-40:]) > 7.5
    assert np.mean(seen[-40:]) > np.mean(seen[:40]) + 1
    assert (placer.greedy(instance) == 1).all()


def test_what_does_not_fit_is_avoided():
    problem = independent()
    placer = placer_for(problem, replace(RECIPE, learning_rate=3e-2))
    instance = placer.instance(problem)

    def judge(device):
        bad = bool((device == 0).sum() > 3)
        return Outcome(50.0, "ns", Verdict.OUT_OF_MEMORY if bad else Verdict.OK, 0.1 if bad else 0.0)

    rng = np.random.default_rng(0)
    shares = [placer.update(instance, judge, rng)[1]["charts/feasible_share"] for _ in range(60)]
    assert np.mean(shares[-10:]) > max(0.9, np.mean(shares[:10]))


def test_entropy_keeps_decisions_open():
    problem = placement()
    entropies = []
    for weight in (0.0, 1.0):
        placer = placer_for(problem, replace(RECIPE, learning_rate=3e-2, entropy=weight), spread=3.0)
        instance, rng = placer.instance(problem), np.random.default_rng(0)
        lines = [
            placer.update(instance, lambda device: problem.evaluate(Placement(device)), rng)[1]
            for _ in range(30)
        ]
        entropies.append(lines[-1]["losses/entropy"])
        assert lines[0]["losses/entropy"] == pytest.approx(entropy_of(problem), abs=0.2)
    assert entropies[1] > entropies[0] + 0.2


def entropy_of(problem):
    """Of an untrained policy: that of its groups, and about that of three devices of which two exist."""
    placer = placer_for(problem, spread=3.0)
    says = placer.policy.grouper(placer.instance(problem)).log_softmax(1)
    return -(says.exp() * says).sum(1).mean().item() + np.log(2)


@pytest.mark.parametrize("problem", [picky, colocated, placement])
def test_every_placement_is_legal(problem):
    problem = problem()
    placer = placer_for(
        problem, replace(RECIPE, samples=32, groupings=32, noise=0.5, noise_updates=1), spread=3.0
    )
    instance, verdicts = placer.instance(problem), []

    def judge(device):
        outcome = problem.evaluate(Placement(device))
        verdicts.append(outcome.verdict)
        return outcome

    for _ in range(2):
        placer.update(instance, judge, np.random.default_rng(0))
        judge(placer.greedy(instance))
    assert set(verdicts) <= {Verdict.OK, Verdict.OUT_OF_MEMORY}
    assert len(verdicts) == 66


def test_the_most_likely_placement_is_not_drawn():
    problem = placement()
    placer = placer_for(problem)
    instance = placer.instance(problem)
    before = placer.greedy(instance)
    placer.update(instance, lambda device: problem.evaluate(Placement(device)), np.random.default_rng(0))
    again = placer_for(problem)
    assert np.array_equal(again.greedy(again.instance(problem)), before)


def test_finds_the_best_placement_of_two_chains():
    learner = agents.make(
        "hdp", weights="none", width=16, groups=6, samples=8, groupings=8, learning_rate=3e-2, noise=0.0
    )
    found = learner.solve(chains(), Budget(evaluations=400), np.random.default_rng(0))
    assert found.outcome.value == 60  # one on each device; both on one: 120


def test_noise_ends_and_an_interruption_does_not_change_when(tmp_path):
    options = {"width": 6, "grouper_width": 4, "groups": 5, "samples": 2, "weights": "none"}
    learner = agents.make("hdp", **options, noise=0.5, noise_updates=6)
    problems = [placement(), chains()]
    whole = Recorder()
    expected = learner.fit(problems, steps=24, seed=1, monitor=whole)
    latest, curve = None, []
    for part, first in enumerate((6, 14, 24)):
        folder = tmp_path / str(part)
        folder.mkdir()
        monitor = Recorder(folder, latest=latest, stop_after=1 if part < 2 else None, first=first)
        try:
            trained = learner.fit(problems, steps=24, seed=1, monitor=monitor)
        except Stopped:
            assert part < 2
        curve += monitor.curve
        latest = monitor.checkpoints[-1]
    assert curve == whole.curve
    assert trained.learned.digest == expected.learned.digest
    for other in ({"noise": 0.0}, {"noise_updates": 5}):
        assert learner.fit(problems, steps=12, seed=1).learned.digest != (
            agents.make("hdp", **{**options, "noise": 0.5, "noise_updates": 6, **other})
            .fit(problems, steps=12, seed=1)
            .learned.digest
        )
    short = agents.make("hdp", **options, noise=0.5, noise_updates=50)
    assert short.fit(problems, steps=12, seed=1).learned.digest == (
        learner.fit(problems, steps=12, seed=1).learned.digest
    )


def test_there_are_20_groups_for_each_device():
    def groups(*clusters, **options):
        problems = [PlacementProblem(placement().graph, Cluster.parse(cluster)) for cluster in clusters]
        return Hdp(weights="none", **options).network(problems).groups

    assert groups("2xP100") == 40
    assert groups("2xP100", "8xP100", "4xP100") == 160
    assert groups("2xP100", groups=7) == 7
    assert groups(devices=20) == 256


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"samples": 6, "groupings": 4}, "samples = 6 is no multiple of groupings = 4"),
        ({"width": 7}, "width = 7; expected an even number"),
        ({"groups": 257}, "groups = 257"),
        ({"groupings": 0}, "groupings = 0"),
        ({"noise": -0.1}, "noise = -0.1"),
        ({"noise_updates": -1}, "noise_updates = -1"),
        ({"baseline_decay": 1.1}, "baseline_decay = 1.1"),
        ({"most_gradient": 0.0}, "most_gradient = 0.0"),
        ({"temperature": 0.0}, "temperature = 0.0"),
        ({"most_logit": -1.0}, "most_logit = -1.0"),
        ({"kind_width": 0}, "kind_width = 0"),
        ({"grouper_width": 0}, "grouper_width = 0"),
    ],
)
def test_options_that_cannot_be_are_refused(options, message):
    with pytest.raises(InvalidProblemError, match=message):
        Hdp(weights="none", **options)


def test_a_large_graph_is_placed_and_learned_from():
    problem = PlacementProblem(load("zoo/gnmt-4l-train"), Cluster.parse("4xP100"))
    placer = placer_for(problem, replace(RECIPE, samples=2, groupings=1), groups=80, devices=4, width=32)
    instance = placer.instance(problem)
    tried, line = placer.update(
        instance, lambda device: problem.evaluate(Placement(device)), np.random.default_rng(0)
    )
    assert tried == 2
    assert np.isfinite(line["losses/total"])
    assert problem.evaluate(Placement(placer.greedy(instance))).value > 0
