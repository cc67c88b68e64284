"""GDP's networks against slow code of their definitions."""

import math
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("torch")

import torch

from opgym.agents.gdp.attention import SegmentAttention, Superposition
from opgym.agents.gdp.encoder import SageLayer
from opgym.agents.gdp.gdp import Gdp
from opgym.agents.gdp.instance import Instance
from opgym.agents.gdp.policy import Policy
from opgym.agents.gdp.ppo import Ppo, Recipe
from opgym.agents.networks.placing.ops import neighbours
from opgym.datasets import load
from opgym.errors import InvalidProblemError, UnknownIdError
from opgym.graphs import Cluster
from opgym.outcome import Outcome, Verdict
from opgym.problems import Placement, PlacementProblem

from ..edge_cases import training
from ..networks.test_every_placer import colocated, independent
from ..sb3.problems import placement

SMALL = {"width": 8, "heads": 2, "segment": 3, "layers": 2, "rounds": 2}


def shape_for(problem, **options):
    return Gdp(weights="none", **{**SMALL, **options}).network([problem])


def test_sage_takes_the_maximum_over_neighbours():
    torch.manual_seed(0)
    graph, layer = load("synthetic/er?n=30&seed=1"), SageLayer(5)
    degree, neighbour = neighbours(graph)
    assert (degree == 0).sum() < len(degree)
    ops = torch.randn(graph.num_ops, 5)
    found = layer(ops, torch.from_numpy(degree), torch.from_numpy(neighbour))
    said, at = torch.sigmoid(layer.pool(ops)), 0
    for op, count in enumerate(degree):
        heard = torch.zeros(5)
        for other in neighbour[at : at + count]:
            heard = torch.maximum(heard, said[other])
        at += count
        expected = torch.relu(layer.update(torch.cat([ops[op], heard])))
        assert torch.allclose(found[op], expected, atol=1e-6)


def naive_attention(layer, ops):
    """Segment after segment, op after op, head after head."""
    count, width = ops.shape
    part = width // layer.heads
    rows = []
    for op in range(count):
        first = op // layer.segment * layer.segment
        seen = torch.cat(
            [ops[max(0, first - layer.segment) : first].detach(), ops[first : first + layer.segment]]
        )
        key, value = layer.key_value(seen).chunk(2, dim=1)
        query, heads = layer.query(ops[op]), []
        for head in range(layer.heads):
            of_head = slice(head * part, (head + 1) * part)
            weight = torch.softmax(key[:, of_head] @ query[of_head] / math.sqrt(part), 0)
            heads.append(weight @ value[:, of_head])
        rows.append(layer.out(torch.cat(heads)))
    return torch.stack(rows)


@pytest.mark.parametrize(("count", "segment"), [(1, 4), (4, 4), (5, 4), (11, 4), (12, 4), (7, 100)])
def test_attention_sees_its_segment_and_the_one_before(count, segment):
    torch.manual_seed(0)
    layer = SegmentAttention(8, 2, segment)
    ops = torch.randn(count, 8, requires_grad=True)
    found, expected = layer(ops), naive_attention(layer, ops)
    assert torch.allclose(found, expected, atol=1e-5)
    direction = torch.randn(count, 8)
    gradients = [torch.autograd.grad((rows * direction).sum(), ops)[0] for rows in (found, expected)]
    assert torch.allclose(*gradients, atol=1e-5)  # none flows into the segment before


def test_attention_knows_no_position():
    torch.manual_seed(0)
    layer, ops = SegmentAttention(8, 2, 4), torch.randn(8, 8)
    order = torch.tensor([2, 0, 3, 1, 7, 5, 4, 6])  # within segments
    assert torch.allclose(layer(ops)[order], layer(ops[order]), atol=1e-6)


def test_memory_of_attention_grows_with_the_number_of_ops():
    layer = SegmentAttention(8, 2, 4)
    assert stored_numbers(layer, 800) < 2.1 * stored_numbers(layer, 400)


def stored_numbers(layer, count):
    """What is kept for the gradient."""
    stored = []

    def store(tensor):
        stored.append(tensor.numel())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(store, lambda tensor: tensor):
        layer(torch.randn(count, 8, requires_grad=True))
    return sum(stored)


@pytest.mark.parametrize("whole_graph", [False, True])
def test_an_untrained_gate_changes_little(whole_graph):
    torch.manual_seed(0)
    gate = Superposition(16, whole_graph=whole_graph)
    ops = torch.randn(50, 16)
    embedded = torch.nn.functional.layer_norm(torch.randn(50, 16), (16,))
    ratio = gate(ops, embedded) / ops
    assert (ratio - 1).abs().max() < 0.3
    if whole_graph:
        assert torch.allclose(ratio, ratio[:1].expand_as(ratio), atol=1e-5)
    else:
        assert (ratio[0] - ratio[1]).abs().max() > 1e-3


@pytest.mark.parametrize("superposition", ["op", "graph", "none"])
@pytest.mark.parametrize("attention", [True, False])
def test_probabilities_are_of_devices_where_a_unit_may_run(superposition, attention):
    problem = colocated()
    shape = shape_for(problem, superposition=superposition, attention=attention)
    says = Policy(shape)(Instance.of(problem, shape))
    units = Instance.of(problem, shape).units
    assert says.shape == (len(units), 8)
    assert torch.allclose(says.exp().sum(1), torch.ones(len(units)), atol=1e-6)
    allowed = np.zeros((len(units), 8), bool)
    allowed[:, :3] = units.allowed
    assert ((says.detach().numpy() > -np.inf) == allowed).all()


