"""``opgym reproduce gdp``: its tables and files, and what it refuses."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from opgym.runs import run_folder
from opgym.runs.reproduce.gdp import methods, reproduction, store
from opgym.runs.reproduce.gdp.claims import DEVIATIONS
from opgym.runs.reproduce.gdp.measuring import Job, measured_here

from ..runs.gdp.made import method, row, workload
from ..runs.gdp.test_tables import ONE
from .conftest import Run

KEYS = {"task", "method", "metric", "value", "low", "high", "n", "paper"}
SMALL = "xdeepfm-3-infer on 4xP100"
#: Three rules on a graph of a hundred ops.
TINY = (
    "reproduce", "gdp", "--table", "generalization", "--rows", "xdeepfm-3-infer on 4xP100:", "--methods",
    "human-expert,metis,heft", "--workers", 1,
)  # fmt: skip


@pytest.fixture(autouse=True)
def somewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in, with a package that has neither weights nor rows."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(methods.SHELF, "folder", tmp_path / "package" / "weights")
    monkeypatch.setattr(store, "PACKAGED", tmp_path / "package" / "rows")
    return tmp_path


def _package(folder: Path, rows: list[dict[str, Any]]) -> None:
    place = folder / "package" / "rows"
    place.mkdir(parents=True)
    (place / "own.jsonl").write_text("".join(json.dumps(each) + "\n" for each in rows))


def test_lines_tables_and_files(rows: Callable[..., Any], opgym: Run, somewhere: Path) -> None:
    lines = rows(*TINY, "--out", "out")
    assert {frozenset(line) for line in lines} == {frozenset(KEYS)}
    assert {line["method"] for line in lines} == {"human-expert", "metis", "heft"}
    assert sorted(path.name for path in (somewhere / "out").iterdir()) == [".lock", "gdp.json", "rows.jsonl"]
    assert json.loads((somewhere / "out" / "gdp.json").read_text()) == lines
    before = (somewhere / "out" / "rows.jsonl").read_text()
    assert len(before.splitlines()) == 3
    [time] = [
        line["value"]
        for line in lines
        if (line["task"], line["method"], line["metric"]) == (f"unscreened/{SMALL}", "metis", "step_time_ms")
    ]
    now = measured_here(Job(workload(SMALL), method("metis"), 0))
    assert time == pytest.approx(now["curve"][-1][2] / 1e6)
    result = opgym(*TINY, "--out", "out")
    assert result.exit_code == 0
    assert (somewhere / "out" / "rows.jsonl").read_text() == before
    assert f"{len(DEVIATIONS)} things are not as in the paper" in result.stderr


def test_without_a_folder_nothing_is_written_unless_something_is_measured(
    opgym: Run, somewhere: Path
) -> None:
    names = ("human-expert", "metis", "heft")
    _package(somewhere, [row(SMALL, name, 100.0) for name in names])
    result = opgym(*TINY)
    assert result.exit_code == 0
    assert [path.name for path in somewhere.iterdir()] == ["package"]
    assert opgym(*TINY[:-3], "metis,m-topo", "--workers", 1).exit_code == 0
    assert sorted(path.name for path in (somewhere / "gdp-output").iterdir()) == [
        ".lock", "gdp.json", "rows.jsonl",
    ]  # fmt: skip
    before = {path: path.read_bytes() for path in (somewhere / "gdp-output").iterdir()}
    assert (
        opgym(*TINY[:-3], "heft,m-topo", "--workers", 1).exit_code == 0
    )  # what is there counts without being asked
    assert {path: path.read_bytes() for path in (somewhere / "gdp-output").iterdir()} == before


def test_tables_are_printed(opgym: Run, somewhere: Path) -> None:
    _package(somewhere, ONE)
    command = ("reproduce", "gdp", "--quick", "--table", "one")
    result = opgym(*command, "--rows", "gnmt-2l-train on 2xP100")
    assert result.exit_code == 0
    assert "one: multiples of the best known step time" in result.stdout
    [cells] = [
        line.split() for line in result.stdout.splitlines() if line.strip().startswith("gnmt-2l, 2 PCIe ")
    ][:1]
    assert "What is claimed of GDP, on the rows" in result.stdout
    assert "weights gdp-batch are not there" not in result.stderr  # that is no method of this table
    assert "runs that tables ask for are not stored" in result.stderr
    assert cells
    assert [path.name for path in somewhere.iterdir()] == ["package"]
    told = [
        line
        for line in opgym("reproduce", "gdp", "--quick").stderr.splitlines()
        if "not as in the paper" in line
    ]
    assert told == [f"not as in the paper: {text}" for text in DEVIATIONS]


def test_a_quick_look_measures_a_sample_again(opgym: Run, rows: Callable[..., Any], somewhere: Path) -> None:
    label = "inception-v3-b32 on 2xP100"
    job = Job(workload(label), method("human-expert"), 0)
    right = measured_here(job)
    _package(somewhere, [right])
    command = ("reproduce", "gdp", "--quick", "--table", "one")
    result = opgym(*command)
    assert result.exit_code == 0
    assert "measured again: 1 of 1 runs as they are stored" in result.stderr
    lines = rows(*command)
    assert [line["value"] for line in lines if line["metric"] == "agrees"] == [1]
    _package(somewhere / "other", [right | {"curve": [[1, 0.1, 5e6]]}])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "PACKAGED", somewhere / "other" / "package" / "rows")
        wrong = opgym(*command)
    assert wrong.exit_code == 1
    assert "human-expert on inception-v3-b32 on 2xP100, seed 0" in wrong.stderr
    assert "5.000 ms are stored" in wrong.stderr


def test_a_run_that_died_ends_with_1_and_keeps_the_others(
    opgym: Run, somewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from opgym.runs.parallel import Died

    real = reproduction.measure
    monkeypatch.setattr(
        reproduction, "measure", lambda job: Died() if job.method.name == "metis" else real(job)
    )
    result = opgym(*TINY, "--out", "out")
    assert result.exit_code == 1
    assert "its process died" in result.stderr
    assert len((somewhere / "out" / "rows.jsonl").read_text().splitlines()) == 2


def test_two_at_a_time_in_one_folder_are_one_too_many(
    refused: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_folder, "PATIENCE_S", 0.0)
    with run_folder.locked(tmp_path / "out"):
        assert "works on this run" in refused(*TINY, "--out", "out")
    assert [path.name for path in (tmp_path / "out").iterdir()] == [".lock"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--table", "two"), "unknown table 'two'"),
        (("--table", "one,one"), "expected different names"),
        (("--table", "none"), "no table"),
        (("--rows", "alexnet"), "has 'alexnet' in its name"),
        (("--rows", "gnmt-2l", "--table", "ablation"), "no row of ablation has 'gnmt-2l' in its name"),
        (("--methods", "gpd"), "unknown method 'gpd'; did you mean gdp"),
        (("--methods", "none"), "no methods"),
        (("--methods", ","), "expected different names"),
        (("--seeds", 4), "Invalid value for '--seeds'"),
        (("--seeds", 10**23), "Invalid value for '--seeds'"),
        (("--workers", 0), "Invalid value for '--workers'"),
    ],
)
def test_what_cannot_be_is_refused_before_the_work(
    refused: Callable[..., str], somewhere: Path, arguments: tuple[Any, ...], message: str
) -> None:
    assert message in refused("reproduce", "gdp", *arguments, "--out", "out")
    assert list(somewhere.iterdir()) == []


def test_a_folder_that_cannot_be_is_refused(refused: Callable[..., str], somewhere: Path) -> None:
    (somewhere / "taken").write_text("")
    assert "taken" in refused(*TINY, "--out", "taken")


def test_rows_of_earlier_runs_that_are_no_rows_are_refused(
    refused: Callable[..., str], somewhere: Path
) -> None:
    (somewhere / "out").mkdir()
    (somewhere / "out" / "rows.jsonl").write_text("no row\n")
    assert "move the file away" in refused(*TINY, "--out", "out")


def test_the_figures_of_the_paper_are_beside_those_of_gdp(rows: Callable[..., Any], somewhere: Path) -> None:
    _package(somewhere, ONE)
    lines = rows("reproduce", "gdp", "--quick", "--table", "one", "--methods", "gdp,hdp,portfolio")
    beside = {(line["method"], line["metric"], line["paper"]) for line in lines if line["paper"] is not None}
    assert beside == {
        ("gdp@5000", "improvement_over:human-expert", 0.16),
        ("gdp@5000", "improvement_over:hdp", 0.092),
        ("gdp@5000", "search_speedup_over:hdp", 15.0),
    }
    assert any(line["metric"] == "verdict:over-human" for line in lines)
