"""``opgym datasets reference`` and ``screen``."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from opgym import datasets
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
        "ghostnet",
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
        "zoo/ghostnet-infer",
        "zoo/ghostnet-train",
    }
    assert document["acceptance_rate"] == 0.5
    assert 0.97 < document["against_best_of_three"] < 0.99
    made = Suite.load(document["file"])
    assert made.suite_version == datasets.suite("memory-order").suite_version + 1  # it has fewer rows
    assert made.rows[0].graph == "zoo/ghostnet-infer"
    text = opgym("datasets", "screen", "small-exact", *command)
    assert text.exit_code == 0
    assert "(1 tasks) of 2 candidates" in text.stdout
    assert len((tmp_path / "orders.rows.jsonl").read_text().splitlines()) == 2  # one search serves both
    for line in (tmp_path / "orders.rows.jsonl").read_text().splitlines():
        assert json.loads(line)["task"]["seconds"] == 30


def test_what_is_refused(tmp_path: Path, refused: Callable[..., str]) -> None:
    assert "did you mean memory-order" in refused("datasets", "reference", "memory-ordre", "--out", tmp_path)
    assert "no row of memory-order" in refused(
        "datasets", "reference", "memory-order", "--rows", "nothing here"
    )
    assert "did you mean small-exact" in refused("datasets", "screen", "small-exac", "--out", tmp_path)
    assert "no candidate has" in refused("datasets", "screen", "small-exact", "--graphs", "nothing here")
    (tmp_path / "file").touch()
    assert "--out" in refused("datasets", "reference", "memory-order", "--out", tmp_path / "file")
