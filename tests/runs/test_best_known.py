"""Longer searches for best-known values: right values, only improvements, the same for any number of workers."""

import json

import pytest
from typer.testing import CliRunner

from opgym.cli.app import app
from opgym.datasets.reference import BestKnown
from opgym.runs.references.best_known import improve
from opgym.runs.reproduce.headroom import Settings, Task, tasks

TASKS = tasks(Settings(graphs=1))[:2] + tasks(Settings(graphs=1))[4:6]  # er and ba, on one device and on two


def found(rounds: tuple[int, ...], workers: int = 1) -> list[dict]:
    known = BestKnown()
    improve(TASKS, known, lambda: None, evaluations=200, rounds=rounds, workers=workers)
    return [entry.row() for entry in known]


@pytest.fixture(scope="module")
def first() -> list[dict]:
    return found((0,))


def test_values_are_those_of_the_solutions(first):
    known = BestKnown()
    for task in TASKS:
        improve([task], known, lambda: None, evaluations=200)
        problem = task.problem()
        entry = known.get(problem)
        assert entry is not None
        assert problem.evaluate(entry.solution).value == entry.value  # type: ignore[arg-type]
    assert [entry.row() for entry in known] == first
    assert {entry.found_by for entry in known} == {
        "order-annealing at 0.01, round 0", "pair-annealing at 0.01, round 0"
    }  # fmt: skip


def test_the_number_of_workers_changes_nothing(first):
    assert found((0,), workers=2) == first


def test_rounds_differ_and_the_lower_value_stays(first):
    second, both = found((1,)), found((0, 1))
    assert [row["value"] for row in first] != [row["value"] for row in second]
    assert [row["value"] for row in both] == [
        min(a["value"], b["value"]) for a, b in zip(first, second, strict=True)
    ]


def test_improvements_are_counted_progress_is_told_and_the_file_is_saved():
    known, saved, told = BestKnown(), [], []
    task: Task = TASKS[0]
    count = improve(
        [task], known, lambda: saved.append(len(known)), evaluations=50, progress=lambda *n: told.append(n)
    )
    assert (count, saved, told) == (1, [1], [(1, 1)])
    assert improve([task], known, lambda: None, evaluations=50) == 0


def test_the_command_starts_from_what_comes_with_opgym_and_goes_on_with_its_file(tmp_path):
    out = tmp_path / "best.json"
    arguments = [
        "reproduce",
        "best-known",
        "--out",
        str(out),
        "--graphs",
        "1",
        "--evaluations",
        "20",
        "--workers",
        "1",
    ]
    result = CliRunner().invoke(app, [*arguments, "--json"])
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["file"] == str(out)
    assert len(BestKnown.load(out)) == 400
    again = CliRunner().invoke(app, [*arguments, "--rounds", "0"])
    assert again.exit_code == 0
    assert "0 best-known values are new" in again.output


def test_a_folder_as_target_is_refused(tmp_path):
    result = CliRunner().invoke(app, ["reproduce", "best-known", "--out", str(tmp_path), "--graphs", "1"])
    assert result.exit_code == 2
