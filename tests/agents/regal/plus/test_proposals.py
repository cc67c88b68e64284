"""From positions and devices to the distributions of genes."""

import numpy as np
import pytest

from opgym import _core
from opgym.agents.regal.plus.instance import Instance
from opgym.agents.regal.plus.proposals import Expected, genes_of
from opgym.agents.search.keys.proposal import distribution

from ..problems import capped, order, placement, with_variables


def expected(instance, seed=0):
    rng = np.random.default_rng(seed)
    ops = instance.problem.graph.num_ops
    return Expected(rng.uniform(0.05, 0.95, ops), rng.uniform(0.01, 0.3, ops), rng.random(ops))


def test_priorities_have_the_mean_and_spread_that_is_expected():
    instance = Instance.of(order())
    said = expected(instance)
    a, b = genes_of(instance.encoding, said).T
    assert a / (a + b) == pytest.approx(1 - said.position, abs=1 / 128)
    share = 1 / (a + b + 1)
    assert np.abs(np.log2(share / said.share)).max() <= 0.25 + 1e-9
    wider = genes_of(instance.encoding, said, spread=2.0).sum(axis=1)
    assert (wider < a + b).all()


@pytest.mark.parametrize("probability", [0.0, 0.03, 0.25, 0.5, 0.75, 0.97, 1.0])
def test_the_larger_affinity_names_device_1_as_often_as_is_expected(probability):
    instance = Instance.of(placement())
    ops = instance.problem.graph.num_ops
    said = Expected(np.full(ops, 0.5), np.full(ops, 1 / 3), np.full(ops, probability))
    genes = genes_of(instance.encoding, said)
    drawn = _core.draw_keys(distribution(genes, len(genes), 0.0, "genes"), 4_000, 1).reshape(4_000, -1)
    first, second = drawn[:, instance.encoding.affinities].reshape(4_000, -1, 2).T
    assert float((second > first).mean()) == pytest.approx(probability, abs=0.03)


def test_one_half_is_uniform():
    instance = Instance.of(placement())
    ops = instance.problem.graph.num_ops
    said = Expected(np.full(ops, 0.5), np.full(ops, 1 / 3), np.full(ops, 0.5))
    assert (genes_of(instance.encoding, said)[instance.encoding.affinities] == 1).all()


def test_ops_that_share_a_device_share_the_mean_probability():
    instance = Instance.of(with_variables())
    encoding, said = instance.encoding, expected(instance)
    affinities = genes_of(encoding, said)[encoding.affinities].reshape(-1, 2, 2)
    for group in np.unique(encoding.group):
        mean = said.device_1[encoding.group == group].mean()
        second_is_likelier = affinities[group, 1, 0] >= affinities[group, 0, 0]
        assert second_is_likelier == (np.floor(mean * 32 + 0.5) >= 16)


def test_transfers_stay_uniform():
    instance = Instance.of(placement(cluster="2xP100"))
    transfers = genes_of(instance.encoding, expected(instance))[instance.encoding.transfers]
    assert len(transfers)
    assert (transfers == 1).all()


@pytest.mark.parametrize("problem", [order, placement, capped, with_variables])
def test_keys_that_are_drawn_lie_around_the_most_likely_ones(problem):
    instance = Instance.of(problem())
    encoding, said = instance.encoding, expected(instance)
    likely = instance.most_likely(said)
    drawn = instance.drawn(said, 400, 0.25, np.random.default_rng(1))
    assert drawn.shape == (400, encoding.genes)
    assert drawn.dtype == likely.dtype == np.float32
    assert likely[encoding.priorities] == pytest.approx(1 - said.position[encoding.ops], abs=1e-6)
    assert drawn[:, encoding.priorities].mean(0) == pytest.approx(likely[encoding.priorities], abs=0.1)
    if encoding.affinities.stop:
        flipped = drawn[:, encoding.affinities] != likely[encoding.affinities]
        assert float(flipped.mean()) == pytest.approx(0.25, abs=0.03)
    none = instance.drawn(said, 3, 0.0, np.random.default_rng(1))
    assert (none[:, encoding.affinities] == likely[encoding.affinities]).all()
