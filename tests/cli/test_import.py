"""``opgym import``: the report."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

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
