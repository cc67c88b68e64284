"""What the policy is to learn: solutions as positions and devices, mirrored where devices are alike."""

import numpy as np
import pytest

from opgym.agents.regal.plus.instance import Instance
from opgym.agents.regal.plus.targets import Target, devices_are_alike
from opgym.graphs import Cluster
from opgym.problems import Order, Placement, PlacementProblem

from ..problems import capped, order, placement, with_variables


def test_an_order_is_its_positions():
    problem = order()
    instance = Instance.of(problem)
    ops = problem.ops  # the program's own order
    target = Target.of(instance.encoding, Order(ops), 0)
    assert target.position.tolist() == pytest.approx(((np.arange(len(ops)) + 0.5) / len(ops)).tolist())
    assert not target.device_1.any()


@pytest.mark.parametrize("problem", [placement, capped, with_variables])
def test_a_mirrored_placement_is_the_same_target_and_worth_the_same(problem):
    problem = problem()
    instance = Instance.of(problem)
    rng = np.random.default_rng(0)
    keys = rng.random(instance.encoding.genes, np.float32)
    solution = instance.encoding.decode(keys)
    mirrored = Placement(1 - solution.device, solution.priority)
    assert devices_are_alike(problem)
    assert problem.evaluate(mirrored).value == problem.evaluate(solution).value
    one, other = (Target.of(instance.encoding, s, instance.structure.anchor) for s in (solution, mirrored))
    assert one.device_1.tolist() == other.device_1.tolist()
    assert one.position.tolist() == other.position.tolist()
    assert not one.device_1[instance.structure.anchor]


def test_variables_have_no_position_of_their_own():
    problem = with_variables()
    instance = Instance.of(problem)
    solution = instance.encoding.decode(np.random.default_rng(0).random(instance.encoding.genes, np.float32))
    target = Target.of(instance.encoding, solution, 0)
    assert (target.position[problem.graph.is_variable] == 0.5).all()
    others = np.sort(target.position[~problem.graph.is_variable])
    assert others == pytest.approx((np.arange(len(others)) + 0.5) / len(others), abs=1e-6)


def test_devices_that_differ_are_not_mirrored():
    p = placement()
    other = PlacementProblem(p.graph, Cluster.parse("1xP100+1xV100"))
    assert not devices_are_alike(other)
    assert not devices_are_alike(order())
    assert devices_are_alike(PlacementProblem(p.graph, Cluster.parse("2xP100")))
