"""``opgym datasets reference`` and ``screen``."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from opgym import datasets
from opgym.cli.dataset_runs import _screened
from opgym.datasets.reference import Lines, lines
from opgym.datasets.suites import Suite

from .conftest import Run

NAME = "zoo/din-12-train on one device: peak_memory"


def test_lines_are_measured_again_and_nothing_changes(
    tmp_path: Path, rows: Callable[..., Any], opgym: Run
) -> None:
    """20,000 evaluations and a proof lead to the shipped optimum, so the file is the shipped one."""
    command = ("datasets", "reference", "small-exact", "--rows", "din-12-train", "--evaluations", 20_000,
               "--workers", 1, "--out", tmp_path)  # fmt: skip
    document = rows(*command)
    shipped = lines("small-exact")
    assert document["reference_version"] == shipped.reference_version
    assert (document["added"], document["changed"], document["improved"]) == ([], [], [])
    assert [line["problem"] for line in document["lines"]] == [NAME]
    (line,) = document["lines"]
    best = shipped[NAME].best
    assert best is not None
    assert line["best"]["value"] == best.value
    assert line["gap"] == pytest.approx(shipped[NAME].gap)
    assert line["proven"]
    assert not {"order", "device"} & line["best"].keys()
    assert [line.row() for line in Lines.load(document["file"])] == [line.row() for line in shipped]
    text = opgym(*command)
    assert text.exit_code == 0
    assert "dp-order" in text.stdout
    assert "0 changed" in " ".join(text.stderr.split())
    assert len((tmp_path / "small-exact.rows.jsonl").read_text().splitlines()) == 1


def test_a_better_value_is_written_into_the_next_version(tmp_path: Path, rows: Callable[..., Any]) -> None:
    """A published line that is worse than what the search finds stays as it is, in its file."""
    shipped = lines("small-exact")
    known = shipped[NAME].row()
    known |= {"bound": 5.0, "proven": False}
    known["best"] |= {"value": known["best"]["value"] + 4}
    version = shipped.reference_version + 1
    worse = Lines("small-exact", 1, version, {NAME: type(shipped[NAME]).from_row(known)})
    worse.save(tmp_path / worse.file_name)
    before = (tmp_path / worse.file_name).read_bytes()
    document = rows("datasets", "reference", "small-exact", "--rows", "din-12-train", "--evaluations", 20_000,
                    "--workers", 1, "--out", tmp_path)  # fmt: skip
    assert document["reference_version"] == version + 1
    assert document["improved"] == document["changed"] == [NAME]
    assert (tmp_path / worse.file_name).read_bytes() == before
    best = Lines.load(tmp_path / f"small-exact.v{version + 1}.json")[NAME].best
    assert best is not None
    assert best.value == known["best"]["value"] - 4


def test_rows_of_a_suite_are_searched(tmp_path: Path, rows: Callable[..., Any], opgym: Run) -> None:
    command = (
        "--graphs",
        "repghostnet",
        "--evaluations",
        20_000,
        "--seconds",
        30,
        "--workers",
        1,
        "--out",
        tmp_path,
    )
    document = rows("datasets", "screen", "memory-order", *command)
    assert (document["rows"], document["tasks"], document["controls"]) == (1, 1, 0)
    assert {candidate["graph"] for candidate in document["candidates"]} == {
        "zoo/timm-repghostnet-050-infer",
        "zoo/timm-repghostnet-050-train",
    }
    assert document["acceptance_rate"] == 0.5
    assert 0.97 < document["against_best_of_three"] < 0.99
    made = Suite.load(document["file"])
    assert made.suite_version == datasets.suite("memory-order").suite_version + 1  # it has fewer rows
    assert made.rows[0].graph == "zoo/timm-repghostnet-050-infer"
    text = opgym("datasets", "screen", "small-exact", *command)
    assert text.exit_code == 0
    assert "(1 tasks) of 2 candidates" in text.stdout
    assert len((tmp_path / "orders.rows.jsonl").read_text().splitlines()) == 2  # one search serves both
    for line in (tmp_path / "orders.rows.jsonl").read_text().splitlines():
        assert json.loads(line)["task"]["seconds"] == 30


def test_rows_in_the_manner_of_regal_are_marked(
    tmp_path: Path, rows: Callable[..., Any], opgym: Run, refused: Callable[..., str]
) -> None:
    command = ("--graphs", "synthetic/er?costs=normal&seed=200000", "--evaluations", 200, "--out", tmp_path)
    document = rows("datasets", "screen", "regal-time", "--workers", 1, *command)
    made = Suite.load(document["file"])
    assert document["rows"] == document["tasks"] + document["controls"] == len(made.rows) == 5
    assert document["acceptance_rate"] == 1
    assert "200 evaluations" in document["method"]
    assert "1.05 of the peak" in document["rule"]
    assert {row.population for row in made.rows} == {"synthetic"}
    assert all(row.capacity_bytes is not None for row in made.rows)
    stored = (tmp_path / "regal-time.screened.jsonl").read_text()
    text = opgym("datasets", "screen", "regal-time", *command)
    assert text.exit_code == 0
    assert f"5 of 5 candidates are rows, {document['tasks']} of them tasks" in text.stdout
    assert (tmp_path / "regal-time.screened.jsonl").read_text() == stored  # nothing is measured twice
    assert "do not depend on a clock" in refused(
        "datasets", "screen", "regal-time", "--seconds", 1, "--out", tmp_path
    )
    assert "no candidate has" in refused(
        "datasets", "screen", "regal-time", "--graphs", "nothing here", "--out", tmp_path
    )


def test_rows_that_nobody_marked_are_no_controls() -> None:
    suite = datasets.suite("regal-memory-1")
    document = _screened(suite, [], "file")
    assert document["rows"] == len(suite.rows) > len(suite.part("test"))
    assert document["tasks"] + document["controls"] == len(suite.part("test"))


def test_what_regal_suites_leave(rows: Callable[..., Any], opgym: Run) -> None:
    documents = rows("reproduce", "regal-headroom")
    assert [document["suite"] for document in documents] == ["regal-memory-1", "regal-memory-2", "regal-time"]
    for document in documents:
        tables = {(table["population"], table["role"]): table for table in document["tables"]}
        assert len(tables) == 4
        for population, least in (("synthetic", 200), ("real", 60)):
            assert tables[population, "all"]["rows"] >= least
            assert 0 < tables[population, "task"]["rows"] <= tables[population, "all"]["rows"]
    text = opgym("reproduce", "regal-headroom").stdout
    assert all(f"{name}, version" in text for name in ("regal-memory-1", "regal-memory-2", "regal-time"))


def test_lines_are_verified(
    tmp_path: Path, rows: Callable[..., Any], opgym: Run, refused: Callable[..., str]
) -> None:
    shipped = lines("small-exact")
    command = ("datasets", "verify", "--lines", tmp_path)
    assert "there are no reference lines" in refused(*command)
    sound = Lines("small-exact", shipped.suite_version, 7, {NAME: shipped[NAME]})
    sound.save(tmp_path / sound.file_name)
    assert rows(*command, "--full") == {"graphs": 0, "bytes": 0, "lines": 1, "findings": []}
    assert "1 reference lines: all hold" in opgym(*command).stdout
    wrong = replace(shipped[NAME], ops=1, unit="s")
    sound = replace(sound, lines={NAME: wrong})
    sound.save(tmp_path / sound.file_name)
    found = [row["problem"] for row in json.loads(opgym(*command, "--json").stdout)["findings"]]
    assert found == [
        f"{NAME}: ops is 1; it should be {shipped[NAME].ops}",
        f"{NAME}: unit is 's'; it should be 'bytes'",
    ]
    line = replace(shipped[NAME], problem="zoo/gone on one device: peak_memory")
    stale = Lines("small-exact", shipped.suite_version, 8, {line.problem: line})
    stale.save(tmp_path / stale.file_name)
    result = opgym(*command)
    assert result.exit_code == 1
    assert "is stale" in result.stdout
    assert "1 problems in" in result.stderr


def test_what_is_refused(tmp_path: Path, refused: Callable[..., str]) -> None:
    assert "did you mean memory-order" in refused("datasets", "reference", "memory-ordre", "--out", tmp_path)
    assert "no row of memory-order" in refused(
        "datasets", "reference", "memory-order", "--rows", "nothing here"
    )
    assert "did you mean small-exact" in refused("datasets", "screen", "small-exac", "--out", tmp_path)
    assert "no candidate has" in refused("datasets", "screen", "small-exact", "--graphs", "nothing here")
    (tmp_path / "file").touch()
    assert "--out" in refused("datasets", "reference", "memory-order", "--out", tmp_path / "file")
