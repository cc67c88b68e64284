"""What the policy reads of a graph."""

from dataclasses import replace

import numpy as np
import pytest

from opgym.agents.regal.published.graph_features import GraphFeatures
from opgym.graphs import GraphBuilder

from ..problems import order, placement, with_variables


def diamond():
    """a -> b, c -> d: a reads an input of 2 bytes; a, b, c and d write 4, 8, 16 and 32 bytes; d reads b and c."""
    builder = GraphBuilder("test")
    x = builder.tensor(bytes=2, role="input")
    a, b, c, d = (builder.tensor(bytes=size) for size in (4, 8, 16, 32))
    for reads, writes in (([x], a), ([a], b), ([a], c), ([b, c], d)):
        builder.op("Op", inputs=reads, outputs=[writes])
    return builder.build()


def test_fields_are_relative_to_their_mean():
    features = GraphFeatures.of(diamond(), [1, 5, 2, 4])
    read, written, time, critical = features.nodes.T
    assert read * 34 / 4 == pytest.approx([2, 4, 4, 24])  # all ops read 34 bytes
    assert written * 60 / 4 == pytest.approx([4, 8, 16, 32])
    assert time * 12 / 4 == pytest.approx([1, 5, 2, 4])
    assert critical.tolist() == [1, 1, 0, 1]  # 1 + 5 + 4 against 1 + 2 + 4
    assert features.edges.T.tolist() == [[0, 1], [0, 2], [1, 3], [2, 3]]
    assert features.edge_features[:, 0] * 32 / 4 == pytest.approx([4, 4, 8, 16])
    assert features.nodes.dtype == features.edge_features.dtype == np.float32


def test_all_of_several_longest_paths_are_critical():
    assert GraphFeatures.of(diamond(), [1, 3, 3, 1]).nodes[:, 3].tolist() == [1, 1, 1, 1]


def test_scale_says_nothing():
    graph = placement().graph
    larger = replace(graph, tensor_bytes=graph.tensor_bytes * 1_000)
    cost = np.arange(1, graph.num_ops + 1)
    small, large = GraphFeatures.of(graph, cost), GraphFeatures.of(larger, cost * 7)
    assert small.nodes == pytest.approx(large.nodes)
    assert small.edge_features == pytest.approx(large.edge_features)


def test_a_graph_without_edges_bytes_or_times():
    builder = GraphBuilder("test")
    for _ in range(2):
        builder.op("Op", outputs=[builder.tensor(bytes=0)])
    features = GraphFeatures.of(builder.build(), [0, 0])
    assert features.nodes.tolist() == [[0, 0, 0, 1]] * 2
    assert features.edges.shape == (2, 0)
    assert features.edge_features.shape == (0, 1)


def test_times_are_means_over_devices_and_of_orders_all_the_same():
    problem = placement(cluster="1xREGAL+1xREGAL")
    mean = problem.cost_ns.mean(axis=1)
    assert GraphFeatures.of_problem(problem).nodes[:, 2] == pytest.approx(mean / mean.mean())
    assert GraphFeatures.of_problem(order()).nodes[:, 2].tolist() == [1] * 12


def test_all_ops_are_nodes_variables_too():
    problem = with_variables()
    assert len(GraphFeatures.of_problem(problem).nodes) == problem.graph.num_ops
