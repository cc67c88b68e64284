"""From what is decided of ops to the distributions of genes."""

import numpy as np
import pytest

from opgym.agents.regal.published.instance import BINS, Instance
from opgym.agents.regal.task import Task
from opgym.agents.search.keys import betas

from ..problems import capped, order, placement, with_variables


def drawn(instance, seed=0):
    return np.random.default_rng(seed).integers(BINS, size=(len(instance.features.nodes), 6))


def beta(pair):
    mean, share = (np.asarray(pair) + 0.5) / BINS
    return betas(mean, share)


def test_tasks():
    found = [Task.of(problem) for problem in (order(), placement(), capped())]
    assert found == [Task("peak_memory", 1), Task("peak_memory", 2), Task("step_time", 2)]
    assert [task.fields.tolist() for task in found] == [[0, 0], [0, 1], [1, 1]]


def test_one_device_has_priorities_only():
    instance = Instance.of(order())
    bins = drawn(instance)
    genes = instance.genes(bins)
    assert genes.shape == (instance.encoding.genes, 2) == (12, 2)
    assert genes == pytest.approx(np.stack([beta(row[4:]) for row in bins]))


def test_two_devices_have_affinities_first():
    instance = Instance.of(placement())
    bins = drawn(instance)
    genes = instance.genes(bins)
    assert len(genes) == 3 * 12
    affinities = genes[instance.encoding.affinities].reshape(12, 2, 2)
    for op in range(12):
        assert affinities[op, 0] == pytest.approx(beta(bins[op, :2]))
        assert affinities[op, 1] == pytest.approx(beta(bins[op, 2:4]))
    assert genes[instance.encoding.priorities] == pytest.approx(np.stack([beta(row[4:]) for row in bins]))


def test_ops_that_share_a_device_share_the_mean_and_variables_have_no_priority():
    instance = Instance.of(with_variables())
    encoding, bins = instance.encoding, drawn(instance)
    genes = instance.genes(bins)
    affinities = genes[encoding.affinities].reshape(-1, 2, 2)
    sizes = np.bincount(encoding.group)
    group = int(np.argmax(sizes))
    assert sizes[group] > 1
    mean = bins[encoding.group == group].mean(axis=0)
    assert affinities[group, 1] == pytest.approx(beta(np.floor(mean[2:4] + 0.5)))
    assert genes[encoding.priorities] == pytest.approx(np.stack([beta(bins[op, 4:]) for op in encoding.ops]))


def test_transfers_stay_uniform():
    problem = placement(cluster="2xP100")
    instance = Instance.of(problem)
    transfers = instance.genes(drawn(instance))[instance.encoding.transfers]
    assert len(transfers)
    assert (transfers == 1).all()