def test_a_unit_says_the_mean_of_its_ops():
    problem = training("step_time")
    shape = shape_for(problem, devices=2)
    torch.manual_seed(0)
    policy, instance = Policy(shape), Instance.of(problem, shape)
    embedded = policy.encoder(instance)
    ops = embedded
    for layer in policy.layers:
        ops = layer(ops, embedded)
    said, found = policy.head(ops), policy(instance)
    for unit in range(len(instance.units)):
        members = instance.units.of_op == unit
        expected = torch.log_softmax(said[torch.from_numpy(members)].mean(0), 0)
        assert torch.allclose(found[unit], expected, atol=1e-6)


def placer(problem, **recipe):
    shape = shape_for(problem, head_gain=0.1)  # at first it knows nothing
    settings = Recipe(4, 1, 0.2, "graph", 1e-2, 0.0)
    return Ppo(Policy.untrained(shape, 0), shape, replace(settings, **recipe), "cpu")


def test_what_was_better_becomes_likelier():
    problem = independent()
    ppo = placer(problem)
    instance = ppo.instance(problem)
    seen = []

    def judge(device):
        seen.append(device)
        return Outcome(100.0 - 10 * int((device == 1).sum()), "ns")  # device 1 is better for every op

    before = ppo.policy(instance).exp()[:, 1].mean()
    tried, line = ppo.update(instance, judge, np.random.default_rng(0))
    assert tried == len(seen) == 4
    assert ppo.policy(instance).exp()[:, 1].mean() > before
    assert line["charts/feasible_share"] == 1


@pytest.mark.parametrize("ratio", ["graph", "op"])
def test_the_first_step_is_that_of_reinforce(ratio):
    """Before the policy has moved ratios are 1, so the gradient is that of the score function."""
    problem = placement()
    ppo = placer(problem, ratio=ratio)
    instance = ppo.instance(problem)
    gradients = []
    ppo.descend = lambda loss, most: gradients.append(  # type: ignore[method-assign]
        torch.autograd.grad(loss, list(ppo.policy.parameters()), allow_unused=True)
    )
    drawn = []

    def judge(device):
        drawn.append(device)
        return problem.evaluate(Placement(device))

    ppo.update(instance, judge, np.random.default_rng(0))
    first = [np.flatnonzero(instance.units.of_op == unit)[0] for unit in range(len(instance.units))]
    chosen = torch.from_numpy(np.stack(drawn)[:, first].astype(np.int64)).T
    rewards = torch.tensor([instance.reward(judge(device)) for device in list(drawn)])
    advantage = rewards - rewards.mean()
    advantage = (advantage / advantage.square().mean().sqrt().clamp(min=1e-3)).clamp(-3, 3)
    log_prob = ppo.policy(instance).gather(1, chosen)
    score = log_prob.sum(0) if ratio == "graph" else log_prob.mean(0)
    expected = torch.autograd.grad(
        -(score * advantage).mean(), list(ppo.policy.parameters()), allow_unused=True
    )
    for found, wanted in zip(gradients[0], expected, strict=True):
        if wanted is not None:
            assert torch.allclose(found, wanted, atol=1e-5)


def test_what_does_not_fit_is_avoided():
    problem = independent()
    ppo = placer(problem)
    instance = ppo.instance(problem)

    def judge(device):
        bad = bool((device == 0).sum() > 3)
        return Outcome(50.0, "ns", Verdict.OUT_OF_MEMORY if bad else Verdict.OK, 0.1 if bad else 0.0)

    rng = np.random.default_rng(0)
    shares = [ppo.update(instance, judge, rng)[1]["charts/feasible_share"] for _ in range(40)]
    assert np.mean(shares[-10:]) > np.mean(shares[:10])
    assert np.mean(shares[-10:]) > 0.9


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"width": 10, "heads": 4}, "no multiple of heads"),
        ({"clip": 1.5}, "clip"),
        ({"epochs": 0}, "epochs"),
        ({"head_gain": 0.0}, "head_gain"),
        ({"segment": 0}, "segment"),
    ],
)
def test_options_that_cannot_be_are_refused(options, message):
    with pytest.raises(InvalidProblemError, match=message):
        Gdp(weights="none", **options)


def test_unknown_choices_are_refused_with_the_nearest():
    with pytest.raises(UnknownIdError, match="did you mean graph"):
        Gdp(weights="none", superposition="grph")
    with pytest.raises(UnknownIdError, match="did you mean op"):
        Gdp(weights="none", ratio="ops")


def test_the_largest_workload_is_placed_in_one_pass():
    problem = PlacementProblem(load("zoo/gnmt-4l-train"), Cluster.parse("4xP100"))
    shape = shape_for(problem, segment=128)
    ppo = Ppo(Policy.untrained(shape, 0), shape, Recipe(1, 1, 0.2, "graph", 1e-3, 0.0), "cpu")
    device = ppo.greedy(ppo.instance(problem))
    assert device.shape == (12_703,)
    assert problem.evaluate(Placement(device)).value > 0
