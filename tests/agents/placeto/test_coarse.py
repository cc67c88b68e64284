"""The graph of groups that an episode walks through."""

import networkx as nx
import numpy as np
import pytest

from opgym.agents.placeto.coarse import CoarseGraph
from opgym.datasets import load
from opgym.graphs import Cluster, TableCost
from opgym.problems import Placement, PlacementProblem
from opgym.problems.grouping import assign

from ...problems.instances import BYTE_PER_NS, accelerator, cpu, dag
from ..edge_cases import EDGE_CASES, training
from ..sb3.problems import placement


def groups_of(problem, coarse):
    """Edges between groups from earlier to later ones, edge by edge."""
    graph = nx.DiGraph()
    graph.add_nodes_from(range(len(coarse)))
    for writer, reader, _ in zip(*problem.graph.edges, strict=True):
        u, v = int(coarse.of_op[writer]), int(coarse.of_op[reader])
        if u < v:
            graph.add_edge(u, v)
    return graph


@pytest.mark.parametrize("groups", ["op", "metis:7", "layer"])
def test_paths_lead_from_earlier_groups_to_later_ones(groups):
    problem = PlacementProblem(load("example/rnn-train"), Cluster.parse("2xP100"))
    coarse = CoarseGraph.of(problem, groups)
    assert np.array_equal(coarse.of_op, assign(problem, groups))
    graph = groups_of(problem, coarse)
    assert nx.is_directed_acyclic_graph(graph)
    for group in range(len(coarse)):
        assert set(np.flatnonzero(coarse.reads[group])) == set(graph.predecessors(group))
        assert set(np.flatnonzero(coarse.reached[group])) == nx.ancestors(graph, group)


def test_groups_may_form_cycles():
    problem = PlacementProblem(load("example/rnn-train"), Cluster.parse("2xP100"))
    coarse = CoarseGraph.of(problem, "layer")
    writer, reader, _ = problem.graph.edges
    pairs = set(zip(coarse.of_op[writer].tolist(), coarse.of_op[reader].tolist(), strict=True))
    assert any((v, u) in pairs for u, v in pairs if u != v)  # or the test shows nothing


def test_fields_are_shares_of_the_largest():
    cluster = Cluster.uniform((accelerator(), cpu()), BYTE_PER_NS)
    graph = dag({0: [], 1: [0], 2: [0], 3: [1, 2]}, sizes=[4, 8, 2, 0], groups={1: "g", 2: "g"})
    costs = TableCost({"accelerator": np.array([5, 1, 3, 2]), "cpu": np.array([50, 10, 30, 1])})
    coarse = CoarseGraph.of(PlacementProblem(graph, cluster, costs=costs), "op")
    assert coarse.fields.tolist() == [[1, np.float32(0.4)], [np.float32(0.8), 1], [np.float32(0.2), 0]]
    assert coarse.single.tolist() == [0, 0, 0]


def test_a_group_that_fits_nowhere_is_split():
    graph = dag({0: [], 1: [0], 2: [1], 3: [2]}, unsupported={1: "accelerator", 2: "cpu"})
    cluster = Cluster.uniform((cpu(), accelerator()), BYTE_PER_NS)
    costs = TableCost({"accelerator": np.array([1, 1, 1, 1]), "cpu": np.array([9, 9, 9, 9])})
    problem = PlacementProblem(graph, cluster, costs=costs)
    coarse = CoarseGraph.of(problem, "metis:1")
    assert coarse.of_op.tolist() == [0, 1, 2, 0]
    assert coarse.allowed.tolist() == [[True, True], [True, False], [False, True]]
    assert coarse.single.tolist() == [1, 0, 1]  # on the accelerator what may run there
    assert problem.evaluate(Placement(coarse.device_of_ops(coarse.single))).ok


@pytest.mark.parametrize("case", EDGE_CASES)
@pytest.mark.parametrize("groups", ["op", "metis:2"])
def test_every_start_is_legal(case, groups):
    problem = EDGE_CASES[case]("step_time")
    coarse = CoarseGraph.of(problem, groups)
    rng = np.random.default_rng(0)
    for start in (coarse.single, *(coarse.drawn(rng) for _ in range(20))):
        assert coarse.allowed[np.arange(len(coarse)), start].all()
        assert np.isfinite(problem.evaluate(Placement(coarse.device_of_ops(start))).value)


def test_random_starts_are_even():
    coarse = CoarseGraph.of(EDGE_CASES["cpu_and_accelerators"]("step_time"), "op")
    rng = np.random.default_rng(0)
    drawn = np.stack([coarse.drawn(rng) for _ in range(3_000)])
    share = np.stack([(drawn == device).mean(axis=0) for device in range(3)], axis=1)
    assert np.abs(share - coarse.allowed / coarse.allowed.sum(axis=1, keepdims=True)).max() < 0.04
    assert (share[~coarse.allowed] == 0).all()


def test_a_colocation_group_stays_together():
    problem = training("step_time")
    coarse = CoarseGraph.of(problem, "op")
    device = coarse.device_of_ops(np.arange(len(coarse)) % 2)
    assert device.dtype == np.uint8
    for group in range(problem.graph.num_groups):
        assert len(set(device[problem.graph.op_group == group].tolist())) == 1


def test_all_on_one_device_is_what_rewards_are_measured_by():
    problem = placement()
    coarse = CoarseGraph.of(problem, "op")
    assert coarse.single.tolist() == [0] * len(coarse)
