"""TensorFlow's CostGraphDef in text format, as REGAL's public graphs are: absent is 0, ids say who reads whom."""

from __future__ import annotations

import random
import time
from pathlib import Path

import numpy as np
import pytest

from opgym.errors import ImportFailedError, OpgymError
from opgym.graphs import ROLES, Cluster, Graph, peak_of_order
from opgym.graphs.readers import Imported, read
from opgym.graphs.readers.cost_graph import read_cost_graph

#: In the manner of REGAL's graphs: a source, a chain of control, sizes and costs.
REGAL = """node {
  name: "_SOURCE"
}
node {
  name: "node_0"
  id: 1
  control_input: 0
}
node {
  name: "node_1"
  id: 2
  output_info {
    size: 70
    alias_input_port: -1
  }
  control_input: 0
  compute_cost: 58
}
node {
  name: "node_2"
  id: 3
  output_info {
    size: 52
    alias_input_port: -1
  }
  control_input: 0
  compute_cost: 47
}
node {
  name: "node_3"
  id: 4
  input_info {
    preceding_node: 2
  }
  input_info {
    preceding_node: 3
  }
  output_info {
    size: 55
    alias_input_port: -1
  }
  control_input: 0
  compute_cost: 58
}
"""


def imported(tmp_path: Path, text: str, **options: bool) -> Imported:
    path = tmp_path / "graph_0123.pbtxt"
    path.write_text(text)
    return read_cost_graph(path, **options)


def reads(graph: Graph, name: str) -> list[str]:
    return [graph.tensor_names[t] for t in graph.inputs(graph.op_names.index(name))]


def test_a_graph_of_regal(tmp_path: Path) -> None:
    path = tmp_path / "graph_0123.pbtxt"
    path.write_text(REGAL)
    result = read(path)
    graph = result.graph
    assert (result.report.format, graph.level, graph.name) == ("cost-graph", "cost-graph", "graph_0123")
    assert graph.op_names == ("_SOURCE", "node_0", "node_1", "node_2", "node_3")
    assert graph.kinds == ("_SOURCE", "node")
    assert reads(graph, "node_0") == ["_SOURCE:end"]
    assert reads(graph, "node_3") == ["node_1", "node_2", "_SOURCE:end"]
    assert dict(zip(graph.tensor_names, graph.tensor_bytes.tolist(), strict=True)) == {
        "_SOURCE:end": 0, "node_1": 70, "node_2": 52, "node_3": 55
    }  # fmt: skip
    assert not graph.tensor_is_output.any()
    assert peak_of_order(graph, np.arange(5)) == 70 + 52 + 55
    assert result.costs is not None
    for cluster in ("2xREGAL", "1xCPU+1xP100"):
        table = result.costs.cost_ns(graph, Cluster.parse(cluster))
        assert table[:, 0].tolist() == [0, 0, 58000, 47000, 58000]  # microseconds


TRAINING = """# two devices
node: < name: "x" id: 10; output_info { size: 4000, alias_input_port: -1
    dtype: DT_FLOAT, shape { dim { size: 10 } dim { size: 100 } } }
  device: "/job:worker/task:0/device:GPU:0" compute_cost: 1 >
node {
  id: 11 name: 'layer_1/w' device: "/device:CPU:0"
  output_info { size: 0 dtype: DT_FLOAT_REF alias_input_port: -1 }
  persistent_memory_size: 0x100
}
node {
  name: "layer_1/Mat" "Mul_1" id: 12
  input_info { preceding_node: 10 }
  input_info { preceding_node: 11 preceding_port: 0 }
  output_info { size: 800 alias_input_port: -1 dtype: DT_HALF }
  output_info { size: 200 alias_input_port: -1 dtype: 3 }
  temporary_memory_size: 64
  compute_cost: 20
  inaccurate: true
}
node {
  name: "layer_2/Reshape" id: 13
  input_info { preceding_node: 12 }
  output_info { size: 800 }
  compute_cost: 2
}
node {
  name: "layer_2/Identity" id: 14
  input_info { preceding_node: 12 preceding_port: 1 }
  input_info { preceding_node: 13 }
  output_info { size: 800 alias_input_port: 1 }
}
node {
  name: "gradients/layer_2/Tanh_grad" id: 15
  input_info { preceding_node: 14 }
  output_info { size: 800 alias_input_port: -1 }
  control_input: [10, 11]
  is_final: true
  host_temp_memory_size: 5 device_temp_memory_size: 7
}
cost { cost: 12.5 dimension: "compute" }
"""


