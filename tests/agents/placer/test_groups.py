"""What the policy decides at once."""

import numpy as np
import pytest

from opgym import datasets
from opgym.agents.placer.groups import _cut, decision_groups
from opgym.graphs import Cluster
from opgym.problems import PlacementProblem
from opgym.problems.grouping import colocation_units, of_units

from ..networks.test_every_placer import chains, colocated


def problem(graph, cluster="4xP100"):
    return PlacementProblem(datasets.load(graph), Cluster.parse(cluster))


def work(posed, groups):
    return np.bincount(groups, posed.cost_ns.min(axis=1)) / posed.cost_ns.min(axis=1).sum()


def test_small_graphs_are_decided_unit_by_unit():
    for posed in (chains(), colocated()):
        assert np.array_equal(decision_groups(posed, 256), colocation_units(posed.graph))


@pytest.mark.parametrize("most", [8, 64, 256])
@pytest.mark.parametrize(
    "graph", ["zoo/rnnlm-2l-train", "zoo/inception-v3-b32-train", "synthetic/layered?n=600&seed=1"]
)
def test_there_are_few_and_units_are_whole(graph, most):
    posed = problem(graph)
    groups = decision_groups(posed, most)
    assert most / 4 <= groups.max() + 1 <= most
    assert np.array_equal(
        np.unique(groups, return_index=True)[1], np.sort(np.unique(groups, return_index=True)[1])
    )
    unit = colocation_units(posed.graph)
    assert np.array_equal(of_units(groups, unit)[unit], groups)


def test_more_groups_lie_where_more_work_is():
    posed = problem("zoo/rnnlm-2l-train")
    heaviest = [work(posed, decision_groups(posed, most)).max() for most in (16, 64, 256)]
    assert heaviest[0] > 2 * heaviest[1] > 2 * heaviest[2]


def test_what_no_device_may_run_as_a_whole_is_apart():
    posed = problem("zoo/rnnlm-2l-train", "1xCPU+2xP100")
    only = problem("zoo/rnnlm-2l-train", "2xP100")
    allowed = posed.allowed.copy()
    allowed[:1000, 0] = False  # a stretch of ops may not run on the first device
    unit = colocation_units(posed.graph)
    object.__setattr__(posed, "allowed", of_units(allowed, unit)[unit])
    groups = decision_groups(posed, 64)
    for group in range(groups.max() + 1):
        rows = posed.allowed[groups == group]
        assert (rows == rows[0]).all()
    assert groups.max() > decision_groups(only, 64).max() / 2


def test_runs_are_of_about_equal_work_and_in_order():
    rng = np.random.default_rng(0)
    units = 200
    parent, position = np.sort(rng.integers(0, 5, units)), rng.permutation(units)
    weight = rng.random(units) * 10
    run = _cut(parent, np.arange(units), weight, position, 45)
    assert run.max() + 1 <= 45
    totals, counts = np.bincount(parent, weight), np.zeros(5, int)
    for one in range(5):
        mine = np.flatnonzero(parent == one)
        ordered = mine[np.argsort(position[mine])]
        changes = np.flatnonzero(np.diff(run[ordered]))
        counts[one] = len(np.unique(run[mine]))
        assert len(changes) + 1 == counts[one]  # each run is a stretch of the order
        loads = np.bincount(np.unique(run[mine], return_inverse=True)[1], weight[mine])
        assert loads.max() <= totals[one] / counts[one] + 2 * weight.max()
    assert np.corrcoef(counts, totals)[0, 1] > 0.95
