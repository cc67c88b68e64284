"""What GDP's reproduction has to run: rows, methods, seeds and budgets."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from opgym.errors import InvalidProblemError, UnknownIdError
from opgym.runs.reproduce.gdp import methods
from opgym.runs.reproduce.gdp.plan import Settings, followers, jobs
from opgym.runs.reproduce.gdp.store import Store
from opgym.runs.reproduce.gdp.workloads import CORE, ablated, held_out, unscreened, workloads

from .made import row, workload


@pytest.fixture(autouse=True)
def empty_shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(methods.SHELF, "folder", tmp_path / "no weights")


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"tables": ("two",)}, UnknownIdError),
        ({"tables": ()}, InvalidProblemError),
        ({"methods": ("gpd",)}, UnknownIdError),
        ({"methods": ()}, InvalidProblemError),
        ({"rows": ("alexnet",)}, InvalidProblemError),
        ({"rows": ("rnnlm-2l", "alexnet")}, InvalidProblemError),
        ({"rows": ("gnmt-2l",), "tables": ("ablation",)}, InvalidProblemError),
        ({"seeds": 0}, InvalidProblemError),
        ({"seeds": 4}, InvalidProblemError),
    ],
)
def test_wrong_settings_are_refused(wrong: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        Settings(**wrong)


def test_rows_of_the_tables() -> None:
    assert len(workloads()) == 28
    assert {each.graph for each in workloads() if each.core} == set(CORE)
    assert sum(each.core for each in workloads()) == 8
    assert len(held_out()) == 12
    assert len({each.graph for each in held_out()}) == 6
    assert len(ablated()) == 4
    assert all(each.core for each in ablated())
    assert len(unscreened()) == 42
    assert {each.case.suite for each in unscreened()} == {"placement-unscreened"}
    assert sum(each.control for each in workloads()) == 6


def test_core_rows_have_three_seeds_and_what_draws_nothing_one() -> None:
    found = Counter((job.workload.label, job.method.name) for job in jobs(Settings(("one",)), Store()))
    assert found["rnnlm-2l on 2xP100", "gdp"] == 3
    assert found["rnnlm-2l on 2xP100@nvlink", "gdp"] == 1
    assert found["rnnlm-2l on 2xP100", "annealing@100"] == 3
    assert found["rnnlm-2l on 2xP100", "metis"] == 1
    assert {name for _, name in found} == {
        *methods.HEURISTICS, *methods.LEARNERS,
        *(f"{name}@{budget}" for name in methods.SEARCHES for budget in (100, 5_000)),
    }  # fmt: skip
    fewer = jobs(Settings(("one",), rows=("rnnlm-2l",), methods=("gdp",), seeds=2), Store())
    assert sorted(job.seed for job in fewer) == [0, 0, 1]


def test_budgets_of_learners_are_those_of_ops() -> None:
    assert [methods.learner_budget(ops) for ops in (100, 6_000, 6_001, 20_000, 20_001)] == [
        5_000, 5_000, 2_000, 2_000, 800,
    ]  # fmt: skip
    budgets = {
        (job.workload.graph, job.method.evaluations)
        for job in jobs(Settings(("one",), methods=("gdp",)), Store())
    }
    assert {("rnnlm-2l", 5_000), ("gnmt-4l", 2_000), ("gnmt-8l", 800)} <= budgets


def test_a_run_of_two_tables_is_one_and_small_graphs_come_first() -> None:
    found = jobs(Settings(methods=("gdp", "portfolio")), Store())
    assert len({(job.workload.name, job.method.name, job.seed) for job in found}) == len(found)
    ops = [job.workload.ops for job in found]
    assert ops == sorted(ops)
    names = {job.method.name for job in found}
    assert names == {*methods.HEURISTICS, "gdp", *methods.ABLATIONS}


def test_weights_are_looked_at_once_and_fine_tuned_by_every_seed() -> None:
    known = Store([row("rnnlm-2l on 2xP100", "gdp-unseen-size-seed1 zero-shot", 200.0)])
    found = Counter(
        job.method.name
        for job in jobs(
            Settings(("generalization",), rows=("rnnlm-2l-train on 2xP100:",), methods=("gdp-unseen-size",)),
            known,
        )
    )
    assert found == {
        "gdp-unseen-size zero-shot": 1, "gdp-unseen-size fine-tuned": 3,
        "gdp-unseen-size-seed1 zero-shot": 1, "gdp-unseen-size-seed1 fine-tuned": 1,
    }  # fmt: skip


def test_annealing_gets_as_many_evaluations_as_fine_tuning_had() -> None:
    settings = Settings(("generalization",), rows=("rnnlm-2l-train on 2xP100:",))
    label = "rnnlm-2l on 2xP100"
    assert followers(settings, Store()) == []
    rows = [row(label, "gdp-unseen-size fine-tuned", 200.0, seed, spent=400 + seed) for seed in (0, 1)]
    found = followers(settings, Store(rows))
    assert [job.seed for job in found] == [0, 1, 2]
    assert {job.method.evaluations for job in found} == {401}
    assert all(job.workload == workload(label) for job in found)
    assert followers(Settings(("one",)), Store(rows)) == []
    assert followers(Settings(("generalization",), methods=("gdp",)), Store(rows)) == []


def test_beside_one_policy_for_several_rows_are_runs_on_those_that_it_has_learned_from() -> None:
    settings = Settings(("batch",), methods=("gdp", "gdp-batch", "portfolio"))
    assert {job.method.name for job in jobs(settings, Store())} == {"gdp-batch zero-shot"}
    rows = [
        row("gnmt-2l on 2xP100@nvlink", "gdp-batch zero-shot", 90.0, seen=True),
        row("gnmt-4l on 4xP100@nvlink", "gdp-batch zero-shot", 90.0),
    ]
    found = {(job.workload.label, job.method.name) for job in followers(settings, Store(rows))}
    assert found == {("gnmt-2l on 2xP100@nvlink", name) for name in ("gdp", "human-expert")}
    both = Settings(("one", "batch"), methods=("gdp", "gdp-batch", "portfolio"))
    assert followers(both, Store(rows)) == []  # they are asked for anyway