def test_aliases_memory_and_names_of_a_step(tmp_path: Path) -> None:
    result = imported(tmp_path, TRAINING)
    graph = result.graph
    assert [graph.kind(o) for o in range(6)] == ["x", "w", "MatMul", "Reshape", "Identity", "Tanh_grad"]
    layers = [graph.layers[code] if code >= 0 else None for code in graph.op_layer]
    assert layers == [None, "layer_1", "layer_1", "layer_2", "layer_2", "gradients/layer_2"]
    assert graph.op_direction.tolist() == [0, 0, 0, 0, 0, 1]
    assert graph.op_workspace_bytes.tolist() == [0, 0, 64, 0, 0, 12]
    tensors = {name: t for t, name in enumerate(graph.tensor_names)}
    persistent = tensors["layer_1/w/persistent"]
    assert (int(graph.tensor_bytes[persistent]), ROLES[graph.tensor_role[persistent]]) == (256, "parameter")
    assert graph.shape(tensors["x"]) == (10, 100)
    assert graph.dtype(tensors["layer_1/MatMul_1"]) == "float16"
    assert graph.dtype(tensors["layer_1/MatMul_1:1"]) == "int32"
    # the reshape and the identity have no storage of their own; whoever reads them reads the product
    assert int(graph.tensor_bytes[tensors["layer_2/Reshape"]]) == 0
    assert reads(graph, "layer_2/Identity") == [
        "layer_1/MatMul_1:1", "layer_1/MatMul_1", "layer_2/Reshape"
    ]  # fmt: skip
    assert reads(graph, "gradients/layer_2/Tanh_grad") == [
        "layer_1/MatMul_1", "layer_2/Identity", "x:end", "layer_1/w:end"
    ]  # fmt: skip
    kept = [graph.tensor_names[t] for t in np.flatnonzero(graph.tensor_is_output)]
    assert kept == ["gradients/layer_2/Tanh_grad"]
    assert peak_of_order(graph, np.arange(6)) == 4000 + 800 + 200 + 64
    assert result.costs is not None
    notes = " ".join(result.report.notes)
    for said in ("on 2 devices", "the costs of 1 nodes inaccurate", "every kind of device"):
        assert said in notes


def test_an_absent_alias_is_one_of_input_0_only_where_the_file_speaks_of_aliases(tmp_path: Path) -> None:
    silent = imported(
        tmp_path, TRAINING.replace("alias_input_port: -1", "").replace("alias_input_port: 1", "")
    )
    sizes = dict(zip(silent.graph.tensor_names, silent.graph.tensor_bytes.tolist(), strict=True))
    assert sizes["layer_2/Reshape"] == 800
    assert sizes["layer_2/Identity"] == 800


def test_estimates_stand_in_where_nothing_was_measured(tmp_path: Path) -> None:
    text = """
        node { name: "a" compute_time: 3 memory_time: 5 output_info { size: 1 } }
        node { name: "b" id: 1 compute_time: 7 input_info { } }
    """
    result = imported(tmp_path, text)
    assert result.costs is not None
    assert result.costs.cost_ns(result.graph, Cluster.parse("1xP100"))[:, 0].tolist() == [5000, 7000]
    assert any("analytical estimates" in note for note in result.report.notes)
    measured = imported(tmp_path, text.replace("compute_time: 7", "compute_cost: 2"))
    assert measured.costs is not None
    assert measured.costs.cost_ns(measured.graph, Cluster.parse("1xP100"))[:, 0].tolist() == [0, 2000]


def test_nodes_may_stand_in_any_order_and_times_follow_them(tmp_path: Path) -> None:
    rng = random.Random(3)
    nodes = REGAL.split("node {\n")[1:]
    first = imported(tmp_path, REGAL)
    for _ in range(5):
        rng.shuffle(nodes)
        other = imported(tmp_path, "".join(f"node {{\n{node}" for node in nodes))
        assert first.costs is not None
        assert other.costs is not None
        cluster = Cluster.parse("1xREGAL")
        times = [
            dict(zip(r.graph.op_names, r.costs.cost_ns(r.graph, cluster)[:, 0].tolist(), strict=True))
            for r in (first, other)
        ]  # type: ignore[union-attr]
        assert times[0] == times[1]
        assert sorted(reads(other.graph, "node_3")) == sorted(reads(first.graph, "node_3"))


