"""The expert: what it finds is worth what it says, better than what was drawn, and near to what was expected."""

from dataclasses import replace

import numpy as np
import pytest

from opgym.agents.heuristics.orders import GreedyFreedBytes
from opgym.agents.regal.plus.improvement import Improver
from opgym.agents.regal.plus.instance import Instance
from opgym.agents.regal.plus.proposals import Expected
from opgym.datasets import read
from opgym.graphs import Cluster
from opgym.problems import Objective, PlacementProblem, SchedulingProblem

from ..problems import capped, order, placement, with_variables

IMPROVER = Improver(
    samples=4, flips=0.1, moves=300, evaluations=200, temperature=0.01, reconcile=True, lessons=2_000
)


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
    found = improved(instance)
    keys = instance.drawn(expected(instance), 4, 0.1, np.random.default_rng(1))
    overflow, value = instance.encoding.decoder.evaluate_all(keys)
    ends = list(zip(overflow.tolist(), value.tolist(), strict=True))
    assert (found.end.overflow_share, found.end.value) <= min(ends)
    assert found.drawn_over_found == pytest.approx(value.mean() / found.end.value)
    assert found.target.position.shape == found.target.device_1.shape == (instance.problem.graph.num_ops,)
    by_advantage = [ends[i] for i in np.argsort(-found.advantage)]
    assert by_advantage == sorted(ends)
    assert found.advantage.sum() == pytest.approx(0, abs=1e-6)


def larger(objective):
    imported = read("synthetic/er?n=60&seed=0")
    if objective is None:
        return SchedulingProblem(imported.graph)
    return PlacementProblem(imported.graph, Cluster.parse("2xREGAL"), objective, imported.costs)


@pytest.mark.parametrize("objective", [None, Objective.PEAK_MEMORY, Objective.STEP_TIME])
def test_what_was_changed_without_need_is_taken_back(objective):
    instance = Instance.of(larger(objective))
    said = expected(instance)
    near, far = improved(instance), improved(instance, replace(IMPROVER, reconcile=False))
    assert (near.end.overflow_share, near.end.value) <= (far.end.overflow_share, far.end.value)

    def distance(target):
        devices = (target.device_1 != (said.device_1 > 0.5)).mean()
        return np.abs(target.position - said.position).mean() + devices

    assert distance(near.target) < distance(far.target)


@pytest.mark.parametrize("objective", [None, Objective.PEAK_MEMORY, Objective.STEP_TIME])
def test_a_teacher_searches_longer_from_the_greedy_order(objective):
    instance = Instance.of(larger(objective))
    found = IMPROVER.taught(instance, np.random.default_rng(0))
    greedy = GreedyFreedBytes().order(SchedulingProblem(instance.problem.graph))
    solution = instance.encoding.decode(found.drawn[0])
    if objective is None:
        assert solution.op.tolist() == greedy.tolist()
    else:
        assert not np.asarray(solution.device).any()
    short = replace(IMPROVER, lessons=20).taught(instance, np.random.default_rng(0))
    assert short.drawn.tolist() == found.drawn.tolist()
    assert found.end.value < short.end.value <= short.value.min()


def test_the_same_numbers_find_the_same():
    instance = Instance.of(capped())
    one, other = improved(instance), improved(instance)
    assert one.target.position.tolist() == other.target.position.tolist()
    assert one.target.device_1.tolist() == other.target.device_1.tolist()
    assert one.end == other.end
