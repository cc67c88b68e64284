"""REGAL beside its baselines: rows that are stored and never measured twice."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from opgym import datasets
from opgym.datasets.reference import lines
from opgym.errors import InvalidProblemError, UnknownIdError
from opgym.runs.evaluate.judging import MisreportedError
from opgym.runs.reproduce.regal import reproduction
from opgym.runs.reproduce.regal.methods import BASE, SEEDS
from opgym.runs.reproduce.regal.reproduction import Settings, jobs, measure, run
from opgym.runs.reproduce.regal.table import lines_of
from opgym.runs.reproduce.regal.tasks import Graph

FEW = Settings(("memory-1",), "validation", graphs=2, seeds=2, columns=("key-search-5k", "best-of-three"))


@pytest.fixture(scope="module")
def few(tmp_path_factory) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A run of three columns on two random and two real graphs, and its rows."""
    path = tmp_path_factory.mktemp("regal") / "rows.jsonl"
    [document] = run(FEW, path)
    return document, _rows(path)


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def _timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _timeless(item) for key, item in value.items() if key != "seconds"}
    return [_timeless(item) for item in value] if isinstance(value, list) else value


@pytest.fixture
def counted(monkeypatch) -> list[str]:
    """What is measured, as it is."""
    seen: list[str] = []

    def measured(job: reproduction.Job) -> dict[str, Any]:
        seen.append(f"{job.method.name} {job.graph.graph} {job.seeds}")
        return measure(job)

    monkeypatch.setattr(reproduction, "measure", measured)
    return seen


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"tasks": ("memory",)}, UnknownIdError),
        ({"part": "train"}, UnknownIdError),
        ({"tasks": ()}, InvalidProblemError),
        ({"graphs": 0}, InvalidProblemError),
        ({"graphs": 201}, InvalidProblemError),
        ({"graphs": 10**23, "part": "validation"}, InvalidProblemError),
        ({"evaluations": 10**23}, InvalidProblemError),
        ({"seeds": 5}, InvalidProblemError),
        ({"evaluations": 0}, InvalidProblemError),
    ],
)
def test_wrong_settings_are_refused(wrong: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        Settings(**wrong)


def test_populations_with_fewer_graphs_than_asked_for_are_told() -> None:
    assert Settings(graphs=90).scarce == Settings().scarce == Settings(graphs=200, quick=True).scarce == {}
    assert Settings(graphs=200).scarce == {"real": 90}
    assert Settings(graphs=500, part="validation").scarce == {"real": 119}


def test_columns_of_settings() -> None:
    names = [method.name for method in Settings(quick=True).methods("memory-1")]
    assert names[0] == BASE
    assert not {"brkga-50k", "idrs-100k", "cp-sat"} & set(names)
    assert not {"brkga-50k", "idrs-100k"} & {method.name for method in Settings().methods("time-links")}
    assert {"brkga-50k", "idrs-100k"} <= {method.name for method in Settings().methods("time")}
    asked = Settings(columns=("brkga-50k",)).methods("time-links")
    assert [method.name for method in asked] == [BASE, "brkga-50k"]
    assert [method.name for method in FEW.methods("memory-1")] == [BASE, "key-search-5k", "best-of-three"]
    assert [method.name for method in FEW.methods("time")] == [BASE, "key-search-5k"]
    with pytest.raises(UnknownIdError, match=r"did you mean .*idrs-5k"):
        Settings(columns=("idrs-5",)).methods("time")


def test_another_budget_is_that_of_all_that_had_the_same() -> None:
    methods = Settings(evaluations=20_000).methods("memory-1")
    names = [method.name for method in methods]
    assert names[:4] == ["brkga-20k", "brkga-tuned-20k", "brkga-seeded-20k", "key-search-20k"]
    assert {"best-heuristic", "partition-dfs"} <= set(names)
    assert not any(method.long for method in methods)
    assert {method.evaluations for method in methods} == {20_000, None}
    [document] = run(Settings(("memory-1",), "validation", 1, 1, columns=("key-search-5k",), evaluations=50))
    for graph in document["graphs"]:
        assert set(graph["columns"]) == {"brkga-50", "key-search-50"}
        assert all(column["evaluations"] <= 50 for column in graph["columns"].values())
    assert {line["method"] for line in lines_of(document)} == {"brkga-50", "key-search-50"}


def test_a_dear_column_runs_on_the_first_rows_only(monkeypatch) -> None:
    monkeypatch.setattr("opgym.runs.reproduce.regal.methods.installed", lambda: True)
    wanted = jobs(Settings(("memory-1",), columns=("cp-sat",)))
    proofs = [job for job in wanted if job.method.name == "cp-sat"]
    assert len(proofs) == 24 + 12
    assert {job.seeds for job in proofs} == {SEEDS[:1]}
    assert len(wanted) - len(proofs) == len(datasets.suite("regal-memory-1").part("test"))


# --- Measuring


def test_a_document_holds_what_solvers_find(few) -> None:
    document, rows = few
    assert (document["task"], document["part"], document["seeds"]) == ("memory-1", "validation", [0, 2])
    assert document["reference_version"] is None
    assert len(document["graphs"]) == 4
    assert len(rows) == 12
    methods = {method.name: method for method in FEW.methods("memory-1")}
    for graph in document["graphs"]:
        assert graph["best_known"] is None
        assert set(graph["columns"]) == set(methods)
        problem = Graph("memory-1", graph["graph"], "validation", graph["population"], 0).row().problem()
        assert graph["ops"] == problem.graph.num_ops
        for name, column in graph["columns"].items():
            seeds = methods[name].chosen_seeds((0, 2))
            assert len(column["values"]) == len(seeds)
            found = methods[name].run(problem, seeds[-1])
            assert column["values"][-1] == found[0].outcome.value
        assert graph["columns"]["best-of-three"]["evaluations"] == 3


def test_workers_change_nothing_but_seconds(few, tmp_path: Path) -> None:
    document, rows = few
    path = tmp_path / "rows.jsonl"
    assert _timeless(run(FEW, path, workers=2)) == _timeless([document])
    assert _timeless(_rows(path)) == _timeless(rows)


def test_nothing_is_measured_twice(few, tmp_path: Path, counted: list[str]) -> None:
    document, rows = few
    path = tmp_path / "rows.jsonl"
    strange = {"key": 3, "other": None}
    path.write_text("".join(json.dumps(row) + "\n" for row in [strange, *rows[:-1]]))
    steps = []
    assert _timeless(run(FEW, path, progress=lambda *step: steps.append(step[:2]))) == _timeless([document])
    assert len(counted) == 1
    assert steps == [(11, 12), (12, 12)]
    assert _rows(path)[0] == strange
    counted.clear()
    more = Settings(
        ("memory-1",), "validation", graphs=2, seeds=3, columns=("key-search-5k", "partition-dfs")
    )
    [wider] = run(more, path)
    assert sorted({line.split()[0] for line in counted}) == [BASE, "key-search-5k", "partition-dfs"]
    assert {line[line.index("(") :] for line in counted if BASE in line} == {"(3,)"}  # the seed that is new
    for before, after in zip(document["graphs"], wider["graphs"], strict=True):
        for name in (BASE, "key-search-5k"):
            assert after["columns"][name]["values"][:2] == before["columns"][name]["values"]
            assert len(after["columns"][name]["values"]) == 3
    counted.clear()
    assert _timeless(run(FEW, path)) == _timeless([document])
    assert run(more, path) == [wider]
    assert not counted


@pytest.mark.parametrize(
    "damage",
    [
        {"runs": {"0": None}},
        {"runs": {"0": {}}},
        {"runs": {}},
        {"runs": [], "skipped": "why"},
        {"skipped": "why"},
        {"skipped": 3},
        {"skipped": ...},
        {"ops": ...},
        {"ops": "many"},
        *({"value": value} for value in ("5", [1], True, 0, -1, math.nan, math.inf, 10**400, ...)),
        *({"evaluations": value} for value in ("5", None, 1.5, -1, 10**400, ...)),
        *({"seconds": value} for value in ("5", None, -1, math.nan, 10**400, ...)),
    ],
)  # fmt: skip
def test_what_is_damaged_is_measured_anew(
    few, tmp_path: Path, counted: list[str], damage: dict[str, Any]
) -> None:
    document, rows = few
    path = tmp_path / "rows.jsonl"
    damaged = json.loads(json.dumps(rows))
    [(name, value)] = [*damage.items()][-1:]
    holder = damaged[0]["runs"]["0"] if name in ("value", "evaluations", "seconds") else damaged[0]
    holder.update(damage)
    if value is ...:
        del holder[name]
    path.write_text("".join(json.dumps(row) + "\n" for row in damaged))
    before = path.read_text()
    assert _timeless(run(FEW, path)) == _timeless([document])
    assert len(counted) == 1
    assert path.read_text().startswith(before)  # and what is there stays


def test_best_known_values_are_those_of_the_reference_lines() -> None:
    [document] = run(Settings(("memory-1",), graphs=1, seeds=1, columns=()))
    for graph in document["graphs"]:
        [row] = [row for row in datasets.suite("regal-memory-1").rows if row.graph == graph["graph"]]
        line = lines("regal-memory-1")[row.name]
        assert line.best is not None
        assert graph["best_known"] == line.best.value
        assert graph["columns"][BASE]["values"] == [line.brkga[5_000]]
    assert document["reference_version"] == lines("regal-memory-1").reference_version


def test_what_does_not_fit_has_no_value_and_what_does_not_apply_no_column(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    settings = Settings(
        ("time",), "validation", graphs=1, seeds=1, columns=("best-heuristic", "partition-dfs")
    )
    [document] = run(settings, path)
    synthetic = document["graphs"][0]["columns"]
    assert synthetic["best-heuristic"]["values"] == [None]
    assert synthetic["best-heuristic"]["evaluations"] > 5
    verdicts = {row["method"]: row["runs"]["0"]["verdict"] for row in _rows(path)[:3]}
    assert verdicts["best-heuristic"] == "out_of_memory"


def test_a_solver_that_says_what_is_not_so_ends_the_run(monkeypatch) -> None:
    from opgym.agents import search

    real = search.keys.Brkga.solve

    def boast(self: Any, *arguments: Any) -> Any:
        from dataclasses import replace

        result = real(self, *arguments)
        return replace(result, outcome=replace(result.outcome, value=result.outcome.value - 1))

    monkeypatch.setattr(search.keys.Brkga, "solve", boast)
    with pytest.raises(MisreportedError, match="the agent says"):
        run(Settings(("memory-1",), "validation", graphs=1, seeds=1, columns=()))
