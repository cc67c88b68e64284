"""The headroom table: right means of real runs, resumable, the same for any number of workers."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from opgym.agents import make
from opgym.cli.app import app
from opgym.datasets import load, synthetic
from opgym.datasets.reference import BestKnown, Known
from opgym.errors import InvalidProblemError, InvalidSolutionError
from opgym.problems import Budget, SchedulingProblem
from opgym.runs.reproduce import headroom
from opgym.runs.reproduce.headroom import BASE, FAMILIES, Settings, Task, measure, run

TINY = Settings(graphs=1, seeds=2, devices=(1, 2), scale=0.02)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """A whole run, its rows and what it found."""
    path = tmp_path_factory.mktemp("headroom") / "rows.jsonl"
    known = BestKnown()
    document = run(TINY, known, path)
    return document, [json.loads(line) for line in path.read_text().splitlines()], known


def test_graphs_are_of_the_test_split_and_differ():
    settings = Settings(graphs=3)
    graphs = [task.graph for task in headroom.tasks(settings)]
    assert len(graphs) == 3 * 4 * 2
    assert len(set(graphs)) == 3 * 4
    for graph in graphs:
        assert synthetic.split_of(int(graph.rpartition("seed=")[2])) == "test"
        assert 50 <= load(graph).num_ops <= 200


def test_a_row_holds_what_the_solvers_find():
    task = Task("synthetic/ws?costs=normal&seed=2000000", "ws", 1, 2, 0.02)
    row = measure(task)
    problem = SchedulingProblem(load(task.graph))
    for seed in range(2):
        found = make("brkga", population=100, elites=20, mutants=15, bias=0.7).solve(
            problem, Budget(evaluations=100), np.random.default_rng(seed)
        )
        assert row["values"][BASE][seed] == found.outcome.value
        found = make("key-search").solve(problem, Budget(evaluations=100), np.random.default_rng(seed))
        assert row["values"]["key-search-5k"][seed] == found.outcome.value
    assert row["ops"] == problem.graph.num_ops
    best = Known.from_row(row["best"])
    assert problem.evaluate(best.solution).value == best.value
    assert best.value <= min(min(values) for values in row["values"].values())


def test_means_of_gains(tiny):
    document, rows, known = tiny
    assert [table["devices"] for table in document["tables"]] == [1, 2]
    assert document["improved"] == len(known) == len(rows) == 8
    for table in document["tables"]:
        of_table = [row for row in rows if row["task"]["devices"] == table["devices"]]
        assert [line["family"] for line in table["lines"]] == [*FAMILIES, "all"]
        for line in table["lines"]:
            chosen = [row for row in of_table if line["family"] in (row["task"]["family"], "all")]
            assert line["graphs"] == len(chosen) == (4 if line["family"] == "all" else 1)
            for column, interval in line["gains"].items():
                gains = [
                    1 - value / base
                    for row in chosen
                    for value, base in zip(row["values"][column], row["values"][BASE], strict=True)
                ]
                assert interval["estimate"] == pytest.approx(np.mean(gains))
                assert interval["estimate"] <= line["headroom"]["estimate"]
            room = [1 - row["best"]["value"] / base for row in chosen for base in row["values"][BASE]]
            assert line["headroom"]["estimate"] == pytest.approx(np.mean(room))
            assert line["headroom"]["clusters"] == len(chosen)
            assert set(line["found_best"]) == {BASE, *line["gains"]}


def test_ten_times_the_evaluations_gain_and_leave_room(tiny):
    for table in tiny[0]["tables"]:
        everything = table["lines"][-1]
        assert 0.02 < everything["gains"]["brkga-50k"]["estimate"] < everything["headroom"]["estimate"] < 0.6


def test_a_better_value_known_before_counts(tiny):
    settings, known = Settings(graphs=1, seeds=2, devices=(1,), scale=0.02), BestKnown()
    for task in headroom.tasks(settings):
        problem = task.problem()
        better = make("order-annealing").solve(problem, Budget(evaluations=400_000))
        known.offer(Known.of(problem, better.solution, "a longer search"))
    document = run(settings, known, None)
    assert document["improved"] == 0
    before, after = (found["tables"][0]["lines"][-1] for found in (tiny[0], document))
    assert after["gains"] == before["gains"]
    assert after["headroom"]["estimate"] > before["headroom"]["estimate"] + 0.005  # of one graph in four


def test_workers_change_nothing_and_rows_are_reused(tiny, tmp_path, monkeypatch):
    document, rows, _ = tiny
    path = tmp_path / "rows.jsonl"
    assert run(TINY, BestKnown(), path, workers=2) == document
    assert [json.loads(line) for line in path.read_text().splitlines()] == rows
    path.write_text("".join(json.dumps(row) + "\n" for row in rows[:-2]))
    measured = []

    def counted(task):
        measured.append(task)
        return measure(task)

    monkeypatch.setattr(headroom, "measure", counted)
    steps = []
    assert run(TINY, BestKnown(), path, progress=lambda *step: steps.append(step)) == document
    assert [task.family for task in measured] == ["ws", "sbm"]
    assert steps == [(6, 8), (7, 8), (8, 8)]
    run(Settings(graphs=1, seeds=2, devices=(1,), scale=0.03), BestKnown(), path)
    assert len(measured) == 2 + 4  # another budget: measured anew


@pytest.mark.parametrize(
    "wrong", [{"graphs": 0}, {"seeds": 0}, {"devices": ()}, {"devices": (0,)}, {"scale": 0.0}, {"scale": 2.0}]
)
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(InvalidProblemError):
        Settings(**wrong)


def test_the_command_prints_tables_and_leaves_files(tmp_path):
    arguments = [
        "reproduce",
        "headroom",
        "--graphs",
        "1",
        "--seeds",
        "1",
        "--scale",
        "0.02",
        "--devices",
        "1",
    ]
    files = ["--workers", "1", "--out", str(tmp_path / "out")]
    result = CliRunner().invoke(app, [*arguments, *files, "--json"])
    assert result.exit_code == 0, result.stderr
    document = json.loads(result.stdout)
    assert json.loads((tmp_path / "out" / "headroom.json").read_text()) == document
    assert len(BestKnown.load(tmp_path / "out" / "best_known.json")) >= 4
    table = CliRunner().invoke(app, [*arguments, *files])
    assert table.exit_code == 0
    assert "one device, order alone" in table.stdout
    assert [line.split()[0] for line in table.stdout.splitlines() if line.startswith(" all")] == ["all"]
    assert "first study" in table.stderr


@pytest.mark.parametrize("devices", ["", "1,", "1,1", "one", "-1", "1 2"])
def test_the_command_refuses_other_lists(tmp_path, devices):
    result = CliRunner().invoke(app, ["reproduce", "headroom", "--devices", devices, "--out", str(tmp_path)])
    assert result.exit_code == 2
    assert "whole numbers" in result.stderr


def test_a_folder_that_cannot_be_and_a_file_that_cannot_be_written_are_refused_before_the_work(tmp_path):
    taken = tmp_path / "taken"
    taken.write_text("")
    below = str(taken / "below")
    for command in (
        ["headroom", "--out", str(taken)],
        ["tuning", "--out", str(taken)],
        ["headroom", "--best-known", below, "--out", str(tmp_path / "new")],
        ["best-known", "--out", below],
    ):
        result = CliRunner().invoke(app, ["reproduce", *command])
        assert result.exit_code == 2, result.output
        assert str(taken) in result.stderr
    assert taken.read_text() == ""


def test_rows_of_something_else_are_left_alone(tiny, tmp_path):
    document, rows, _ = tiny
    path = tmp_path / "rows.jsonl"
    strange = [{"task": 3}, {"task": [1]}, {"other": None}]
    path.write_text("".join(json.dumps(row) + "\n" for row in [*strange, *rows]))
    assert run(TINY, BestKnown(), path) == document
    assert [json.loads(line) for line in path.read_text().splitlines()] == [*strange, *rows]


def test_stored_values_are_not_believed(tiny):
    _, rows, known = tiny
    false = BestKnown()
    for entry in known:
        row = entry.row()
        false.offer(Known.from_row(row | {"value": row["value"] - 1}))
    with pytest.raises(InvalidSolutionError, match=rf"is worth {rows[0]['best']['value']}, not"):
        run(Settings(graphs=1, seeds=1, devices=(1,), scale=0.01), false)
