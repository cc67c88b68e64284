"""``opgym check``: values are recomputed, claims are ignored."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .conftest import Run

ORACLES = Path(os.environ.get("OPGYM_ORACLES", Path(__file__).parents[3] / "shared" / "oracles"))
FOLDER = ORACLES / "dnn-partitioning"


@pytest.fixture
def solution(tmp_path: Path, opgym: Run) -> Path:
    """The single-device placement of the example graph."""
    path = tmp_path / "s.json"
    assert opgym("place", "example/rnn-train", "--solver", "single", "--out", path).exit_code == 0
    return path


def test_a_split_is_judged(published: Path, split: Path, rows: Callable[..., Any]) -> None:
    """2 + 3 + 4 + 5 and sending 0.5, against 6 + 7 and receiving 0.5."""
    found = rows("check", published, split)
    assert (found["value"], found["unit"], found["verdict"]) == (pytest.approx(14.5), "ms", "ok")
    assert found["objective"] == "max_load"
    assert found["ratio_to_bound"] == pytest.approx(found["value"] / found["bound"])


def test_bad_verdicts_are_exit_0(solution: Path, rows: Callable[..., Any]) -> None:
    document = json.loads(solution.read_text())
    document["device"][0] = 99
    solution.write_text(json.dumps(document))
    found = rows("check", "example/rnn-train", solution)
    assert (found["verdict"], found["value"]) == ("unknown_device", None)
    assert found["ratio_to_bound"] is None


def test_claims_are_not_believed(solution: Path, rows: Callable[..., Any]) -> None:
    true = rows("check", "example/rnn-train", solution)
    document = json.loads(solution.read_text())
    document["claim"]["value"] = 1
    solution.write_text(json.dumps(document))
    assert rows("check", "example/rnn-train", solution) == true


def test_the_text_says_verdict_value_and_ratio(solution: Path, opgym: Run) -> None:
    text = opgym("check", "example/rnn-train", solution).stdout
    assert text.startswith("ok  step_time ")
    assert "times the lower bound" in text
    assert "\npeak memory: " in text
    assert "\nstep time: " in text


def test_the_text_of_a_split_has_the_loads(published: Path, split: Path, opgym: Run) -> None:
    text = opgym("check", published, split).stdout
    assert text.startswith("ok  max_load 14.5 ms, ")
    assert "\nload: 14.500 ms / 13.500 ms / 0.000 ms\n" in text
    assert "\npeak memory: 3.91 / 1.95 / 0 KiB\n" in text


def test_cluster_and_objective_of_the_file_are_the_defaults(
    tmp_path: Path, opgym: Run, rows: Callable[..., Any], refused: Callable[..., str]
) -> None:
    path = tmp_path / "s.json"
    made = ("place", "example/rnn-train", "--cluster", "2xV100@nvlink", "--solver", "metis", "--out", path)
    value = json.loads(opgym(*made, "--objective", "peak_memory", "--json").stdout)[0]["value"]
    found = rows("check", "example/rnn-train", path)
    assert (found["value"], found["unit"], found["objective"]) == (value, "bytes", "peak_memory")
    assert rows("check", "example/rnn-train", path, "--objective", "step_time")["unit"] == "ns"
    slower = rows("check", "example/rnn-train", path, "--objective", "step_time", "--cluster", "2xV100@pcie3")
    assert slower["value"] > rows("check", "example/rnn-train", path, "--objective", "step_time")["value"]
    assert "made for devices V100:0" in refused("check", "example/rnn-train", path, "--cluster", "2xP100")


def test_the_pipeline_of_the_file_is_the_default(tmp_path: Path, rows: Callable[..., Any]) -> None:
    path = tmp_path / "s.json"
    made = (
        "place",
        "example/rnn-train",
        "--solver",
        "human-expert",
        "--objective",
        "max_load",
        "--out",
        path,
    )
    [placed] = rows(*made, "--micro-batches", 4, "--schedule", "1f1b")
    assert rows("check", "example/rnn-train", path)["value"] == pytest.approx(placed["value"])
    assert rows("check", "example/rnn-train", path, "--micro-batches", 1)["value"] > placed["value"]


@pytest.mark.parametrize(
    ("key", "value"),
    [("pipeline", {"micro_batches": "x", "schedule": 3}), ("pipeline", {"cluster": 5}), ("cluster", 5),
     ("objective", ["step_time"]), ("cluster", "99xP100"), ("devices", None), ("graph", 1)],
)  # fmt: skip
def test_a_damaged_file_is_refused(
    key: str, value: object, solution: Path, refused: Callable[..., str]
) -> None:
    document = json.loads(solution.read_text())
    solution.write_text(json.dumps(document | {key: value}))
    assert refused("check", "example/rnn-train", solution, "--json")


def test_files_that_do_not_belong_together(
    solution: Path, model: Path, published: Path, split: Path, refused: Callable[..., str]
) -> None:
    assert "fingerprint" in refused("check", model, solution, "--dim", "batch=8")
    assert "devices" in refused("check", "example/rnn-train", solution, "--cluster", "2xV100")
    assert "node" in refused("check", "example/rnn-train", split, "--json")
    assert "absent.json" in refused("check", published, "absent.json")


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"format": "other"}', "\x00", '{"fpgas": 3}'])
def test_unreadable_solutions(
    content: str, published: Path, tmp_path: Path, refused: Callable[..., str]
) -> None:
    path = tmp_path / "bad.json"
    path.write_text(content)
    assert "bad.json" in refused("check", published, path)
    assert str(tmp_path) in refused("check", published, tmp_path)


@pytest.mark.skipif(not FOLDER.is_dir(), reason=f"no oracle at {FOLDER}; set OPGYM_ORACLES")
def test_published_experts() -> None:
    """Through the command, as a user would; tests/problems holds every value of the oracle."""
    from typer.testing import CliRunner

    from opgym.cli.app import app

    expected = json.loads((FOLDER / "expected.json").read_text())["max_load"]
    checked = 0
    for graph, values in expected.items():
        expert = FOLDER / "experts" / f"{Path(graph).stem}_expert.json"
        if "expert" not in values or not expert.exists():
            continue
        done = CliRunner().invoke(
            app, ["check", str(FOLDER / graph), str(expert), "--objective", "max_load", "--json"]
        )
        assert done.exit_code == 0, done.output
        assert json.loads(done.stdout)["value"] == pytest.approx(values["expert"], abs=1e-3)
        checked += 1
    assert checked >= 4
