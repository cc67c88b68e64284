"""Runs of GDP's reproduction: measured as they are, each once."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opgym.agents import make
from opgym.problems import Budget
from opgym.runs.evaluate.judging import MisreportedError
from opgym.runs.parallel import Died
from opgym.runs.reproduce.gdp import check, measuring, methods, reproduction
from opgym.runs.reproduce.gdp.measuring import Job, measured_here, peak_bytes
from opgym.runs.reproduce.gdp.plan import Settings
from opgym.runs.reproduce.gdp.reproduction import Measured, complete, known
from opgym.runs.reproduce.gdp.store import Store, is_row

from .made import Row, method, row, workload

#: A row with a hundred ops, whose test costs nothing.
SMALL = "xdeepfm-3-infer on 4xP100"
FEW = Settings(("generalization",), rows=("xdeepfm-3-infer on 4xP100:",), methods=("portfolio",))
LEARNT = Settings(("one",), rows=("rnnlm-2l-train on 2xP100:",), methods=("gdp", "metis"))


@pytest.fixture(autouse=True)
def empty_shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(methods.SHELF, "folder", tmp_path / "no weights")


@pytest.fixture
def stubbed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is measured; nothing is run, and every method finds 100 with 5 evaluations."""
    seen: list[str] = []

    def stub(job: Job) -> Row:
        seen.append(job.label)
        return row(job.workload.label, job.method, 100.0, job.seed, spent=5)

    monkeypatch.setattr(reproduction, "measure", stub)
    return seen


# --- One run


def test_a_row_holds_what_the_solver_finds() -> None:
    job = Job(workload(SMALL), method("annealing@100"), 1)
    found = measured_here(job)
    assert is_row(found)
    assert found["key"] == job.key
    problem = job.workload.row.problem()
    alone = make("annealing").solve(problem, Budget(evaluations=100), np.random.default_rng(1))
    assert [point[2] for point in found["curve"]] == [p.value for p in alone.curve if p.feasible]
    assert (found["evaluations"], found["verdict"], found["seed"]) == (100, "ok", 1)
    assert (found["ops"], found["peak_bytes"], found["seen"]) == (problem.graph.num_ops, None, False)
    assert found["curve"][-1][2] == alone.outcome.value


def test_a_learner_has_its_budget_and_tells_its_course() -> None:
    pytest.importorskip("torch")
    few = replace(method("gdp"), evaluations=12)
    found = measured_here(Job(workload(SMALL), few, 0))
    assert is_row(found)
    assert found["evaluations"] == 12
    assert found["curve"][0][0] == 1
    assert not found["seen"]


def test_what_does_not_apply_says_why() -> None:
    found = measured_here(Job(workload("gnmt-2l on 2xP100"), method("m-sct"), 0))
    assert is_row(found)
    assert found["verdict"] == "not_applicable"
    assert "linear program" in found["note"]


def test_a_solver_that_says_what_is_not_so_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    from opgym.agents.heuristics.metis import Metis

    real = Metis.solve

    def boast(self: Any, *arguments: Any) -> Any:
        result = real(self, *arguments)
        return replace(result, outcome=replace(result.outcome, value=result.outcome.value - 1))

    monkeypatch.setattr(Metis, "solve", boast)
    with pytest.raises(MisreportedError, match="the agent says"):
        measured_here(Job(workload(SMALL), method("metis"), 0))


def test_what_learns_runs_in_a_process_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def stub(work: Any, tasks: Any, workers: int) -> Any:
        asked.append((work, workers))
        return iter([(tasks[0], Died("why"))])

    monkeypatch.setattr(measuring, "as_they_finish", stub)
    few = replace(method("gdp"), evaluations=12)
    assert measuring.measure(Job(workload(SMALL), few, 0)) == Died("why")
    assert asked == [(measuring.measured_alone, 2)]
    assert measuring.measure(Job(workload(SMALL), method("metis"), 0))["verdict"] == "ok"
    assert len(asked) == 1


def test_memory_of_a_process_is_at_least_what_it_holds() -> None:
    before = peak_bytes()
    held = np.ones(100_000_000, np.uint8)
    assert peak_bytes() >= before
    assert peak_bytes() > held.nbytes


# --- All of them


def test_rows_are_those_of_real_runs_with_any_number_of_workers(tmp_path: Path) -> None:
    found = complete(known(FEW, tmp_path, tmp_path), tmp_path, workers=1)
    assert found.missing == []
    rows = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    assert sorted(each["method"] for each in rows) == sorted(methods.HEURISTICS)
    assert all(map(is_row, rows))
    [best] = found.portfolio(workload(SMALL))
    assert best.evaluations == sum(each["evaluations"] for each in rows)
    assert best.value == min(each["curve"][-1][2] for each in rows)


