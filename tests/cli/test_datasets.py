"""``opgym datasets``: list, show, stats, verify and build."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from opgym import datasets
from opgym.datasets import zoo
from opgym.datasets.zoo.assembly import assemble
from opgym.datasets.zoo.build import build, choose, offered

from .conftest import Run

DEFINITIONS = Path(__file__).parents[1] / "datasets" / "zoo_definitions.py"
LISTED = {"id", "ops", "tensors", "topology", "family", "level", "source", "split"}


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A zoo of three graphs."""
    out = tmp_path_factory.mktemp("small")
    known = offered(str(DEFINITIONS))
    names = ["chain-100-infer", "mlp-b32-train", "twin-infer", "chain-short-infer"]
    build(choose(names, known), out, origin=str(DEFINITIONS), workers=2)
    assemble(out, known)
    return out / "zoo"


@pytest.fixture
def shipped(small: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The small zoo in the place of the one that comes with opgym."""
    monkeypatch.setattr(zoo, "FOLDER", small)
    zoo.manifest.cache_clear()
    yield small
    zoo.manifest.cache_clear()


def test_every_id_is_listed_with_what_is_known(rows: Callable[..., Any]) -> None:
    found = rows("datasets", "list")
    assert [row["id"] for row in found] == datasets.ids()
    assert all(row.keys() == LISTED for row in found)
    light = rows("datasets", "list", "onnx-light/")
    assert [row["id"] for row in light] == [id for id in datasets.ids() if id.startswith("onnx-light/")]
    densenet = next(row for row in light if row["id"] == "onnx-light/densenet121")
    assert (densenet["ops"], densenet["level"], densenet["source"]) == (668, "onnx", "onnx")
    assert all(row["family"] == "synthetic" for row in found if row["id"].startswith("synthetic/"))
    assert rows("datasets", "list", "no such text") == []


def test_the_zoo_is_listed_from_its_manifest(shipped: Path, rows: Callable[..., Any], opgym: Run) -> None:
    found = rows("datasets", "list", "zoo/")
    assert [(row["id"], row["ops"], row["family"]) for row in found] == [
        ("zoo/chain-100-infer", 100, "chain"),
        ("zoo/mlp-b32-train", 120, "mlp"),
        ("zoo/twin-infer", 500, "twin"),
    ]
    assert [row["id"] for row in rows("datasets", "list", "--family", "mlp")] == ["zoo/mlp-b32-train"]
    split = found[0]["split"]
    assert {row["split"] for row in rows("datasets", "list", "--split", split)} == {split}
    text = opgym("datasets", "list", "zoo/").stdout
    assert re.search(r"zoo/chain-100-infer +100 +101 +chain +test ", text)


def test_a_wrong_family(refused: Callable[..., str]) -> None:
    assert "did you mean" in refused("datasets", "list", "--family", "syntetic")
    assert "--family" in refused("datasets", "list", "--suite", "gdp", "--family", "synthetic")


def test_a_wrong_split(refused: Callable[..., str]) -> None:
    assert "did you mean train" in refused("datasets", "list", "--split", "trian")


def test_show(shipped: Path, rows: Callable[..., Any], opgym: Run, refused: Callable[..., str]) -> None:
    document = rows("datasets", "show", "zoo/chain-100-infer")
    assert document["reference"] == "Chains of three kinds."
    assert document["configuration"] == {"length": 100, "shape": [1, 2]}
    assert document["batch"] == 8
    assert document["kinds"] == {"Conv": 34, "BatchNorm": 33, "Relu": 33}
    assert document["flops"] == 800
    text = opgym("datasets", "show", "zoo/chain-100-infer").stdout
    assert "length 100, shape [1, 2]" in text
    assert "Conv 34" in text
    assert rows("datasets", "show", "example/two-branch")["parameter_bytes"] == 4 * 2048 * 2048 * 9
    assert "did you mean zoo/twin-infer" in refused("datasets", "show", "zoo/twin-infr")
    by_path = rows("datasets", "show", shipped / "twin-infer.npz")
    assert by_path["ops"] == 500
    assert "family" not in by_path


def test_stats(shipped: Path, rows: Callable[..., Any], opgym: Run) -> None:
    document = rows("datasets", "stats")
    assert (document["graphs"], document["topologies"], document["families"], document["groups"]) == (
        3,
        3,
        3,
        2,
    )
    assert document["ops"] == {"least": 100, "median": 120, "most": 500, "all": 720}
    assert document["bytes"] == sum(path.stat().st_size for path in shipped.glob("*.npz"))
    assert document["by_mode"] == {"infer": 2, "train": 1}
    assert document["dropped"] == {"too small": 1}
    text = opgym("datasets", "stats").stdout
    assert "3 graphs of 3 families (2 without twins)" in text
    assert re.search(r"twin +1 +500 - 500 +\w+ +chain", text)


def test_verify(small: Path, rows: Callable[..., Any], opgym: Run, tmp_path: Path) -> None:
    assert (
        "3 graphs, 0.0 MB: all as the manifest says" in opgym("datasets", "verify", "--folder", small).stdout
    )
    for path in small.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "twin-infer.npz").write_bytes(b"damaged")
    result = opgym("datasets", "verify", "--folder", tmp_path)
    assert result.exit_code == 1
    assert re.search(r"twin-infer\.npz .*damaged", result.stdout)
    assert "1 problems in" in result.stderr
    result = opgym("datasets", "verify", "--folder", tmp_path, "--json")
    assert result.exit_code == 1
    assert '"file": "twin-infer.npz"' in result.stdout


def test_a_manifest_that_is_none(tmp_path: Path, refused: Callable[..., str]) -> None:
    assert "manifest.json: no such file" in refused("datasets", "verify", "--folder", tmp_path)
    (tmp_path / "manifest.json").write_text("[]")
    assert "manifest.json: is a list; expected an object" in refused(
        "datasets", "verify", "--folder", tmp_path
    )


def test_build(tmp_path: Path, rows: Callable[..., Any], opgym: Run, refused: Callable[..., str]) -> None:
    command = ("datasets", "build", "--definitions", DEFINITIONS, "--out", tmp_path)
    document = rows(*command, "twin-infer", "refused-infer")
    assert [(row["name"], row["status"]) for row in document["results"]] == [
        ("twin-infer", "built"),
        ("refused-infer", "failed"),
    ]
    assert document["zoo"] == ["twin-infer"]
    text = opgym(*command, "twin-infer", "refused-infer").stdout
    assert re.search(r"refused-infer +\d+ +this graph has a cycle", text)
    assert "1 kept, 1 failed" in text
    assert "1 graphs in" in text
    assert opgym(*command, "refused-infer").exit_code == 1
    assert "did you mean twin-infer" in refused(*command, "twin-infr")
    assert "absent.py: no such file" in refused("datasets", "build", "--definitions", "absent.py")
    assert "expected a Python file" in refused("datasets", "build", "--definitions", "")
    (tmp_path / "none.py").touch()
    assert "no function with @definition" in refused(
        "datasets", "build", "--definitions", tmp_path / "none.py"
    )
    assert "--out" in refused(*command[:-1], tmp_path / "none.py", "twin-infer")


def test_a_rebuild_is_compared_with_what_is_shipped(
    shipped: Path, tmp_path: Path, rows: Callable[..., Any], opgym: Run
) -> None:
    command = ("datasets", "build", "--definitions", DEFINITIONS, "--out", tmp_path, "--check")
    document = rows(*command)
    assert [row["name"] for row in document["results"]] == ["chain-100-infer", "mlp-b32-train", "twin-infer"]
    assert set(document["compared"].values()) == {"same bytes"}
    assert "same bytes: chain-100-infer, mlp" in opgym(*command).stdout
    assert not (tmp_path / "zoo").exists()
    result = opgym(*command, "twin-infer", "chain-150-infer")  # the second is not shipped
    assert result.exit_code == 1
    assert "missing on one side: chain-150-infer" in result.stdout


def test_suites(rows: Callable[..., Any], opgym: Run, refused: Callable[..., str]) -> None:
    document = rows("datasets", "suites")
    gdp = next(suite for suite in document["suites"] if suite["name"] == "gdp")
    assert (gdp["rows"], gdp["parts"]) == (28, {"train": 0, "validation": 0, "test": 28})
    unseen = next(protocol for protocol in document["protocols"] if protocol["name"] == "unseen-size")
    assert "zoo/gnmt-8l-train" in unseen["test"]
    assert re.search(r"gdp +0 +0 +28 +GDP's workloads", opgym("datasets", "suites").stdout)
    listed = rows("datasets", "list", "gnmt-8l", "--suite", "gdp")
    assert [(row["graph"], row["cluster"]) for row in listed] == [
        ("zoo/gnmt-8l-train", "8xP100"),
        ("zoo/gnmt-8l-train", "8xP100@nvlink"),
    ]
    assert listed[0].keys() == {
        "graph", "fingerprint", "cluster", "objective", "capacity_bytes", "part", "role", "unsupported",
        "population",
    }  # fmt: skip
    text = opgym("datasets", "list", "--suite", "gdp-memory").stdout
    assert re.search(r"zoo/rnnlm-2l-train +2xP100 +step_time +\d+\.\d\d +test +task", text)
    assert "did you mean gdp" in refused("datasets", "list", "--suite", "gpd")
