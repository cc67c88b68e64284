"""The expert: what it finds is worth what it says, better than what was drawn, and near to what was expected."""

from dataclasses import replace

import numpy as np
import pytest

from opgym.agents.regal.plus.improvement import Improver
from opgym.agents.regal.plus.instance import Instance
from opgym.agents.regal.plus.proposals import Expected
from opgym.datasets import read
from opgym.graphs import Cluster
from opgym.problems import Objective, PlacementProblem, SchedulingProblem

from ..problems import capped, order, placement, with_variables

IMPROVER = Improver(samples=4, flips=0.1, moves=300, evaluations=200, temperature=0.01, reconcile=True)


def expected(instance, seed=0):
    rng = np.random.default_rng(seed)
    ops = instance.problem.graph.num_ops
    device_1 = rng.random(ops)
    device_1[instance.structure.anchor] = 0.0  # else what is found is mirrored
    return Expected(rng.uniform(0.1, 0.9, ops), np.full(ops, 0.1), device_1)


def improved(instance, improver=IMPROVER, seed=1):
    return improver.improved(instance, expected(instance), np.random.default_rng(seed))


@pytest.mark.parametrize("problem", [order, placement, capped, with_variables])
def test_it_is_better_than_what_was_drawn(problem):
    instance = Instance.of(problem())
    target, end, drawn = improved(instance)
    keys = instance.drawn(expected(instance), 4, 0.1, np.random.default_rng(1))
    overflow, value = instance.encoding.decoder.evaluate_all(keys)
    assert (end.overflow_share, end.value) <= min(zip(overflow.tolist(), value.tolist(), strict=True))
    assert drawn == pytest.approx(value.mean())
    assert target.position.shape == target.device_1.shape == (instance.problem.graph.num_ops,)


def larger(objective):
    imported = read("synthetic/er?n=60&seed=0")
    if objective is None:
        return SchedulingProblem(imported.graph)
    return PlacementProblem(imported.graph, Cluster.parse("2xREGAL"), objective, imported.costs)


@pytest.mark.parametrize("objective", [None, Objective.PEAK_MEMORY, Objective.STEP_TIME])
def test_what_was_changed_without_need_is_taken_back(objective):
    instance = Instance.of(larger(objective))
    said = expected(instance)
    near, near_end, _ = improved(instance)
    far, far_end, _ = improved(instance, replace(IMPROVER, reconcile=False))
    assert (near_end.overflow_share, near_end.value) <= (far_end.overflow_share, far_end.value)

    def distance(target):
        devices = (target.device_1 != (said.device_1 > 0.5)).mean()
        return np.abs(target.position - said.position).mean() + devices

    assert distance(near) < distance(far)


def test_the_same_numbers_find_the_same():
    instance = Instance.of(capped())
    one, other = improved(instance), improved(instance)
    assert one[0].position.tolist() == other[0].position.tolist()
    assert one[0].device_1.tolist() == other[0].device_1.tolist()
    assert one[1:] == other[1:]
