"""What our own policy reads of a graph, beside plain definitions."""

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest

from opgym.agents.regal.plus.structure import BEFORE, BEHIND, NODE_FIELDS, RULES, UNRELATED, Structure
from opgym.datasets import load
from opgym.graphs import GraphBuilder

from ..problems import order, with_variables


def field(structure, name):
    return structure.nodes[:, NODE_FIELDS.index(name)]


@pytest.fixture(scope="module")
def graph():
    return load("synthetic/ws?n=30&seed=3")


@pytest.fixture(scope="module")
def time_ns(graph):
    return np.random.default_rng(0).integers(1, 9, graph.num_ops).astype(float)


@pytest.fixture(scope="module")
def structure(graph, time_ns):
    return Structure.of(graph, time_ns)


@pytest.fixture(scope="module")
def plain(graph):
    writer, reader, _ = graph.edges
    net = nx.DiGraph(zip(writer.tolist(), reader.tolist(), strict=True))
    net.add_nodes_from(range(graph.num_ops))
    return net


def test_relations_are_those_of_the_graph(structure, plain):
    for row in range(len(plain)):
        before, behind = nx.ancestors(plain, row), nx.descendants(plain, row)
        for column in range(len(plain)):
            wanted = BEFORE if column in before else BEHIND if column in behind else UNRELATED
            assert structure.relation[row, column] == wanted


def test_earliest_and_latest_positions(structure, plain):
    ops = len(plain)
    before = [len(nx.ancestors(plain, op)) for op in range(ops)]
    behind = [len(nx.descendants(plain, op)) for op in range(ops)]
    assert field(structure, "earliest") == pytest.approx(np.array(before) / ops)
    assert field(structure, "latest") == pytest.approx(1 - np.array(behind) / ops)


def test_heaviest_paths(structure, plain, time_ns):
    relative = time_ns / time_ns.mean()
    ahead = np.zeros(len(plain))
    for op in nx.topological_sort(plain):
        ahead[op] = max((ahead[u] + relative[u] for u in plain.predecessors(op)), default=0.0)
    whole = (ahead + relative + _behind(plain, relative)).max()
    assert field(structure, "time_before") == pytest.approx(ahead / whole, rel=1e-5)
    assert field(structure, "time_behind") == pytest.approx(_behind(plain, relative) / whole, rel=1e-5)


def _behind(plain, relative):
    behind = np.zeros(len(plain))
    for op in reversed(list(nx.topological_sort(plain))):
        behind[op] = max((behind[v] + relative[v] for v in plain.successors(op)), default=0.0)
    return behind


def test_weights_of_what_an_op_hears(structure, graph):
    writer, reader, tensor = graph.edges
    shares = np.bincount(reader, structure.to_reader[:, 0], minlength=graph.num_ops)
    assert shares[np.unique(reader)] == pytest.approx(1)
    shares = np.bincount(writer, structure.to_writer[:, 0], minlength=graph.num_ops)
    assert shares[np.unique(writer)] == pytest.approx(1)
    # All readers together account for the bytes of their tensor.
    by_tensor = np.bincount(tensor, structure.to_reader[:, 1], minlength=graph.num_tensors)
    read = np.unique(tensor)
    wanted = graph.tensor_bytes[read] / graph.tensor_bytes[graph.tensor_producer >= 0].mean()
    assert by_tensor[read] == pytest.approx(wanted, rel=1e-5)


def test_scale_says_nothing(graph, time_ns):
    double = replace(graph, tensor_bytes=2 * graph.tensor_bytes)
    one, two = Structure.of(graph, time_ns), Structure.of(double, 3 * time_ns)
    assert one.nodes == pytest.approx(two.nodes, rel=1e-5)
    assert one.to_reader == pytest.approx(two.to_reader, rel=1e-5)


def test_positions_are_those_of_the_rules():
    problem = order(seed=1)
    structure = Structure.of(problem.graph, np.ones(problem.graph.num_ops))
    for rule in RULES:
        found = np.argsort(field(structure, f"position in {rule.name}"), kind="stable")
        assert found.tolist() == rule().order(problem).tolist()


def test_variables_are_marked_and_take_no_dynamic_memory():
    graph = with_variables().graph
    structure = Structure.of(graph, np.ones(graph.num_ops))
    variable = field(structure, "is_variable") == 1
    assert variable.tolist() == graph.is_variable.tolist()
    assert (field(structure, "written_bytes")[variable] == 0).all()
    assert (field(structure, "resident_bytes")[variable] > 0).all()
    assert np.isfinite(structure.nodes).all()


def test_an_op_alone():
    builder = GraphBuilder("one")
    builder.op("op", outputs=[builder.tensor(bytes=0)])
    structure = Structure.of(builder.build(), [0])
    assert np.isfinite(structure.nodes).all()
    assert structure.edges.shape == (2, 0)
