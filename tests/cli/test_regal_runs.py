"""``opgym reproduce regal``: its tables and files, and what it refuses."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from opgym.runs import run_folder
from opgym.runs.reproduce.regal.results_file import stored
from opgym.runs.reproduce.regal.table import DEVIATIONS

from ..runs.regal.test_table import ROWS, _document
from .conftest import Run

TINY = ("--part", "validation", "--graphs", 1, "--seeds", 1, "--agents", "none", "--workers", 1)
HUGE = 10**23
KEYS = {"task", "method", "metric", "value", "low", "high", "n", "paper"}


def test_two_at_a_time_in_one_folder_are_one_too_many(
    opgym: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_folder, "PATIENCE_S", 0.0)
    with run_folder.locked(tmp_path):
        result = opgym("reproduce", "regal", "--task", "memory-1", *TINY, "--out", tmp_path)
    assert result.exit_code == 2
    assert "works on this run" in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == [".lock"]


def test_lines_tables_and_files(rows: Callable[..., Any], opgym: Run, tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = ("reproduce", "regal", "--task", "memory-1", *TINY, "--columns", "key-search-5k", "--out", out)
    lines = rows(*command)
    assert {frozenset(line) for line in lines} == {frozenset(KEYS)}
    assert {line["task"] for line in lines} == {"memory-1/synthetic", "memory-1/real"}
    assert {line["method"] for line in lines} == {"brkga-5k", "key-search-5k"}
    assert sorted(path.name for path in out.iterdir()) == [
        ".lock", "regal-memory-1-validation.jsonl", "regal-validation.json", "rows.jsonl",
    ]  # fmt: skip
    assert json.loads((out / "regal-validation.json").read_text()) == lines
    document = stored(out / "regal-memory-1-validation.jsonl")
    base, other = (
        document["graphs"][0]["columns"][name]["values"][0] for name in ("brkga-5k", "key-search-5k")
    )
    [gain] = [
        line["value"]
        for line in lines
        if (line["task"], line["metric"]) == ("memory-1/synthetic", "improvement")
    ]
    assert gain == pytest.approx(1 - other / base)
    before = (out / "rows.jsonl").read_text()
    result = opgym(*command)
    assert result.exit_code == 0
    assert (out / "rows.jsonl").read_text() == before
    assert "memory-1, real graphs of the validation part" in result.stdout
    [row] = [line for line in result.stdout.splitlines() if line.split()[:1] == ["key-search-5k"]][:1]
    assert row.split()[1] == f"{100 * gain:.1f}"
    assert [line for line in result.stderr.splitlines() if "not as in the paper" in line] == [
        f"{len(DEVIATIONS)} things are not as in the paper, graphs and costs among them: docs/regal_results.md"
    ]
    assert "no headroom: best known values are stored for the test only" in result.stderr
    assert row.split()[2] == "-"
    assert "graphs: there are no" not in result.stderr


def test_the_whole_test_is_told_apart_from_the_paper_thing_by_thing(
    opgym: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents = [_document(*copy.deepcopy(ROWS)) | {"skipped": {}}]
    monkeypatch.setattr("opgym.runs.reproduce.regal.reproduction.run", lambda *arguments: documents)
    command = ("reproduce", "regal", "--task", "memory-1", "--agents", "none", "--out", tmp_path)
    told = [line for line in opgym(*command).stderr.splitlines() if "not as in the paper" in line]
    assert told == [f"not as in the paper: {text}" for text in DEVIATIONS]
    less = opgym(*command, "--graphs", 150)
    assert sum("not as in the paper" in line for line in less.stderr.splitlines()) == 1
    assert "all 90 real graphs: there are no 150" in less.stderr
    assert "synthetic graphs:" not in less.stderr
    assert "no headroom" not in less.stderr
    documents[0]["reference_version"] = None
    for graph in documents[0]["graphs"]:
        graph["best_known"] = None
    assert "no headroom: best known values are stored for transfers that" in opgym(*command).stderr
    stderr = opgym(*command, "--graphs", 150, "--json").stderr
    assert not any(text in stderr for text in ("not as in the paper", "no headroom", "there are no"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--task", "memory-3"), "unknown task 'memory-3'; did you mean memory-"),
        (("--task", "memory-1,memory-1"), "expected different names"),
        (("--agents", "regall"), "unknown agent 'regall'; did you mean regal"),
        (("--agents", "m-etf"), "learns nothing"),
        (("--agents", ","), "expected different names"),
        (("--columns", "brkga-5"), "unknown column 'brkga-5'; did you mean brkga-5"),
        (("--part", "train"), "unknown part 'train'"),
        (("--seeds", 5), "Invalid value for '--seeds'"),
        (("--name", "../x"), "expected letters, digits"),
        (("--name", "x" * 300), "at most 80"),
        (("--task", "memory-2", "--name", "links"), "files of something else begin with links"),
        (("--name", "validation-2"), "files of something else begin with"),
        (("--name", "quick"), "files of something else begin with"),
        (("--name", "sample"), "files of something else begin with"),
        (("--evaluations", 0), "Invalid value for '--evaluations'"),
        (("--graphs", 0), "Invalid value for '--graphs'"),
        (("--graphs", 201), "201 graphs of each population; part test has 200 synthetic and 90 real ones"),
        (("--graphs", HUGE, "--quick"), "part test has 200 synthetic and 90 real ones"),
        (("--graphs", HUGE, "--part", "validation"), "has 4,000,000 synthetic and 119 real ones"),
        (("--evaluations", HUGE), "expected 1 to 1,000,000,000,000,000"),
        (("--seeds", HUGE), "Invalid value for '--seeds'"),
    ],
)
def test_what_cannot_be_is_refused_before_the_work(
    refused: Callable[..., str], tmp_path: Path, arguments: tuple[Any, ...], message: str
) -> None:
    out = tmp_path / "out"
    assert message in refused("reproduce", "regal", *arguments, "--out", out)
    assert not out.exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("headroom", "--graphs", HUGE), "expected 1 to 1000000"),
        (("headroom", "--devices", HUGE), "expected different whole numbers"),
        (("headroom", "--scale", "1e400"), "expected a share above 0"),
        (("regal-cap", "--graphs", HUGE), "there are 4,000,000"),
        (("best-known", "--evaluations", HUGE, "--graphs", 1), "expected 1 to 1,000,000,000,000,000"),
        (("best-known", "--rounds", HUGE), "expected different whole numbers"),
        (("learner-tuning", "placement", "--settings", HUGE), "different ones"),
    ],
)
def test_no_number_is_too_large_for_an_answer(
    refused: Callable[..., str], tmp_path: Path, arguments: tuple[Any, ...], message: str
) -> None:
    out = () if arguments[0] == "regal-cap" else ("--out", tmp_path / "out")
    assert message in refused("reproduce", *arguments, *out)


def test_a_folder_that_cannot_be_is_refused(refused: Callable[..., str], tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    taken.write_text("")
    assert str(taken) in refused("reproduce", "regal", *TINY, "--out", taken)
