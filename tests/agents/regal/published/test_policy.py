"""The network: graphs of a batch do not see each other, decisions have the probabilities that they say."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

pytest.importorskip("torch")

import torch

from opgym.agents.networks.weights import weights_of
from opgym.agents.regal.published import encoder
from opgym.agents.regal.published.beta_heads import BetaHeads
from opgym.agents.regal.published.graph_features import GraphFeatures
from opgym.agents.regal.published.instance import BINS, Instance
from opgym.agents.regal.published.policy import Batch, Policy
from opgym.agents.regal.published.shape import Shape

from ..problems import capped, order, placement, tasks, with_variables

MESSAGES = Shape("messages", 8, 2, True, True, True)
NETWORKS = {
    "messages": MESSAGES,
    "no edges": replace(MESSAGES, edge_messages=False),
    "sequence": replace(MESSAGES, encoder="sequence"),
}


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(0)


def loud(policy):
    """A policy with large weights, so that what it sees changes what it does."""
    with torch.no_grad():
        for weight in policy.parameters():
            weight.copy_(torch.randn_like(weight))
    return policy


def test_messages_are_the_same_however_many_edges_are_taken_at_a_time(monkeypatch):
    torch.manual_seed(0)
    messages = encoder.MessageRound(8, 1)
    nodes, edge_features = torch.randn(20, 8), torch.randn(50, 1)
    writer, reader = torch.randint(20, (2, 50))
    with torch.no_grad():
        together = messages(nodes, writer, reader, edge_features)
        monkeypatch.setattr(encoder, "_EDGES_AT_A_TIME", 7)
        torch.testing.assert_close(messages(nodes, writer, reader, edge_features), together)


@pytest.mark.parametrize("network", NETWORKS)
def test_graphs_of_a_batch_do_not_see_each_other(network):
    policy = loud(Policy(NETWORKS[network]))
    instances = [Instance.of(problem) for problem in (*tasks(), with_variables())]
    together = policy.encoder(Batch.of(instances).graphs)
    alone = torch.cat([policy.encoder(Batch.of([instance]).graphs) for instance in instances])
    assert torch.allclose(together, alone, atol=1e-5)


def test_the_numbering_of_ops_says_nothing_to_messages():
    policy, instance = loud(Policy(MESSAGES)), Instance.of(placement())
    features = instance.features
    new = np.random.default_rng(0).permutation(12)  # new number of each op
    old = np.argsort(new)
    moved = GraphFeatures(features.nodes[old], new[features.edges], features.edge_features)
    before = policy.encoder(Batch.of([instance]).graphs)
    behind = policy.encoder(Batch.of([replace(instance, features=moved)]).graphs)
    assert torch.allclose(before[old], behind, atol=1e-5)


@pytest.mark.parametrize("network", NETWORKS)
def test_what_an_encoder_sees(network):
    policy, instance = loud(Policy(NETWORKS[network])), Instance.of(placement())
    features = instance.features
    before = policy.encoder(Batch.of([instance]).graphs)
    others = {
        "bytes of edges": replace(features, edge_features=features.edge_features[::-1].copy()),
        "edges": replace(features, edges=features.edges[::-1].copy()),
        "nodes": replace(features, nodes=features.nodes[::-1].copy()),
    }
    changed = {
        what: not torch.allclose(before, policy.encoder(Batch.of([replace(instance, features=other)]).graphs))
        for what, other in others.items()
    }
    seen = {
        "messages": {"bytes of edges", "edges", "nodes"},
        "no edges": {"edges", "nodes"},
        "sequence": {"nodes"},
    }
    assert {what for what, change in changed.items() if change} == seen[network]


def test_the_task_is_seen():
    policy = loud(Policy(MESSAGES))
    batches = [Batch.of([Instance.of(placement(objective))]) for objective in ("peak_memory", "step_time")]
    assert batches[0].two_devices.all()
    memory, time = (policy.encoder(batch.graphs) for batch in batches)
    assert not torch.allclose(memory, time)


@pytest.mark.parametrize("autoregressive", [True, False])
def test_probabilities_of_all_decisions_about_a_priority_add_up(autoregressive):
    heads = loud(BetaHeads(8, autoregressive=autoregressive))
    nodes = torch.randn(1, 8) / 4
    every = torch.zeros(BINS**2, 1, 6, dtype=torch.long)
    every[:, 0, 4:] = torch.tensor(list(product(range(BINS), repeat=2)))
    log_prob, _ = heads.log_prob(nodes, torch.tensor([False]), every)
    probability = log_prob.exp().reshape(BINS, BINS)
    assert float(probability.detach().sum()) == pytest.approx(1, abs=1e-5)
    product_of_marginals = probability.sum(1, keepdim=True) * probability.sum(0, keepdim=True)
    assert torch.allclose(probability, product_of_marginals, atol=1e-5) != autoregressive


def test_samples_have_the_probabilities_that_the_policy_says():
    heads = loud(BetaHeads(8))
    nodes, two = torch.randn(2, 8) / 8, torch.tensor([False, True])
    bins = heads.sample(nodes, two, 1_000, torch.Generator().manual_seed(1))
    assert (bins[:, 0, :4] == 0).all()
    log_prob, entropy = heads.log_prob(nodes, two, bins)
    assert torch.allclose(-log_prob.mean(0), entropy.mean(0), rtol=0.1)
    again = heads.sample(nodes, two, 1_000, torch.Generator().manual_seed(1))
    assert torch.equal(bins, again)


def test_one_device_is_asked_for_priorities_only():
    heads = loud(BetaHeads(8))
    nodes, bins = torch.randn(1, 8), torch.randint(BINS, (1, 6))
    other = bins.clone()
    other[0, :4] = (other[0, :4] + 1) % BINS
    for two, alike in ((False, True), (True, False)):
        flag = torch.tensor([two])
        assert (
            torch.equal(heads.log_prob(nodes, flag, bins)[0], heads.log_prob(nodes, flag, other)[0]) == alike
        )


def test_untrained_proposals_are_nearly_uniform():
    policy = Policy(replace(MESSAGES, value_head=False))
    for problem in tasks():
        instance = Instance.of(problem)
        genes = instance.genes(policy.propose(instance))
        mean = genes[:, 0] / genes.sum(axis=1)
        assert np.abs(mean - 0.5).max() < 0.1
        assert np.abs(genes.sum(axis=1) - 2).max() < 1  # of the uniform distribution a + b is 2


def test_a_proposal_is_the_most_likely_one_decision_after_the_other():
    policy = loud(Policy(replace(MESSAGES, autoregressive=False)))
    instance = Instance.of(capped())
    batch, bins = Batch.of([instance]), torch.from_numpy(policy.propose(instance))
    nodes = policy.encoder(batch.graphs)
    best, _ = policy.heads.log_prob(nodes, batch.two_devices, bins)
    others = policy.heads.sample(nodes, batch.two_devices, 200, torch.Generator().manual_seed(0))
    assert (policy.heads.log_prob(nodes, batch.two_devices, others)[0] <= best + 1e-4).all()


def test_means_over_graphs():
    batch = Batch.of([Instance.of(order()), Instance.of(with_variables())])
    sizes = batch.graphs.sizes
    values = torch.arange(2 * sum(sizes), dtype=torch.float32).reshape(2, -1)
    expected = torch.stack([part.mean(1) for part in torch.split(values, list(sizes), dim=1)], dim=1)
    assert torch.allclose(batch.mean_of(values), expected)


def test_weights_make_the_same_policy():
    policy, instance = loud(Policy(MESSAGES)), Instance.of(placement())
    again = Policy.of(MESSAGES, weights_of(policy))
    assert np.array_equal(policy.propose(instance), again.propose(instance))
    with pytest.raises(RuntimeError):
        Policy.of(replace(MESSAGES, rounds=3), weights_of(policy))
