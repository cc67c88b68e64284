"""The policy against what is said of it: alike devices are treated alike, and nothing is known of what comes later."""

import numpy as np
import pytest

pytest.importorskip("torch")

import torch

from opgym import agents, datasets
from opgym.agents.placer.construction import most_likely, sampled
from opgym.agents.placer.instance import Instance
from opgym.agents.placer.policy import Policy
from opgym.agents.placer.ppo import advantages
from opgym.agents.placer.shape import Shape
from opgym.errors import InvalidProblemError
from opgym.graphs import Cluster
from opgym.outcome import Outcome, Verdict
from opgym.problems import Budget, Placement, PlacementProblem

from ...problems.instances import BYTE_PER_NS, accelerator, cpu, dag
from ...problems.instances import problem as posed
from ..networks.test_every_placer import chains, make

SMALL = Shape(devices=16, groups=32, width=8, rounds=2, heads=2)


def policy(seed=0, scale=1000.0):
    """A policy with random weights, and preferences that are strong enough to be seen."""
    made = Policy.untrained(SMALL, seed)
    with torch.no_grad():
        made.score.weight.mul_(scale)
    return made


def on(cluster, graph="zoo/rnnlm-2l-train"):
    return Instance.of(PlacementProblem(datasets.load(graph), Cluster.parse(cluster)), SMALL)


@pytest.mark.parametrize("cluster", ["2xP100", "1xP100+2xV100@nvlink", "16xP100"])
def test_learns_from_the_probabilities_that_were_drawn_by(cluster):
    graph, net = on(cluster), policy()
    found = sampled(net, graph, 3, np.random.default_rng(0))
    with torch.no_grad():
        says = net(graph, *(torch.from_numpy(a) for a in (found.devices, found.legal, found.chosen)))
    assert torch.allclose(says.exp(), torch.from_numpy(found.probability), atol=1e-4)
    assert found.probability.min() < 0.2 / len(found.probability[0, 0])


def test_nothing_is_known_of_what_comes_later():
    graph, net = on("4xP100"), policy()
    found = sampled(net, graph, 2, np.random.default_rng(1))
    arrays = [torch.from_numpy(a) for a in (found.devices, found.legal, found.chosen)]
    at = len(graph) // 2
    other = arrays[2].clone()
    other[:, at:] = (other[:, at:] + 1) % 4
    with torch.no_grad():
        before, after = net(graph, *arrays), net(graph, *arrays[:2], other)
    assert torch.equal(before[:, : at + 1], after[:, : at + 1])
    assert not torch.equal(before[:, at + 1 :], after[:, at + 1 :])


def test_devices_that_are_alike_are_treated_alike():
    net = policy()
    one, other = on("1xP100+2xV100@nvlink"), on("2xV100+1xP100@nvlink")
    turned = [2, 0, 1]  # of each device of the first, which it is of the second
    found = sampled(net, one, 2, np.random.default_rng(2))
    arrays = [torch.from_numpy(a) for a in (found.devices, found.legal, found.chosen)]
    back = np.argsort(turned)
    mirrored = [arrays[0][:, :, back], arrays[1][:, :, back], torch.tensor(turned)[arrays[2]]]
    with torch.no_grad():
        assert torch.allclose(net(one, *arrays)[:, :, back], net(other, *mirrored), atol=1e-5)


def test_the_first_of_alike_devices_is_as_likely_as_any():
    found = sampled(policy(), on("4xP100"), 1, np.random.default_rng(0))
    assert np.allclose(found.probability[0, 0], 0.25)


def test_the_most_likely_placement_takes_the_best_device_each_time():
    found = most_likely(policy(), on("2xP100@nvlink"))
    assert np.array_equal(found.chosen, found.probability.argmax(-1))
    assert 0 < found.chosen.mean() < 1


def test_no_group_goes_where_it_may_not_run():
    limited = dag({i: [i - 1] if i else [] for i in range(6)}, unsupported={1: "cpu", 4: "accelerator"})
    graph = Instance.of(posed(limited, [accelerator(), cpu(), accelerator()], "step_time", [10] * 6), SMALL)
    found = sampled(policy(), graph, 20, np.random.default_rng(0))
    rows, groups = np.indices(found.chosen.shape)
    assert found.legal[rows, groups, found.chosen].all()
    assert not found.legal.all()
    assert (found.probability[~found.legal] == 0).all()


def test_each_placement_is_compared_with_the_mean_of_the_others():
    gains = torch.tensor([0.1, 0.4, -0.3, 0.2])
    above = torch.stack([gain - (gains.sum() - gain) / 3 for gain in gains])
    assert torch.allclose(advantages(gains), above / above.square().mean().sqrt())
    assert advantages(torch.tensor([0.0] * 50 + [9.0])).max() == 3
    assert advantages(torch.tensor([1.0, 1.0 + 1e-6])).abs().max() < 1e-3  # as good as each other


def test_what_does_not_fit_is_worse_the_more_it_does_not():
    graph = Instance.of(chains(), SMALL)
    reference = graph.tables.reference.value
    gains = [
        graph.gain(Outcome(value, "ns", verdict, over))
        for value, verdict, over in (
            (reference / 2, Verdict.OK, 0.0),
            (reference, Verdict.OK, 0.0),
            (reference, Verdict.OUT_OF_MEMORY, 0.1),
            (reference, Verdict.OUT_OF_MEMORY, 0.5),
        )
    ]
    assert gains == pytest.approx([np.log(2), 0, -1.1, -1.5])


def test_learns_to_keep_chains_together_on_any_number_of_devices():
    options = {"width": 16, "epochs": 4}
    trained = make("gdp-plus", **options).fit([chains()], steps=600, seed=0)
    shown = trained.solve(chains(), Budget(evaluations=1)).outcome.value
    drawn = [
        chains().evaluate(Placement(d)).value for d in np.random.default_rng(0).integers(0, 2, (200, 12))
    ]
    assert shown < np.quantile(drawn, 0.1)
    wide = Cluster.uniform((accelerator(),) * 12, BYTE_PER_NS)
    longer = PlacementProblem(chains(9).graph, wide, costs=chains(9).costs)
    assert trained.solve(longer, Budget(evaluations=1)).outcome.ok


def test_one_sample_has_nothing_to_be_compared_with():
    with pytest.raises(InvalidProblemError, match="samples"):
        agents.make("gdp-plus", samples=1)
