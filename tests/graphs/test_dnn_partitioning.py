"""Graph files of the dnn-partitioning repository: what is read, and what is refused."""

from __future__ import annotations

import copy
import json
from itertools import pairwise

import numpy as np
import pytest

from opgym.errors import ImportFailedError
from opgym.graphs.readers.dnn_partitioning import UNLIMITED_BYTES, node_ids, read_dnn_partitioning, read_split
from opgym.problems import PlacementProblem

from ..problems.instances import dag

GRAPH = {
    "maxSizePerFPGA": 1000.0,
    "maxFPGAs": 2,
    "maxCPUs": 1,
    "nodes": [
        {"id": 9, "name": "head", "supportedOnFpga": True, "cpuLatency": 3, "fpgaLatency": 0.25,
         "isBackwardNode": False, "colorClass": 4, "size": 10.5, "layerId": 2},
        {"id": 2, "supportedOnFpga": 0, "cpuLatency": 1.5, "fpgaLatency": 0, "isBackwardNode": 0},
        {"id": 5, "name": "tail", "supportedOnFpga": 1, "cpuLatency": 0.000001, "fpgaLatency": 1e-7,
         "isBackwardNode": 1, "colorClass": 4, "size": 0, "layerId": None},
    ],
    "edges": [
        {"sourceId": 2, "destId": 9, "cost": 0.058216102421283724, "size": 1e9},
        {"sourceId": 2, "destId": 5, "cost": 0.058216102421283724},
        {"sourceId": 9, "destId": 5, "cost": 0},
    ],
}  # fmt: skip


def written(tmp_path, document) -> str:
    path = tmp_path / "graph.json"
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return str(path)


@pytest.fixture
def imported(tmp_path):
    return read_dnn_partitioning(written(tmp_path, GRAPH))


def test_nodes_become_ops_in_topological_order(imported):
    graph = imported.graph
    assert graph.op_names == ("2:", "9:head", "5:tail")  # node 9 waits for node 2
    assert node_ids(graph) == {2: 0, 9: 1, 5: 2}
    assert graph.op_group.tolist() == [-1, 0, 0]
    assert graph.op_direction.tolist() == [0, 0, 1]
    assert [graph.layers[i] if i >= 0 else None for i in graph.op_layer] == [None, "2", None]
    assert graph.device_classes == ("accelerator",)
    assert graph.op_unsupported.tolist() == [1, 0, 0]
    producer, consumer, _ = graph.edges
    assert sorted(zip(producer.tolist(), consumer.tolist(), strict=True)) == [(0, 1), (0, 2), (1, 2)]


def test_times_are_those_of_the_file_to_the_nanosecond(imported):
    table = imported.costs.table_ns
    assert table["CPU"].tolist() == [1_500_000, 3_000_000, 1]
    assert table["accelerator"].tolist() == [0, 250_000, 0]
    problem = PlacementProblem(imported.graph, imported.cluster, "max_load", imported.costs)
    outputs = [imported.graph.outputs(op)[0] for op in range(3)]
    assert problem.to_device_ns[outputs].tolist() == [[58216, 58216, 0], [0, 0, 0], [0, 0, 0]]
    assert problem.from_device_ns[outputs].tolist() == [[58216, 58216, 0], [0, 0, 0], [0, 0, 0]]


def test_sizes_become_parameters_of_one_op(imported):
    graph = imported.graph
    assert graph.num_tensors == 4
    assert graph.tensor_bytes[0] == 11  # rounded up
    assert graph.consumers(0).tolist() == [1]


def test_the_cluster_comes_with_the_graph(imported):
    cluster = imported.cluster
    assert [(d.name, d.kind, d.capacity_bytes) for d in cluster.devices] == [
        ("accelerator", "accelerator", 1000),
        ("accelerator", "accelerator", 1000),
        ("CPU", "cpu", UNLIMITED_BYTES),
    ]
    assert imported.report.format == "dnn-partitioning"
    assert (imported.report.ops, imported.report.tensors) == (3, 4)
    assert imported.report.fingerprint == imported.graph.fingerprint


def test_crlf_and_byte_order_mark_make_no_difference(imported, tmp_path):
    path = tmp_path / "windows.json"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(GRAPH, indent=1).replace("\n", "\r\n").encode())
    assert read_dnn_partitioning(path).graph == imported.graph


