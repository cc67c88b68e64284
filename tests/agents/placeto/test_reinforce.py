"""Episodes, returns, and the step that REINFORCE takes."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("torch")

import torch

from opgym.agents.placeto import reinforce
from opgym.agents.placeto.baseline import StepBaselines
from opgym.agents.placeto.episodes import Trials, cost_of, play, returns_of, states_of
from opgym.agents.placeto.policy import Policy
from opgym.agents.placeto.reinforce import Recipe, Reinforce
from opgym.agents.placeto.shape import Shape
from opgym.datasets import load
from opgym.graphs import Cluster
from opgym.outcome import Outcome, Verdict
from opgym.problems import BudgetExhausted, Placement, PlacementProblem

from ..edge_cases import EDGE_CASES
from ..sb3.problems import placement

SHAPE = Shape(devices=3, width=4, rounds=2, aggregate="sum")
RECIPE = Recipe("op", 3, "single", "improvement", 1.0, 10, False, 1e-2, 0.0, 0)


def learner(**recipe):
    return Reinforce(Policy.untrained(SHAPE, 0), SHAPE, replace(RECIPE, **recipe), "cpu")


class Judge:
    """Keeps what it is asked."""

    def __init__(self, problem, most=10**9):
        self.problem, self.most, self.asked = problem, most, []

    def __call__(self, device):
        if len(self.asked) == self.most:
            raise BudgetExhausted("enough")
        self.asked.append(device.tolist())
        return self.problem.evaluate(Placement(device))


class Watched:
    """A policy that keeps what it is shown."""

    def __init__(self, policy):
        self.policy, self.shown = policy, []

    def __call__(self, instance, device, current):
        self.shown.append((device.numpy().copy(), current.numpy().copy()))
        return self.policy(instance, device, current)


def played(problem, seed=0, every_step=True, samples=3):
    placer, judge = learner(), Judge(problem)
    instance, watched = placer.instance(problem), Watched(placer.policy)
    trials = Trials(instance, judge)
    start = instance.coarse.drawn(np.random.default_rng(9))
    episodes = play(
        watched, instance, start, samples, trials, np.random.default_rng(seed), every_step=every_step
    )
    return instance, episodes, judge, watched, trials


@pytest.mark.parametrize("case", ["two-branch", "training_with_little_memory", "colocated_and_unsupported"])
def test_every_group_is_visited_once_and_every_placement_is_tried(case):
    problem = placement() if case == "two-branch" else EDGE_CASES[case]("step_time")
    instance, episodes, judge, watched, trials = played(problem)
    coarse = instance.coarse
    expected, device = [], np.repeat(episodes.start[:, None], 3, axis=1)
    for step, (shown, current) in enumerate(watched.shown):
        assert np.array_equal(shown, device)
        assert current.tolist() == [step] * 3
        expected.append(device.copy())
        device[step] = episodes.chosen[step]
    assert len(watched.shown) == len(coarse)
    assert np.array_equal(device, episodes.chosen)
    expected.append(device)
    found = [
        [cost_of(problem.evaluate(Placement(coarse.device_of_ops(one))), instance.reward.reference) for one in now.T]
        for now in expected
    ]  # fmt: skip
    assert np.array_equal(episodes.costs, found)
    assert coarse.allowed[np.arange(len(coarse))[:, None], episodes.chosen].all()
    # each placement is tried once, except the ends
    distinct = {tuple(one) for now in expected[:-1] for one in now.T.tolist()}
    assert trials.count == len(judge.asked) == len(distinct) + 3
    states, current = states_of(episodes, 0, len(coarse))
    assert np.array_equal(states, np.concatenate([shown for shown, _ in watched.shown], axis=1))
    assert np.array_equal(current, np.concatenate([at for _, at in watched.shown]))
    part, at = states_of(episodes, 1, 3)
    assert np.array_equal(part, states[:, 3:9])
    assert np.array_equal(at, current[3:9])


def test_what_does_not_fit_costs_more_than_what_does_and_the_more_the_less_it_fits():
    assert cost_of(Outcome(30.0, "ns"), 20.0) == 1.5
    for value in (1.0, 1e9):  # however fast or slow
        assert cost_of(Outcome(value, "ns", Verdict.OUT_OF_MEMORY, 0.5), 20.0) == 15
    assert cost_of(Outcome(1.0, "ns", Verdict.OUT_OF_MEMORY, 0.01), 20.0) == pytest.approx(10.1)


def test_for_final_rewards_ends_alone_are_tried():
    problem = placement()
    instance, episodes, judge, _, _ = played(problem, every_step=False)
    assert judge.asked == [instance.coarse.device_of_ops(end).tolist() for end in episodes.chosen.T]
    reference = instance.reward.reference
    assert episodes.costs.tolist() == [[cost_of(end, reference) for end in episodes.ends]]


def test_returns_are_discounted_sums_of_what_follows():
    costs = np.random.default_rng(0).random((6, 2))
    found = returns_of(costs, 5, 0.7)
    for step in range(5):
        expected = sum(0.7 ** (t - step) * (costs[t] - costs[t + 1]) for t in range(step, 5))
        assert np.allclose(found[step], expected)
    assert np.allclose(returns_of(costs, 5, 1.0), costs[:-1] - costs[-1])  # undiscounted, they telescope
    assert np.allclose(returns_of(costs, 5, 0.0), costs[:-1] - costs[1:])
    assert np.allclose(returns_of(costs[-1:], 3, 0.5), [-costs[-1] / 4, -costs[-1] / 2, -costs[-1]])


def test_a_baseline_is_that_of_the_same_step_in_the_last_updates():
    baselines, rng = StepBaselines(2), np.random.default_rng(0)
    returns = [rng.random((4, 3)) for _ in range(3)]
    assert np.allclose(baselines.advantages("a", returns[0]), returns[0] - returns[0].mean(1, keepdims=True))
    baselines.advantages("b", returns[2][:2])  # another graph, of other length
    baselines.advantages("a", returns[1])
    recent = np.mean([returns[1], returns[2]], axis=(0, 2))
    again = StepBaselines(2)
    again.set_state(baselines.state())
    for one in (baselines, again):
        assert np.allclose(one.advantages("a", returns[2]), returns[2] - recent[:, None])


@pytest.mark.parametrize("reward", ["improvement", "final"])
@pytest.mark.parametrize("rows", [1, 100, 2**14])
def test_the_step_is_that_of_reinforce(rows, reward, monkeypatch):
    """However many states the network is differentiated at, at once."""
    monkeypatch.setattr(reinforce, "_MOST_ROWS", rows)
    problem = placement()
    placer = learner(reward=reward, discount=0.9, entropy=0.1)
    instance = placer.instance(problem)
    parameters = list(placer.policy.parameters())
    gradients = []
    placer.descend = lambda loss, most: gradients.append(torch.autograd.grad(loss, parameters))
    placer.update(instance, Judge(problem), np.random.default_rng(0))

    trials = Trials(instance, Judge(problem))
    start = instance.coarse.single
    episodes = play(
        placer.policy, instance, start, 3, trials, np.random.default_rng(0),
        every_step=reward == "improvement",
    )  # fmt: skip
    returns = returns_of(episodes.costs, len(start), 0.9)
    loss = torch.zeros(())
    for step in range(len(start)):
        for one in range(3):
            device = torch.from_numpy(np.where(np.arange(len(start)) < step, episodes.chosen[:, one], start))
            says = placer.policy(instance, device[:, None], torch.tensor([step]))[0]
            advantage = returns[step, one] - returns[step].mean()
            loss = loss - advantage * says[episodes.chosen[step, one]]
            known = says[says > -torch.inf]
            loss = loss + 0.1 * (known.exp() * known).sum()
    for found, wanted in zip(gradients[0], torch.autograd.grad(loss / returns.size, parameters), strict=True):
        assert torch.allclose(found, wanted, atol=1e-5)


@pytest.mark.parametrize("reward", ["improvement", "final"])
def test_what_was_better_becomes_likelier(reward):
    problem = EDGE_CASES["no_edges"]("step_time")
    placer = learner(reward=reward, samples=8, standardise=True)
    instance, rng = placer.instance(problem), np.random.default_rng(0)
    lines = [placer.update(instance, Judge(problem), rng)[1] for _ in range(30)]
    rewards = [line["charts/reward"] for line in lines]
    assert np.mean(rewards[-5:]) > np.mean(rewards[:5])


def test_the_most_likely_placement_takes_the_likeliest_device_step_by_step():
    problem = PlacementProblem(load("example/rnn-train"), Cluster.parse("3xP100"))
    placer = learner(groups="metis:9")
    instance = placer.instance(problem)
    device = torch.from_numpy(instance.coarse.single)[:, None].clone()
    for group in range(len(instance.coarse)):
        device[group] = placer.policy(instance, device, torch.tensor([group])).argmax()
    expected = instance.coarse.device_of_ops(device[:, 0].numpy())
    assert np.array_equal(placer.greedy(instance), expected)
    assert len(set(expected.tolist())) > 1  # or the test shows little


def test_a_random_start_is_another_in_every_update_and_the_same_for_the_most_likely_placement():
    problem = placement()
    placer, judge, rng = learner(start="random"), Judge(problem), np.random.default_rng(0)
    instance, starts = placer.instance(problem), []
    for _ in range(3):
        starts.append(len(judge.asked))
        placer.update(instance, judge, rng)
    assert len({tuple(judge.asked[at]) for at in starts}) == 3
    placer = learner(start="random")
    assert np.array_equal(placer.greedy(instance), learner(start="random").greedy(instance))


def test_entropy_counts_less_and_less():
    problem, weights = placement(), []
    placer, rng = learner(entropy=0.5, entropy_updates=4), np.random.default_rng(0)
    instance = placer.instance(problem)
    for _ in range(6):
        line = placer.update(instance, Judge(problem), rng)[1]
        weights.append((line["losses/policy"] - line["losses/total"]) / line["losses/entropy"])
    assert weights == pytest.approx([0.5, 0.375, 0.25, 0.125, 0, 0], abs=1e-5)
    again = learner(entropy=0.5, entropy_updates=4)
    again.set_state(placer.state())
    assert again._entropy == placer._entropy == 0


def test_where_the_budget_ends_nothing_is_learned():
    problem, placer = placement(), learner()
    instance = placer.instance(problem)
    before = [parameter.detach().clone() for parameter in placer.policy.parameters()]
    with pytest.raises(BudgetExhausted):
        placer.update(instance, Judge(problem, most=5), np.random.default_rng(0))
    assert all(map(torch.equal, before, placer.policy.parameters()))
    assert placer.state()["baselines"] == {}


@pytest.mark.parametrize("case", ["one_op", "one_device", "everything_colocated"])
def test_where_there_is_little_to_decide(case):
    problem, placer = EDGE_CASES[case]("step_time"), learner(standardise=True)
    instance, judge = placer.instance(problem), Judge(problem)
    tried, line = placer.update(instance, judge, np.random.default_rng(0))
    assert tried == len(judge.asked) >= 4
    assert all(np.isfinite(value) for value in line.values())
    assert all(torch.isfinite(parameter).all() for parameter in placer.policy.parameters())
