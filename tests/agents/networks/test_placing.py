"""What learned placers read of ops, what placements are worth to them, and what rewards are compared with."""

import math

import numpy as np
import pytest

pytest.importorskip("torch")

import torch

from opgym.agents.networks.placing.baseline import Baseline, Baselines, standardised
from opgym.agents.networks.placing.drawing import drawn
from opgym.agents.networks.placing.judging import INVALID_REWARD, Counted, Reward
from opgym.agents.networks.placing.learned import fingerprint_of, key_of
from opgym.agents.networks.placing.ops import kind_codes, kinds_of, neighbours, output_shapes
from opgym.agents.networks.placing.units import Units
from opgym.datasets import load
from opgym.envs.placement.reward import reference_of
from opgym.graphs import Cluster, GraphBuilder
from opgym.outcome import Outcome, Verdict
from opgym.problems import Budget, BudgetExhausted, Evaluator, PlacementProblem

from ..edge_cases import training
from ..sb3.problems import placement


def test_kinds_have_codes_and_unknown_ones_are_zero():
    graph = load("example/two-branch")
    kinds = kinds_of([graph])
    assert list(kinds) == sorted(kinds)
    codes = kind_codes(graph, kinds)
    assert [("", *kinds)[code] for code in codes] == [graph.kind(op) for op in range(graph.num_ops)]
    assert set(kind_codes(graph, kinds[1:])) == set(range(len(kinds)))
    assert (kind_codes(graph, ()) == 0).all()


@pytest.mark.parametrize("graph", ["example/two-branch", "example/rnn-train", "zoo/alexnet-train"])
def test_shapes_are_those_of_the_first_outputs(graph):
    graph = load(graph)
    found = output_shapes(graph, 2, 3)
    for op in range(graph.num_ops):
        for slot in range(2):
            outputs = list(graph.outputs(op))
            shape = graph.shape(outputs[slot]) if slot < len(outputs) else ()
            assert found[op, slot].tolist() == [*shape[:3], *[0] * (3 - len(shape[:3]))]


@pytest.mark.parametrize("graph", ["example/two-branch", "example/rnn-train", "synthetic/er?n=40&seed=3"])
def test_neighbours_are_both_ends_of_edges_each_once(graph):
    graph = load(graph)
    degree, neighbour = neighbours(graph)
    ends = np.cumsum(degree)
    for op in range(graph.num_ops):
        expected = {
            other
            for writer, reader, _ in zip(*graph.edges, strict=True)
            for one, other in ((writer, reader), (reader, writer))
            if one == op
        }
        assert neighbour[ends[op] - degree[op] : ends[op]].tolist() == sorted(expected)


def test_a_unit_is_a_colocation_group_or_an_op():
    problem = training("step_time")
    units = Units.of(problem)
    assert len(units) == problem.graph.num_ops - 2  # two variables with an update each
    assert units.sizes.sum() == problem.graph.num_ops
    device = units.device_of_ops(np.arange(len(units))[None] % 2)
    assert device.dtype == np.uint8
    for group in range(problem.graph.num_groups):
        assert len(set(device[0, problem.graph.op_group == group].tolist())) == 1


def test_the_reward_of_a_single_device_is_minus_one():
    problem = placement()
    reward = Reward.of(problem)
    value = reference_of(problem).value
    assert reward(Outcome(value, "ns")) == -1
    assert reward(Outcome(value / 4, "ns")) == -0.5
    assert reward(Outcome(value / 4, "ns", Verdict.OUT_OF_MEMORY, 0.1)) == INVALID_REWARD
    assert reward(Outcome(math.inf, "ns", Verdict.ILLEGAL_ORDER)) == INVALID_REWARD


def test_the_best_is_tried_in_the_order_of_the_program_too():
    problem = placement()
    evaluator = Evaluator(problem, Budget(evaluations=4))
    judge = Counted(problem, evaluator, 100)
    alone = np.zeros(problem.graph.num_ops, np.uint8)
    first = judge(alone)
    assert evaluator.evaluations == 2
    assert judge(alone) == first
    assert evaluator.evaluations == 3  # no better, so in one order only
    judge(alone)
    assert judge.over
    with pytest.raises(BudgetExhausted):
        judge(alone)