def test_nothing_is_measured_twice(tmp_path: Path, stubbed: list[str]) -> None:
    package, folder = tmp_path / "package", tmp_path / "out"
    for path in (package, folder):
        path.mkdir()
    label = "rnnlm-2l on 2xP100"
    (package / "own.jsonl").write_text(json.dumps(row(label, "metis", 90.0)) + "\n")
    (folder / "rows.jsonl").write_text(
        json.dumps({"key": 3}) + "\n" + json.dumps(row(label, "gdp", 95.0, 1)) + "\n"
    )
    before = (folder / "rows.jsonl").read_text()
    steps: list[Any] = []
    found = complete(known(LEARNT, folder, package), folder, progress=lambda *step: steps.append(step[:2]))
    assert stubbed == [f"gdp on {label}, seed 0", f"gdp on {label}, seed 2"]
    assert steps == [(2, 4), (3, 4), (4, 4)]
    assert [course.value for course in found.courses(workload(label), method("gdp"))] == [100.0, 95.0, 100.0]
    after = (folder / "rows.jsonl").read_text()
    assert after.startswith(before)
    assert len(after.splitlines()) == 4
    complete(known(LEARNT, folder, package), folder)
    assert len(stubbed) == 2


def test_what_is_damaged_is_measured_anew(tmp_path: Path, stubbed: list[str]) -> None:
    label = "rnnlm-2l on 2xP100"
    rows = [row(label, "metis", 90.0), *(row(label, "gdp", 95.0, seed) for seed in range(3))]
    rows[2]["curve"] = [[1, 0.1, 0.0]]
    text = "".join(json.dumps(each) + "\n" for each in rows)
    (tmp_path / "rows.jsonl").write_text(text)
    complete(known(LEARNT, tmp_path, tmp_path / "none"), tmp_path)
    assert stubbed == [f"gdp on {label}, seed 1"]
    assert (tmp_path / "rows.jsonl").read_text().startswith(text)


def test_what_others_measured_meanwhile_is_not_measured_again(tmp_path: Path, stubbed: list[str]) -> None:
    found = known(LEARNT, tmp_path, tmp_path)
    rows = [row("rnnlm-2l on 2xP100", "gdp", 95.0, seed) for seed in range(3)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(each) + "\n" for each in rows))
    complete(found, tmp_path)
    assert stubbed == ["metis on rnnlm-2l on 2xP100, seed 0"]


def test_a_run_that_dies_is_told_and_not_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stub(job: Job) -> Row | Died:
        return Died("out of memory") if job.seed == 1 else row(job.workload.label, job.method, 90.0, job.seed)

    monkeypatch.setattr(reproduction, "measure", stub)
    found = complete(known(LEARNT, tmp_path, tmp_path), tmp_path)
    assert found.failed == ("gdp on rnnlm-2l on 2xP100, seed 1: out of memory",)
    assert len((tmp_path / "rows.jsonl").read_text().splitlines()) == 3
    assert [job.seed for job in found.missing] == [1]


def test_annealing_follows_what_fine_tuning_spent(
    tmp_path: Path, stubbed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    label = "wavenet-2x18 on 2xP100@nvlink"
    monkeypatch.setattr(methods, "_trained", lambda name, weights, options, **more: replace(
        methods.annealing_with(9), name=name, **more))  # fmt: skip
    settings = Settings(
        ("generalization",),
        rows=("wavenet-2x18-train on 2xP100@nvlink",),
        methods=("annealing", "gdp-unseen-size"),
    )
    complete(known(settings, tmp_path, tmp_path), tmp_path)
    assert stubbed[-1] == f"annealing as many on {label}, seed 0"
    last = json.loads((tmp_path / "rows.jsonl").read_text().splitlines()[-1])
    assert json.loads(last["key"])["method"]["evaluations"] == 5


def test_notes_say_which_weights_are_not_there() -> None:
    rows = ("wavenet-2x18-train on 2xP100@nvlink",)
    settings = Settings(("generalization",), rows=rows, methods=("gdp-unseen-size", "gdp-unseen-family"))
    stored = [row("wavenet-2x18 on 2xP100@nvlink", "gdp-unseen-family zero-shot", 90.0)]
    assert Measured(settings, Store(stored)).notes == [
        "weights gdp-unseen-size are not there: no column for it",
        "weights gdp-unseen-family are not there: its columns are of earlier runs",
    ]
    assert Measured(LEARNT, Store()).notes == ["4 runs that tables ask for are not stored"]


# --- Again


def test_a_sample_is_measured_again(monkeypatch: pytest.MonkeyPatch) -> None:
    label = "inception-v3-b32 on 2xP100"
    real = measured_here(Job(workload(label), method("human-expert"), 0))
    wrong = row(label, "metis", 90.0)
    found = check.check(Measured(Settings(), Store([real, wrong])))
    assert [(each.job.method.name, each.holds) for each in found] == [
        ("human-expert", True),
        ("metis", False),
    ]
    assert "90" not in str(found[0])
    assert str(found[1]).endswith("ms, and 0.000 ms are stored")
    [time, agrees] = found[1].lines()
    assert (agrees["task"], agrees["metric"], agrees["value"]) == (f"check/{label}", "agrees", 0)
    assert time["value"] == pytest.approx(found[1].now / 1e6)
    only = Settings(methods=("metis",))
    assert [each.job.method.name for each in check.check(Measured(only, Store([real, wrong])))] == ["metis"]


@pytest.mark.parametrize(
    ("learned", "now", "holds"),
    [
        (False, 100.0, True),
        (False, 100.1, False),
        (True, 100.9, True),
        (True, 101.1, False),
        (True, np.inf, False),
    ],
)
def test_networks_may_differ_by_rounding(learned: bool, now: float, holds: bool) -> None:
    job = Job(workload(SMALL), replace(method("metis"), learned=learned), 0)
    assert check.Agreement(job, 100.0, now).holds == holds
