"""What people bring, kind by kind: what the reader must accept, and how it must refuse the rest."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto

from opgym.errors import ImportFailedError, UnknownIdError
from opgym.graphs import Graph
from opgym.graphs.readers import read
from opgym.graphs.readers.onnx import read_onnx

from .onnx_files import BOOL, FLOAT, INT64, array, info, model, node, save, small_net


def tensor(graph: Graph, name: str) -> int:
    return graph.tensor_names.index(name)


def test_small_net_by_hand() -> None:
    imported = read_onnx(small_net())
    graph = imported.graph
    assert [graph.kind(op) for op in range(3)] == ["MatMul", "Relu", "Add"]
    assert graph.op_flops.tolist() == [2 * 2 * 4 * 3, 8, 8]
    assert graph.op_accessed_bytes.tolist() == [4 * (6 + 12 + 8), 4 * 16, 4 * 24]
    assert [graph.dtype(t) for t in range(graph.num_tensors)] == ["float32"] * 6
    assert [graph.shape(tensor(graph, name)) for name in ("x", "a", "b", "y")] == [
        (2, 3),
        (2, 4),
        (2, 4),
        (8,),
    ]
    assert graph.op_elementwise.tolist() == [False, True, True]
    assert graph.layers == ("fc", "act", "head")
    assert imported.report.folded == {"Reshape": 1}
    assert [graph.tensor_names[t] for t in np.flatnonzero(graph.tensor_is_output)] == ["y"]


# --- 2: sizes of 0


def test_a_tensor_of_size_zero_is_kept_and_costs_nothing() -> None:
    proto = model(
        [node("Relu", ["x"], ["y"]), node("MatMul", ["y", "w"], ["z"])],
        [("x", FLOAT, [0, 4])],
        [("z", FLOAT, [0, 5])],
        [array("w", np.ones((4, 5)))],
    )
    graph = read_onnx(proto, strict=True).graph
    assert graph.shape(tensor(graph, "x")) == (0, 4)
    assert graph.tensor_bytes[tensor(graph, "z")] == 0
    assert graph.op_flops.tolist() == [0, 0]


# --- 4: order and cycles


def test_nodes_in_any_order_give_the_same_graph() -> None:
    proto = small_net()
    mixed = small_net()
    order = [3, 0, 2, 1]
    del mixed.graph.node[:]
    mixed.graph.node.extend(proto.graph.node[i] for i in order)
    assert read_onnx(mixed).graph == read_onnx(proto).graph


def test_a_cycle_is_listed_once() -> None:
    nodes = [
        node("Add", ["x", "c"], ["a"], name="first"),
        node("Relu", ["a"], ["b"], name="second"),
        node("Relu", ["b"], ["c"], name="third"),
        node("Relu", ["x"], ["y"], name="apart"),
    ]
    with pytest.raises(ImportFailedError, match="cycle") as caught:
        read_onnx(model(nodes, [("x", FLOAT, [1])], [("y", FLOAT, [1])]))
    message = str(caught.value)
    assert all(message.count(name) >= 1 for name in ("first", "second", "third"))
    assert "apart" not in message


# --- 5: names


def test_equal_and_empty_names_and_unused_outputs() -> None:
    nodes = [
        node("Relu", ["x"], ["a"], name="same"),
        node("Relu", ["a"], ["b"], name="same"),
        node("Clip", ["b", "", "top"], ["c"], name=""),
        node("Split", ["c"], ["d", "unused"], axis=0, num_outputs=2),
        node("MaxPool", ["e"], ["y", ""], kernel_shape=[1, 1]),
        node("Reshape", ["d", "shape"], ["e"]),
    ]
    proto = model(
        nodes,
        [("x", FLOAT, [2, 2])],
        [("y", FLOAT, None)],
        [array("top", 6.0), array("shape", [1, 1, 1, 2], np.int64)],
    )
    graph = read_onnx(proto, strict=True).graph
    assert [graph.kind(op) for op in range(graph.num_ops)] == ["Relu", "Relu", "Clip", "Split", "MaxPool"]
    assert graph.op_names == ("same", "same", "c", "d", "y")
    assert len(graph.consumers(tensor(graph, "unused"))) == 0
    assert graph.shape(tensor(graph, "top")) == ()
    assert len(graph.outputs(4)) == 1


def test_two_nodes_writing_one_output_are_refused() -> None:
    nodes = [node("Relu", ["x"], ["y"], name="one"), node("Abs", ["x"], ["y"], name="two")]
    with pytest.raises(ImportFailedError, match=r"'y' is written by .*'one' and again by .*'two'"):
        read_onnx(model(nodes, [("x", FLOAT, [1])], [("y", FLOAT, [1])]))
    with pytest.raises(ImportFailedError, match=r"'y' is written by .* and again by .*'one'"):
        read_onnx(
            model(
                [node("Split", ["x"], ["y", "y"], name="one", num_outputs=2)],
                [("x", FLOAT, [2])],
                [("y", FLOAT, [1])],
            )
        )
    with pytest.raises(ImportFailedError, match="'x' is written by the graph's inputs"):
        read_onnx(model([node("Relu", ["x"], ["x"])], [("x", FLOAT, [1])], [("x", FLOAT, [1])]))


def test_a_name_that_nobody_writes_is_refused() -> None:
    with pytest.raises(ImportFailedError, match="'ghost', which no node writes"):
        read_onnx(model([node("Relu", ["ghost"], ["y"])], [], [("y", FLOAT, [1])]))
    with pytest.raises(ImportFailedError, match="output 'ghost' is written by no node"):
        read_onnx(model([node("Relu", ["x"], ["y"])], [("x", FLOAT, [1])], [("ghost", FLOAT, [1])]))


# --- 7: dtypes


def test_quantised_tensors_have_packed_bytes() -> None:
    w4 = TensorProto(name="w4", data_type=TensorProto.INT4, dims=[3, 3], raw_data=bytes(5))
    nodes = [
        node("QuantizeLinear", ["x", "scale", "zero"], ["q"]),
        node("DequantizeLinear", ["q", "scale", "zero"], ["d"]),
        node("DequantizeLinear", ["w4", "scale"], ["w"]),
        node("MatMul", ["d", "w"], ["y"]),
    ]
    proto = model(
        nodes,
        [("x", FLOAT, [5, 3])],
        [("y", FLOAT, [5, 3])],
        [array("scale", 0.1), array("zero", 0, np.int8), w4],
        opset=21,
        ir_version=10,
    )
    graph = read_onnx(proto, strict=True).graph
    sizes = {name: int(graph.tensor_bytes[tensor(graph, name)]) for name in ("x", "q", "w4", "zero", "y")}
    assert sizes == {"x": 60, "q": 15, "w4": 5, "zero": 1, "y": 60}
    assert graph.dtype(tensor(graph, "q")) == "int8"
    assert graph.dtype(tensor(graph, "w4")) == "int4"


@pytest.mark.parametrize("number", [29, 99])
def test_an_unknown_dtype_is_an_error(number: int) -> None:
    proto = small_net()
    proto.graph.initializer[0].data_type = number
    with pytest.raises(ImportFailedError, match=f"'w' has element type {number}"):
        read_onnx(proto)


def test_every_dtype_of_the_installed_onnx_has_a_size() -> None:
    from opgym.graphs.dtypes import BITS
    from opgym.graphs.readers.onnx.types import DTYPES

    assert len(TensorProto.DataType.items()) > 20
    for name, number in TensorProto.DataType.items():
        if number:
            assert DTYPES[number] == {"FLOAT": "float32", "DOUBLE": "float64"}.get(name, name.lower())
            assert BITS[DTYPES[number]] > 0


# --- 8: custom ops


def custom() -> onnx.ModelProto:
    nodes = [node("Mystery", ["x"], ["m"], domain="acme"), node("Relu", ["m"], ["y"])]
    return model(nodes, [("x", FLOAT, [2, 3])], [("y", TensorProto.FLOAT16, None)], domains={"acme": 1})


def test_a_custom_op_is_listed_and_strict_refuses_it() -> None:
    report = read_onnx(custom()).report
    assert report.missing_shape == ("m", "y")
    assert report.missing_cost == {"acme.Mystery": 1}
    with pytest.raises(ImportFailedError, match=r"strict.*2 tensors without a shape.*acme.Mystery x 1"):
        read_onnx(custom(), strict=True)


def test_the_user_supplies_shapes_and_costs() -> None:
    imported = read_onnx(
        custom(),
        shapes={"m": "float16[2,5]"},
        strict=True,
        costs={"acme.Mystery": lambda inputs, outputs: inputs[0][1] * outputs[0][1]},
    )
    graph = imported.graph
    assert graph.op_flops.tolist() == [15, 10]
    assert graph.tensor_bytes[tensor(graph, "y")] == 20
    assert read_onnx(custom(), shapes={"m": "float16[2,5]"}, costs={"acme.Mystery": 7}).graph.op_flops[0] == 7


def test_supplied_shapes_need_a_dtype_and_right_names() -> None:
    with pytest.raises(ImportFailedError, match=r"dtype of tensor 'm' is unknown.*'float32\[2,5\]'"):
        read_onnx(custom(), shapes={"m": (2, 5)})
    with pytest.raises(UnknownIdError, match="did you mean m"):
        read_onnx(custom(), shapes={"mm": "float32[2]"})
    with pytest.raises(UnknownIdError, match=r"did you mean acme\.Mystery"):
        read_onnx(custom(), costs={"Mystery": 3})
    for spec in ("float31[1]", "float32", (1, -2), (1.5,)):
        with pytest.raises(ImportFailedError, match="shape of 'm'"):
            read_onnx(custom(), shapes={"m": spec})  # type: ignore[dict-item]


def test_a_declared_shape_stands_in_for_a_missing_rule() -> None:
    nodes = [node("Mystery", ["x"], ["m"], domain="acme"), node("Relu", ["m"], ["y"])]
    proto = model(
        nodes,
        [("x", FLOAT, [2, 3])],
        [("y", FLOAT, None)],
        value_info=[("m", FLOAT, [4, 4])],
        domains={"acme": 1},
    )
    imported = read_onnx(proto)
    assert imported.report.missing_shape == ()
    assert imported.graph.tensor_bytes.tolist() == [24, 64, 64]


# --- 9: contradictions


def test_declared_against_inferred_names_the_tensor_and_the_option() -> None:
    proto = small_net(value_info=[("b", FLOAT, [2, 9])])
    with pytest.raises(
        ImportFailedError, match=r"'b' is declared as float32\[2,9\] and inferred as float32\[2,4\].*trust"
    ):
        read_onnx(proto)
    right = read_onnx(proto, trust="inferred")
    assert right.graph == read_onnx(small_net()).graph
    assert any("inferred" in note for note in right.report.notes)
    declared = small_net(value_info=[("y", FLOAT, [9])])
    declared.graph.output[0].type.tensor_type.shape.dim[0].dim_value = 9
    assert read_onnx(declared, trust="declared").graph.tensor_bytes[-1] == 36
    with pytest.raises(UnknownIdError, match="did you mean inferred"):
        read_onnx(proto, trust="infered")


def test_a_declared_dtype_that_contradicts_is_refused_too() -> None:
    with pytest.raises(ImportFailedError, match=r"'b' is declared as float16\[2,4\]"):
        read_onnx(small_net(value_info=[("b", TensorProto.FLOAT16, [2, 4])]))


def test_an_op_that_does_not_fit_its_inputs_is_named() -> None:
    proto = model(
        [node("MatMul", ["x", "w"], ["y"], name="fc")],
        [("x", FLOAT, [2, 3])],
        [("y", FLOAT, [2, 4])],
        [array("w", np.ones((5, 4)))],
    )
    with pytest.raises(ImportFailedError, match=r"MatMul 'fc' does not fit its inputs.*[Ii]ncompatible"):
        read_onnx(proto)
    assert read_onnx(proto, trust="declared").graph.tensor_bytes[-1] == 32


# --- 10: versions


def test_versions_that_are_too_new_are_both_named() -> None:
    newest = onnx.defs.onnx_opset_version()
    proto = small_net()
    proto.opset_import[0].version = newest + 1
    with pytest.raises(ImportFailedError, match=f"opset {newest + 1} .* up to {newest}"):
        read_onnx(proto)
    proto = small_net()
    proto.ir_version = onnx.IR_VERSION + 3
    with pytest.raises(
        ImportFailedError, match=f"IR version {onnx.IR_VERSION + 3} .* up to {onnx.IR_VERSION}"
    ):
        read_onnx(proto)
    proto = small_net(domains={"ai.onnx.ml": 99})
    with pytest.raises(ImportFailedError, match=r"opset 99 of ai\.onnx\.ml"):
        read_onnx(proto)
    for version in (0, -1, 2**40):
        with pytest.raises(ImportFailedError, match=f"states opset {version} of acme"):
            read_onnx(small_net(domains={"acme": version}))
    proto = small_net(domains={"acme": 1})
    del proto.opset_import[0]
    with pytest.raises(ImportFailedError, match=r"states no opset of ai\.onnx"):
        read_onnx(proto)
    proto = small_net()
    del proto.opset_import[:]
    with pytest.raises(ImportFailedError, match="no opset version"):
        read_onnx(proto)


# --- 11: one model, many spellings


def test_weights_give_the_same_graph_however_they_are_written() -> None:
    plain = small_net()
    also_inputs = small_net()
    for weight in also_inputs.graph.initializer:
        also_inputs.graph.input.append(info(weight.name, weight.data_type, list(weight.dims)))
    nodes = small_net()
    for weight in list(nodes.graph.initializer):
        nodes.graph.node.append(node("Constant", [], [weight.name], value=weight))
    del nodes.graph.initializer[:]
    filled = small_net()
    for weight in [w for w in filled.graph.initializer if w.name != "shape"]:
        filled.graph.initializer.remove(weight)
        filled.graph.initializer.append(array(weight.name + "/shape", list(weight.dims), np.int64))
        filled.graph.node.insert(0, node("ConstantOfShape", [weight.name + "/shape"], [weight.name]))
    expected = read_onnx(plain).graph
    for other in (also_inputs, nodes, filled):
        assert read_onnx(other).graph.fingerprint == expected.fingerprint
    assert read_onnx(filled).report.folded == {"ConstantOfShape": 2, "Reshape": 1}
    roles = {expected.tensor_names[t]: int(expected.tensor_role[t]) for t in range(expected.num_tensors)}
    assert roles == {"x": 2, "w": 1, "bias": 1, "a": 0, "b": 0, "y": 0}


def test_a_weight_that_is_listed_as_an_input_of_another_shape_is_refused() -> None:
    proto = small_net()
    proto.graph.input.append(info("w", FLOAT, [3, 5]))
    with pytest.raises(
        ImportFailedError, match=r"'w' is declared as float32\[3,5\] and inferred as float32\[3,4\]"
    ):
        read_onnx(proto)
    proto.graph.input[1].CopyFrom(info("w", FLOAT, ["rows", None]))
    assert read_onnx(proto).graph == read_onnx(small_net()).graph


# --- 12: not a model


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"# not a model at all, but a text of some length\n", "not an ONNX model"),
        (bytes(range(256)) * 4, "not an ONNX model"),
        (small_net().SerializeToString()[:-40], "damaged or truncated"),
        (b"\x08\x09", "it has no graph"),
    ],
)
def test_what_is_no_model_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(content)
    with pytest.raises(ImportFailedError, match=message):
        read(path)
    with pytest.raises(ImportFailedError, match=message):
        read_onnx(path)


def test_a_folder_a_missing_file_and_a_model_without_nodes(tmp_path: Path) -> None:
    for reader in (read, read_onnx):
        with pytest.raises(ImportFailedError, match="is a folder"):
            reader(tmp_path)
        with pytest.raises(ImportFailedError, match="no such file"):
            reader(tmp_path / "absent.onnx")
    empty = model([], [("x", FLOAT, [1])], [("x", FLOAT, [1])])
    with pytest.raises(ImportFailedError, match="no nodes; there is nothing to decide"):
        read(save(empty, tmp_path))
    views = model([node("Identity", ["x"], ["y"])], [("x", FLOAT, [1])], [("y", FLOAT, [1])])
    with pytest.raises(ImportFailedError, match="every node is a constant or a view"):
        read_onnx(views)


def test_names_that_are_no_text_are_refused() -> None:
    proto = small_net()
    proto.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "rows"
    content = proto.SerializeToString()
    for word in (b"bias", b"Relu", b"test", b"rows"):
        damaged = onnx.ModelProto.FromString(content.replace(word, b"\xff\xfe" + word[2:]))
        with pytest.raises(ImportFailedError, match="UTF-8"):
            read_onnx(damaged, dims={"rows": 2})


def test_weights_that_contradict_their_shape_are_refused() -> None:
    proto = small_net()
    proto.graph.initializer[0].raw_data = bytes(12)
    with pytest.raises(ImportFailedError, match=r"'w' hold 12 bytes; float32\[3,4\] needs 48"):
        read_onnx(proto)
    proto = small_net()
    proto.graph.initializer[0].dims[0] = -3
    with pytest.raises(ImportFailedError, match="'w' have a negative size"):
        read_onnx(proto)


def test_scalar_bool_outputs_are_tensors_like_others() -> None:
    graph = read_onnx(
        model([node("Less", ["x", "y"], ["z"])], [("x", INT64, []), ("y", INT64, [])], [("z", BOOL, [])])
    ).graph
    assert graph.tensor_bytes.tolist() == [8, 8, 1]