def test_sizes_that_are_unknown(tmp_path: Path) -> None:
    text = REGAL.replace("size: 52", "size: -1")
    result = imported(tmp_path, text)
    assert result.report.missing_shape == ("node_2:0",)
    with pytest.raises(
        ImportFailedError, match=r"'node_2'.*the size of output node_2:0 is -1, which is unknown"
    ):
        imported(tmp_path, text, strict=True)


def test_fields_of_later_versions_are_stepped_over_and_named(tmp_path: Path) -> None:
    text = REGAL.replace('name: "node_2"', 'name: "node_2"\n  novelty { deep { er: 1 } er: "}" }\n  other: 3')
    result = imported(tmp_path, text)
    assert result.graph == imported(tmp_path, REGAL).graph
    assert "field node.novelty is not read (1 times)" in result.report.notes
    assert "field node.other is not read (1 times)" in result.report.notes


@pytest.mark.parametrize(
    ("said", "dtype"),
    [
        ("DT_BFLOAT16", "bfloat16"),
        ("114", "bfloat16"),
        ("DT_RESOURCE", "uint8"),
        ("DT_NEW", "uint8"),
        ("9" * 6000, "uint8"),
    ],
)
def test_dtypes_by_name_and_number(tmp_path: Path, said: str, dtype: str) -> None:
    graph = imported(tmp_path, REGAL.replace("size: 52", f"size: 52 dtype: {said}")).graph
    tensor = graph.tensor_names.index("node_2")
    assert (graph.dtype(tensor), int(graph.tensor_bytes[tensor])) == (dtype, 52)


