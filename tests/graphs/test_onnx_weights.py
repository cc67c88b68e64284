"""Weights outside the file, absent, or too large for one message; and models of a great many nodes."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto

from opgym.errors import ImportFailedError
from opgym.graphs.readers import read
from opgym.graphs.readers.onnx import read_onnx

from .onnx_files import FLOAT, array, model, node, save, small_net


def external(name: str, location: str, dims: list[int], dtype: int = FLOAT, **entries: int) -> TensorProto:
    tensor = TensorProto(name=name, data_type=dtype, dims=dims, data_location=TensorProto.EXTERNAL)
    for key, value in {"location": location, **entries}.items():
        tensor.external_data.add(key=key, value=str(value))
    return tensor


def net(location: str, rows: int = 300) -> onnx.ModelProto:
    return model(
        [node("MatMul", ["x", "w"], ["y"])],
        [("x", FLOAT, [1, rows])],
        [("y", FLOAT, [1, 4])],
        [external("w", location, [rows, 4])],
    )


def test_structure_needs_no_weights(tmp_path: Path) -> None:
    path = save(net("weights/w.bin"), tmp_path)
    imported = read(path, strict=True)
    assert imported.graph.tensor_bytes.tolist() == [1200, 4800, 16]
    assert any("1 other files, 1 of them absent" in note for note in imported.report.notes)
    (tmp_path / "weights").mkdir()
    (tmp_path / "weights" / "w.bin").write_bytes(bytes(4800))
    present = read(path)
    assert present.graph == imported.graph
    assert any("0 of them absent" in note for note in present.report.notes)


@pytest.mark.parametrize(
    "location",
    [
        "/etc/passwd",
        "../w.bin",
        "weights/../../w.bin",
        "C:\\w.bin",
        "\\\\host\\w.bin",
        "..\\w.bin",
        "",
        "a\0b",
    ],
)
def test_a_path_that_leaves_the_folder_is_refused(tmp_path: Path, location: str) -> None:
    with pytest.raises(ImportFailedError, match="weights of 'w'"):
        read(save(net(location), tmp_path))
    with pytest.raises(ImportFailedError, match="weights of 'w'"):
        read_onnx(net(location))


def test_a_link_that_leaves_the_folder_is_refused(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (tmp_path / "secret.bin").write_bytes(bytes(4800))
    os.symlink(tmp_path / "secret.bin", home / "w.bin")
    os.symlink(tmp_path, home / "up")
    for location in ("w.bin", "up/secret.bin"):
        with pytest.raises(ImportFailedError, match="a link that leaves the model's folder"):
            read(save(net(location), home))
    (home / "real.bin").write_bytes(bytes(4800))
    os.symlink("real.bin", home / "alias.bin")
    assert read(save(net("alias.bin"), home)).graph.num_ops == 1


def test_paths_are_checked_wherever_weights_may_hide(tmp_path: Path) -> None:
    hidden = model(
        [
            node("Constant", [], ["c"], value=external("inner", "../w.bin", [300])),
            node("Add", ["x", "c"], ["y"]),
        ],
        [("x", FLOAT, [300])],
        [("y", FLOAT, [300])],
    )
    with pytest.raises(ImportFailedError, match="weights of 'inner'"):
        read(save(hidden, tmp_path))
    branch = onnx.helper.make_graph(
        [node("Add", ["x", "w"], ["b"])],
        "b",
        [],
        [onnx.helper.make_tensor_value_info("b", FLOAT, [300])],
        [external("w", "/w.bin", [300])],
    )
    nested = model(
        [node("If", ["flag"], ["y"], then_branch=branch, else_branch=branch)],
        [("x", FLOAT, [300])],
        [("y", FLOAT, [300])],
        [array("flag", True, bool)],
    )
    with pytest.raises(ImportFailedError, match="weights of 'w'"):
        read(save(nested, tmp_path))


def test_small_external_contents_decide_shapes_where_they_are_there(tmp_path: Path) -> None:
    proto = model(
        [node("Reshape", ["x", "s"], ["v"]), node("Relu", ["v"], ["y"])],
        [("x", FLOAT, [2, 6])],
        [("y", FLOAT, None)],
        [external("s", "s.bin", [2], TensorProto.INT64, offset=8)],
    )
    path = save(proto, tmp_path)
    assert read(path).report.missing_shape == ("y",)
    (tmp_path / "s.bin").write_bytes(np.array([9, 3, 4], np.int64).tobytes())
    assert read(path, strict=True).graph.shape(1) == (3, 4)
    (tmp_path / "s.bin").write_bytes(b"short")
    assert read(path).report.missing_shape == ("y",)


def test_a_model_of_over_two_gigabytes_keeps_all_its_nodes() -> None:
    """Shape inference of a whole model would have to serialise it; here 12 GB are only declared."""
    layers, width = 12, 16384
    nodes, weights, x = [], [], "x"
    for i in range(layers):
        weights.append(external(f"w{i}", "big.bin", [width, width], offset=i * 4 * width * width))
        nodes += [node("MatMul", [x, f"w{i}"], [f"m{i}"]), node("Relu", [f"m{i}"], [f"r{i}"])]
        x = f"r{i}"
    imported = read_onnx(
        model(nodes, [("x", FLOAT, [1, width])], [(x, FLOAT, [1, width])], weights), strict=True
    )
    assert imported.graph.num_ops == 2 * layers
    assert imported.graph.tensor_bytes[imported.graph.tensor_role == 1].sum() == layers * 2**30


@pytest.mark.slow
def test_two_gigabytes_in_memory_are_read_too() -> None:
    """A model that protobuf could not even write."""
    nodes = [node("MatMul", ["x", f"w{i}"], [f"y{i}"]) for i in range(4)]
    proto = model(nodes, [("x", FLOAT, [1, 16384])], [(f"y{i}", FLOAT, [1, 8400]) for i in range(4)])
    content = bytes(4 * 16384 * 8400)
    for i in range(4):
        proto.graph.initializer.add(name=f"w{i}", data_type=FLOAT, dims=[16384, 8400], raw_data=content)
    assert read_onnx(proto, strict=True).graph.num_ops == 4


def test_a_chain_of_fifty_thousand_ops_needs_no_recursion() -> None:
    length = 50_000
    nodes = [node("Relu" if i % 2 else "Neg", [f"t{i}"], [f"t{i + 1}"]) for i in range(length)]
    proto = model(nodes, [("t0", FLOAT, [4])], [(f"t{length}", FLOAT, [4])])
    graph = read_onnx(proto).graph
    assert graph.num_ops == length
    assert graph.op_flops.sum() == 4 * length
    proto.graph.node[0].input[0] = f"t{length}"  # now a circle of 50,000
    with pytest.raises(ImportFailedError, match=r"cycle: .* more \.\.\. "):
        read_onnx(proto)


def test_an_absent_weight_in_the_file_is_no_obstacle() -> None:
    proto = small_net()
    proto.graph.initializer[0].ClearField("raw_data")
    assert read_onnx(proto).graph == read_onnx(small_net()).graph