def broken(*path, **change) -> dict:
    """The graph with a row changed, or without a key (``absent``)."""
    document = copy.deepcopy(GRAPH)
    row = document
    for key in path:
        row = row[key]
    row.update(change)
    for key in [key for key, value in row.items() if value == "absent"]:
        del row[key]
    return document


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (broken(maxFPGAs="absent"), "lacks 'maxFPGAs'"),
        (broken(maxFPGAs=-1), "maxFPGAs = -1; expected 0 to 64"),
        (broken(maxFPGAs=2.5), "maxFPGAs = 2.5; expected a whole number"),
        (broken(maxFPGAs=0, maxCPUs=0), "names 0 accelerators and 0 CPUs"),
        (broken(maxFPGAs=40, maxCPUs=40), "names 40 accelerators and 40 CPUs; expected 1 to 64"),
        (broken(maxSizePerFPGA=0), "maxSizePerFPGA = 0; expected 1 to"),
        (broken(maxSizePerFPGA="big"), "maxSizePerFPGA = 'big'; expected a finite number"),
        (broken(nodes=[], edges=[]), "no ops"),
        (broken(nodes=5), "nodes = a number; expected a list"),
        (broken(comment="x"), "unknown keys 'comment'"),
        (broken("nodes", 1, id=9), "nodes[1] has id 9, as nodes[0] has"),
        (broken("nodes", 1, id="absent"), "nodes[1] lacks 'id'"),
        (broken("nodes", 1, id="2"), "nodes[1] has id = '2'"),
        (broken("nodes", 1, id=-2), "nodes[1] has id = -2"),
        (broken("nodes", 1, cpuLatency=-1), "nodes[1] has cpuLatency = -1; expected 0 to"),
        (broken("nodes", 1, cpuLatency=1e30), "nodes[1] has cpuLatency = 1e+30"),
        (broken("nodes", 1, cpuLatency=None), "nodes[1] has cpuLatency = None"),
        (broken("nodes", 1, cpuLatency=True), "nodes[1] has cpuLatency = True"),
        (broken("nodes", 1, supportedOnFpga=2), "nodes[1] has supportedOnFpga = 2; expected true, false, 1 or 0"),
        (broken("nodes", 1, isBackwardNode="yes"), "nodes[1] has isBackwardNode = 'yes'"),
        (broken("nodes", 1, colorClass="red"), "nodes[1] has colorClass = 'red'"),
        (broken("nodes", 1, size=-1), "nodes[1] has size = -1"),
        (broken("nodes", 1, name=5), "nodes[1] has name = 5; expected text"),
        (broken("nodes", 1, speed=5), "nodes[1] has unknown keys 'speed'"),
        (broken("edges", 0, destId=77), "edges[0] has destId = 77; there is no such node"),
        (broken("edges", 0, cost=-0.5), "edges[0] has cost = -0.5"),
        (broken("edges", 0, cost=0.5), "edges[1] moves node 2 in 58216 ns, another edge in 500000 ns"),
        (broken("edges", 1, destId=9), "edges[1] repeats edges[0]"),
        (broken("edges", 2, sourceId=5, destId=2), "has a cycle"),
        (broken("edges", 2, sourceId=9, destId=9), "has a cycle"),
        ("[1, 2]", "is a list; expected an object"),
        (json.dumps(GRAPH).replace("1.5", "NaN"), "holds NaN; numbers must be finite"),
        (json.dumps(GRAPH)[:-3], "not valid JSON"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(tmp_path, document, message):
    path = written(tmp_path, document)
    with pytest.raises(ImportFailedError) as caught:
        read_dnn_partitioning(path)
    assert message in str(caught.value)
    assert str(caught.value).startswith(path)


def test_totals_that_could_overflow_are_refused(tmp_path):
    row = GRAPH["nodes"][1] | {"size": 4e18}
    many = [row | {"id": i} for i in range(3)]
    with pytest.raises(ImportFailedError, match="has sizes that add up to"):
        read_dnn_partitioning(written(tmp_path, GRAPH | {"nodes": many, "edges": []}))


def test_graphs_from_elsewhere_have_no_node_ids():
    with pytest.raises(ImportFailedError, match="does not come from a dnn-partitioning file"):
        node_ids(dag({0: []}))


def test_a_split_lists_nodes_per_device(tmp_path):
    split = read_split(
        written(tmp_path, {"fpgas": [{"nodes": [9], "load": -1}, {"nodes": []}], "cpus": [{"nodes": [2, 5]}]})
    )
    assert split.accelerators == ((9,), ())
    assert split.cpus == ((2, 5),)


def test_ten_thousand_nodes_in_a_chain(tmp_path):
    row = {"supportedOnFpga": 1, "cpuLatency": 2, "fpgaLatency": 1, "isBackwardNode": 0}
    count = 10_000
    rng = np.random.default_rng(0)
    ids = rng.permutation(count).tolist()
    document = GRAPH | {
        "nodes": [row | {"id": i} for i in range(count)],
        "edges": [{"sourceId": a, "destId": b, "cost": 0.5} for a, b in pairwise(ids)],
    }
    graph = read_dnn_partitioning(written(tmp_path, document)).graph
    op_of = node_ids(graph)
    assert [op_of[i] for i in ids] == list(range(count))
