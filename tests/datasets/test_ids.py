"""Ids: every one loads, a wrong one says which was meant, and a path is a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from opgym import datasets
from opgym.datasets import onnx_light
from opgym.errors import ImportFailedError, UnknownIdError
from opgym.graphs import save


@pytest.mark.parametrize("name", [name for name in datasets.ids() if not name.startswith("zoo/")])
def test_every_id_loads_and_names_itself(name: str) -> None:
    imported = datasets.read(name)
    assert imported.report.source == name
    assert imported.report.fingerprint == imported.graph.fingerprint
    assert imported.report.ops == imported.graph.num_ops > 0
    assert datasets.load(name) == imported.graph


def test_ids_are_sorted_and_distinct() -> None:
    ids = datasets.ids()
    assert ids == sorted(set(ids))
    assert {"onnx-light/resnet50", "onnx-light/inception_v2", "onnx-light/densenet121"} < set(ids)


def test_a_wrong_id_gets_the_nearest_right_one() -> None:
    for wrong, right in (
        ("onnx-light/resnet5", "onnx-light/resnet50"),
        ("onnx-light/alexnet", "onnx-light/bvlc_alexnet"),
        ("onxn-light/vgg19", "onnx-light/vgg19"),
        ("resnet50", "onnx-light/resnet50"),
    ):
        with pytest.raises(UnknownIdError, match=f"did you mean .*{right}"):
            datasets.load(wrong)


def test_a_path_is_a_file(tmp_path: Path) -> None:
    graph = datasets.load("onnx-light/squeezenet")
    save(graph, tmp_path / "squeezenet.npz")
    assert datasets.load(tmp_path / "squeezenet.npz") == graph
    assert datasets.load(str(onnx_light.path("squeezenet"))) == graph
    for absent in ("absent.onnx", str(tmp_path / "absent"), "./absent"):
        with pytest.raises(ImportFailedError, match="no such file"):
            datasets.load(absent)


def test_options_reach_the_reader() -> None:
    assert (
        datasets.read("onnx-light/vgg19", subgraphs="reject", strict=True).report.subgraph_policy == "reject"
    )
    with pytest.raises(ImportFailedError, match="no dynamic dimension"):
        datasets.load("onnx-light/vgg19", dims={"batch": 2})
    with pytest.raises(ImportFailedError, match="dims"):
        datasets.load("example/two-branch", dims={"batch": 2})