def test_a_node_called_variable_is_no_home_of_a_parameter(tmp_path: Path) -> None:
    graph = imported(tmp_path, REGAL.replace("node_3", "dense/variable_2")).graph
    assert graph.kind(4) == "Variable"
    assert not graph.is_variable.any()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("preceding_node: 2\n", "preceding_node: 77\n", r"node 4 'node_3' \(line 29\): input 0 comes from node 77"),
        ("preceding_node: 2\n", "preceding_node: 1\n", "is output 0 of node 1 'node_0', which has 0 outputs"),
        ("preceding_node: 2\n", "preceding_node: 2 preceding_port: 3\n", "output 3 of node 2 'node_1', which has 1"),
        ("preceding_node: 2\n", "preceding_node: 2 preceding_port: -1\n", "output -1 of"),
        ("preceding_node: 2\n", "preceding_node: 4\n", "cycle: op 4 'node_3' -> op 4 'node_3'|cycle"),
        ("id: 4", "id: 3", "has the id of 'node_2'; ids must differ"),
        ("id: 4", "id: four", r"'node_3' \(line 29\): id is 'four'; expected a whole number"),
        ("id: 4", "id: 4 id: 5", "line 31: id is given twice in one node"),
        ("control_input: 0\n  compute_cost: 47", "control_input: 9", "waits for node 9; there is no such node"),
        ("compute_cost: 47", "compute_cost: -47", "'node_2'.*has a negative time: -47"),
        ("compute_cost: 47", "compute_cost: 9000000000000000000", "its times add up to"),
        ("compute_cost: 47", "compute_cost: 99999999999999999999", "expected a whole number of 64 bits"),
        pytest.param(
            "compute_cost: 47", "compute_cost: " + "4" * 6000, "expected a whole number", id="long number"
        ),
        ("compute_cost: 47", "compute_cost: 4.7", "expected a whole number of 64 bits"),
        ("compute_cost: 47", "compute_cost: 4\n temporary_memory_size: -4", "has a negative memory: -4"),
        ("compute_cost: 47", "is_final: maybe", "is_final is 'maybe'; expected true or false"),
        ("compute_cost: 47", "compute_cost { }", "compute_cost of a node is a value, not a message"),
        ("size: 52\n", "size: 5000000000000000000\n", "its sizes add up to"),
        ("size: 55\n    alias_input_port: -1", "size: 55 alias_input_port: 2", "alias of input 2; it has 2 inputs"),
        ("output_info {\n    size: 55", "output_info: 3\n  output_info {\n size: 55", "a message, not a value"),
        ("node_3", "node_3\\", "expected 'field: value'|never"),
        ("compute_cost: 58\n}\n", "compute_cost: 58\n", "a node begins within another; a '}' is missing"),
        ("node {\n", "}\nnode {\n", "'}' closes what is not open"),
        ('name: "node_2"', 'name: "node_2" op: "MatMul"', "this is a GraphDef, which has no costs"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_named(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in REGAL
    with pytest.raises(ImportFailedError, match=message):
        imported(tmp_path, REGAL.replace(old, new))


def test_a_cycle_through_control_is_shown(tmp_path: Path) -> None:
    text = REGAL.replace('name: "_SOURCE"', 'name: "_SOURCE"\n  control_input: 4')
    with pytest.raises(ImportFailedError, match=r"has a cycle: op \d 'node_\d' -> .*'_SOURCE' -> "):
        imported(tmp_path, text)


def test_aliases_in_a_circle_do_not_hang(tmp_path: Path) -> None:
    text = """
        node { name: "a" id: 1 input_info { preceding_node: 2 } output_info { size: 4 alias_input_port: 0 } }
        node { name: "b" id: 2 input_info { preceding_node: 1 } output_info { size: 4 alias_input_port: 0 } }
    """
    with pytest.raises(ImportFailedError, match="has a cycle"):
        imported(tmp_path, text)


@pytest.mark.parametrize(
    "text", ["", "# nothing", "node", "node {", "nodes { }", 'cost { dimension: "x" }', "<>", "\0"]
)
def test_files_that_hold_no_graph(tmp_path: Path, text: str) -> None:
    with pytest.raises(ImportFailedError):
        imported(tmp_path, text)


def test_every_beginning_of_a_file_is_an_error_or_a_smaller_graph(tmp_path: Path) -> None:
    ends = {REGAL[: i + 2].count("\n}\n") for i in range(len(REGAL))}
    assert len(ends) > 4
    for end in range(1, len(REGAL) - 1, 7):
        try:
            graph = imported(tmp_path, REGAL[:end]).graph
        except ImportFailedError:
            continue
        assert REGAL[:end].rstrip().endswith("}")
        assert graph.num_ops == REGAL[:end].count("node {")


LONG = 300_000


@pytest.mark.parametrize(
    "text",
    [
        "node { " * LONG,
        "node { name: \"" + "\\\"" * LONG,
        "node { name: " + '"a" ' * LONG,
        "node { control_input: [" + "0," * LONG,
        "node { x " + "{ y " * LONG,
        "node { id: " + "9" * LONG + " }",
        "#" * LONG,
        "node { " + "a:1 " * LONG,
        "node" + " " * LONG + "!",
    ],
    ids=range(9),
)  # fmt: skip
def test_nothing_takes_more_than_linear_time(tmp_path: Path, text: str) -> None:
    started = time.process_time()
    with pytest.raises(ImportFailedError):
        imported(tmp_path, text)
    assert time.process_time() - started < 5


def test_a_long_chain_of_aliases_is_read_in_time(tmp_path: Path) -> None:
    count = 20_000
    nodes = ['node { name: "a" output_info { size: 8 alias_input_port: -1 } }']
    nodes += [
        f'node {{ name: "v/r_{i}" id: {i} input_info {{ preceding_node: {i - 1} }} output_info {{ size: 8 }} }}'
        for i in range(1, count)
    ]
    started = time.process_time()
    graph = imported(tmp_path, "\n".join(nodes)).graph
    assert time.process_time() - started < 10
    assert int(graph.tensor_bytes.sum()) == 8
    assert reads(graph, f"v/r_{count - 1}") == ["a", f"v/r_{count - 2}"]


def test_damage_of_any_kind_is_an_error_of_ours(tmp_path: Path) -> None:
    rng = random.Random(7)
    pieces = ["{", "}", '"', ":", "-", "99", "node {", "id: 3", "size", "\n", "[", "]", "<", "#", "\\"]
    refused = 0
    for _ in range(300):
        text = rng.choice((REGAL, TRAINING))
        for _ in range(rng.choice((1, 1, 3))):
            at = rng.randrange(len(text))
            text = text[:at] + rng.choice(pieces) + text[at + rng.choice((0, 1, 9)) :]
        try:
            imported(tmp_path, text)
        except OpgymError:
            refused += 1
    assert refused > 100
