"""``opgym import``: the report."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import onnx.helper as oh
import pytest

from opgym.graphs import load

from .conftest import Run


def test_the_report_is_the_readers(model: Path, rows: Callable[..., Any]) -> None:
    report = rows("import", model, "--dim", "batch=8")
    assert report["format"] == "onnx"
    assert report["ops"] == 25
    assert report["bound_dims"] == {"batch": 8}
    assert report["missing_shape"] == []
    assert set(report) >= {
        "source", "format", "level", "ops", "tensors", "fingerprint", "folded", "bound_dims",
        "subgraph_policy", "subgraphs", "missing_shape", "missing_cost", "notes",
    }  # fmt: skip


def test_other_formats(published: Path, rows: Callable[..., Any]) -> None:
    assert rows("import", published)["format"] == "dnn-partitioning"
    assert rows("import", "example/rnn-train")["ops"] > 0


def test_save_writes_the_graph(model: Path, tmp_path: Path, rows: Callable[..., Any]) -> None:
    report = rows("import", model, "--dim", "batch=8", "--save", tmp_path / "g.npz")
    assert load(tmp_path / "g.npz").fingerprint == report["fingerprint"]
    assert rows("import", tmp_path / "g.npz")["fingerprint"] == report["fingerprint"]


def test_the_text_names_every_part(model: Path, opgym: Run) -> None:
    text = opgym("import", model, "--dim", "batch=8").stdout
    for word in ("fingerprint", "bound dims", "batch: 8", "missing shape", "notes"):
        assert word in text


def test_refusals(model: Path, tmp_path: Path, refused: Callable[..., str]) -> None:
    assert "--dim" in refused("import", model)
    assert "no folder" in refused("import", model, "--dim", "batch=8", "--save", tmp_path / "no" / "g.npz")
    assert not (tmp_path / "no").exists()


def custom_model(path: Path, *, declared: list[int] | None) -> Path:
    """Relu, then an op that only its authors know; ``declared`` contradicts the shape of the Relu."""
    x, z = (oh.make_tensor_value_info(n, onnx.TensorProto.FLOAT, s) for n, s in (("x", [4, 8]), ("z", None)))
    nodes = [oh.make_node("Relu", ["x"], ["h"]), oh.make_node("Secret", ["h"], ["z"], domain="their.ops")]
    info = [] if declared is None else [oh.make_tensor_value_info("h", onnx.TensorProto.FLOAT, declared)]
    graph = oh.make_graph(nodes, "custom", [x], [z], value_info=info)
    opsets = [oh.make_opsetid("", 17), oh.make_opsetid("their.ops", 1)]
    onnx.save(oh.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return path


def test_shapes_and_work_that_the_model_does_not_tell(
    tmp_path: Path, rows: Callable[..., Any], refused: Callable[..., str]
) -> None:
    model = custom_model(tmp_path / "m.onnx", declared=None)
    report = rows("import", model)
    assert any("z" in tensor for tensor in report["missing_shape"])
    [kind] = report["missing_cost"]
    assert "Secret" in kind
    assert "z" in refused("import", model, "--strict")
    told = ("--shape", "z=float32[4,1000]", "--flops", f"{kind}=5000000000")
    report = rows("import", model, *told, "--strict", "--save", tmp_path / "g.npz")
    assert (report["missing_shape"], report["missing_cost"]) == ([], {})
    graph = load(tmp_path / "g.npz")
    assert graph.op_flops.tolist()[-1] == 5_000_000_000
    assert graph.tensor_bytes.tolist()[-1] == 4 * 4 * 1000
    value = {name: rows("place", model, *args, "--solver", "single")[0]["value"] for name, args in
             (("untold", ()), ("told", told))}  # fmt: skip
    assert value["told"] > value["untold"] + 500_000


def test_a_contradiction_is_refused_until_a_side_is_trusted(
    tmp_path: Path, rows: Callable[..., Any], refused: Callable[..., str]
) -> None:
    model = custom_model(tmp_path / "m.onnx", declared=[4, 9])
    message = refused("import", model)
    assert "'h'" in message
    assert "trust" in message
    for side, columns in (("declared", 9), ("inferred", 8)):
        rows("import", model, "--trust", side, "--save", tmp_path / "g.npz")
        graph = load(tmp_path / "g.npz")
        assert graph.shape(graph.tensor_names.index("h")) == (4, columns)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (("--shape", "z"), "expected TENSOR=TYPE"),
        (("--shape", "z=float32"), "float32"),
        (("--shape", "z=float99[1]"), "float99"),
        (("--shape", "nothing=float32[1]"), "nothing"),
        (("--flops", "Secret=much"), "expected KIND=N with a whole number N"),
        (("--flops", "Sekret=1"), "Sekret"),
        (("--trust", "me"), "me"),
        (("--dim", "batch=4"), "batch"),
    ],
)
def test_what_does_not_apply_is_refused(
    option: tuple[str, str], message: str, tmp_path: Path, refused: Callable[..., str]
) -> None:
    assert message in refused("import", custom_model(tmp_path / "m.onnx", declared=None), *option, "--json")


def test_onnx_options_are_refused_for_other_formats(published: Path, refused: Callable[..., str]) -> None:
    assert "no ONNX model" in refused("import", published, "--dim", "batch=4")
    assert "batch" in refused("import", "example/rnn-train", "--dim", "batch=4")