def test_without_a_budget_the_default_ends_it():
    problem = placement()
    judge = Counted(problem, Evaluator(problem, None), 3)
    alone = np.zeros(problem.graph.num_ops, np.uint8)
    judge(alone)
    judge(alone)
    assert judge.over
    with pytest.raises(BudgetExhausted, match="default"):
        judge(alone)


def test_a_baseline_is_the_mean_of_earlier_rewards():
    baseline = Baseline()
    assert baseline.advantages(torch.tensor([1.0, 3.0])).tolist() == [-1, 1]
    assert baseline.advantages(torch.tensor([2.0, 5.0])).tolist() == [0, 3]
    assert baseline.value == pytest.approx(11 / 4)


def test_a_baseline_can_forget():
    baseline = Baseline(decay=0.9)
    baseline.advantages(torch.tensor([1.0]))
    baseline.advantages(torch.tensor([2.0]))
    assert baseline.value == pytest.approx(1.1)


def test_graphs_have_baselines_of_their_own_and_checkpoints_keep_them():
    baselines = Baselines()
    baselines.advantages("a", torch.tensor([1.0]))
    baselines.advantages("b", torch.tensor([5.0]))
    again = Baselines()
    again.set_state(baselines.state())
    for one in (baselines, again):
        assert one.advantages("a", torch.tensor([2.0])).tolist() == [1]
        assert one.advantages("b", torch.tensor([5.0])).tolist() == [0]


def test_advantages_are_on_one_scale_unless_there_is_no_difference():
    assert standardised(torch.tensor([-3.0, 3.0]), 1e-3).tolist() == [-1, 1]
    assert standardised(torch.tensor([0.0, 0.0]), 1e-3).tolist() == [0, 0]
    assert standardised(torch.tensor([1e-6, -1e-6]), 1e-3).abs().max() < 0.01


def test_problems_that_differ_have_other_keys():
    graph = load("example/two-branch")
    b = GraphBuilder("other")
    b.op("Add", outputs=[b.tensor(bytes=1)])
    problems = [
        PlacementProblem(graph, Cluster.parse("2xP100")),
        PlacementProblem(graph, Cluster.parse("2xP100@nvlink")),
        PlacementProblem(graph, Cluster.parse("2xP100:free")),
        PlacementProblem(graph, Cluster.parse("3xP100")),
        PlacementProblem(graph, Cluster.parse("2xV100")),
        PlacementProblem(graph, Cluster.parse("2xP100").with_capacity(10**9)),
        PlacementProblem(b.build(), Cluster.parse("2xP100")),
    ]
    assert len({key_of(problem) for problem in problems}) == len(problems)
    assert key_of(problems[0]) == key_of(PlacementProblem(graph, Cluster.parse("2xP100")))
    assert fingerprint_of(problems) != fingerprint_of(problems[::-1])


@pytest.mark.parametrize("precision", [np.float32, np.float64])
def test_draws_follow_the_probabilities_and_nothing_impossible_is_drawn(precision):
    probability = np.array(
        [[0.5, 0.25, 0.25, 0], [0, 0, 1, 0], [0.1, 0, 0.9, 0], [0, 0.3, 0, 0.7]], precision
    )
    devices = drawn(probability, np.random.default_rng(0).random((20_000, 4), precision))
    share = np.stack([(devices == device).mean(0) for device in range(4)], axis=1)
    assert np.abs(share - probability).max() < 0.01
    assert (share[probability == 0] == 0).all()


@pytest.mark.parametrize("precision", [np.float32, np.float64])
def test_rounding_draws_nothing_impossible(precision):
    probability = np.full((1, 7), precision(1) / 6)
    probability[0, 6] = 0
    most = np.nextafter(precision(1), precision(0))
    assert drawn(probability, np.array([most])).max() == 5
    assert drawn(np.array([[0, 1]], precision), np.array([precision(0)])).min() == 1
