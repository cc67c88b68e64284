"""Tuning of learners: stages on disjoint training graphs, a check on validation graphs, and settings that load."""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from opgym import conf
from opgym.agents import make
from opgym.cli.app import app
from opgym.datasets import zoo
from opgym.errors import InvalidProblemError, UnknownIdError
from opgym.runs.reproduce import learner_tuning
from opgym.runs.reproduce.learner_plans import CHOICES, PLANS, Instance, Stage
from opgym.runs.reproduce.learner_tuning import as_yaml, draw, run

#: Values by setting and problem, in place of runs that take seconds: the setting of the lower rate is the better one.
_LOSS = {"zoo/a": 1.0, "zoo/b": 2.0, "zoo/c": 3.0}
_PLAN = replace(
    PLANS["placement"],
    stages=(Stage((Instance("zoo/a", "2xP100"),), 1, 2), Stage((Instance("zoo/b", "2xP100"),), 2, 1)),
    check=Stage((Instance("zoo/c", "2xP100"),), 3, 1),
)


def _measured(trial: Any) -> dict[str, Any]:
    rate = trial.setting.get("learning_rate", 2e-3)
    value = _LOSS[trial.instance.graph] * (1 + 100 * rate) + 0.001 * trial.seed
    return {"trial": trial.key, "value": value, "verdict": "ok", "seconds": 0.0}


def _out_of_memory(graph: str) -> Callable[[Any], dict[str, Any]]:
    """Measures, but on one graph all settings of the lower rate find only what does not fit."""

    def measured(trial: Any) -> dict[str, Any]:
        misfit = trial.instance.graph == graph and trial.setting.get("learning_rate") == 1e-3
        return {**_measured(trial), "verdict": "out_of_memory" if misfit else "ok"}

    return measured


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learner_tuning, "measure", _measured)


def test_graphs_are_of_the_right_part_and_serve_once() -> None:
    for plan in PLANS.values():
        parts = [("train", stage) for stage in plan.stages] + [("validation", plan.check)]
        graphs = [instance.graph for _, stage in parts for instance in stage.instances]
        assert len(set(graphs)) == len(graphs) >= 10
        for part, stage in parts:
            for instance in stage.instances:
                assert zoo.entry(instance.graph).split == part, instance


@pytest.mark.parametrize(
    ("agent", "environment"),
    [(agent, name) for name, plan in PLANS.items() for agent in plan.agents if agent in CHOICES],
)
def test_drawn_settings_are_legal_different_and_the_same_each_time(agent: str, environment: str) -> None:
    pytest.importorskip("stable_baselines3")
    settings = draw(agent, PLANS[environment], 20)
    assert settings == draw(agent, PLANS[environment], 20)
    assert len({json.dumps(setting) for setting in settings}) == 20
    for setting in settings:
        make(agent, **setting)


@pytest.mark.usefixtures("quick")
def test_the_better_setting_wins_and_gains_are_over_the_defaults() -> None:
    document = run("maskable-ppo", _PLAN, settings=8)
    assert document["tuned"]["learning_rate"] == 1e-3
    first, second = document["stages"]
    assert (first["settings"], len(first["kept"])) == (8, 2)
    assert (second["settings"], len(second["kept"])) == (2, 1)
    assert first["kept"][0]["gain"] == pytest.approx(1 - 1.1 / 1.2)
    values = [[3 * 1.1 + 0.001 * seed, 3 * 1.2 + 0.001 * seed] for seed in range(3)]
    of_graph, everything = document["check"]
    assert of_graph["gain"] == pytest.approx(np.mean([1 - tuned / untuned for tuned, untuned in values]))
    assert everything["estimate"] == of_graph["gain"]
    assert document["runs"] == (1 + 8) + 2 * (1 + 2) + 3 * (1 + 1)


def test_what_does_not_fit_is_no_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learner_tuning, "measure", _out_of_memory("zoo/a"))
    document = run("maskable-ppo", _PLAN, settings=8)
    assert document["tuned"]["learning_rate"] == 3e-3
    assert document["stages"][0]["kept"][0]["gain"] == pytest.approx(1 - 1.3 / 1.2)


def test_a_check_tells_of_what_does_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learner_tuning, "measure", _out_of_memory("zoo/c"))
    document = run("maskable-ppo", _PLAN, settings=8)
    assert document["tuned"]["learning_rate"] == 1e-3
    assert document["check"] == [
        {"graph": "zoo/c", "gain": -math.inf},
        {"graph": "all", "estimate": -math.inf, "low": None, "high": None, "clusters": 1},
    ]
    assert "nothing feasible where the defaults find something" in as_yaml(document, "a command")


def test_few_graphs_have_gains_and_no_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learner_tuning, "measure", _measured)
    for name, loss in (("d", 4.0), ("e", 5.0), ("f", 6.0), ("g", 7.0)):
        monkeypatch.setitem(_LOSS, f"zoo/{name}", loss)
    few, enough = (
        replace(_PLAN, check=Stage(tuple(Instance(f"zoo/{name}", "2xP100") for name in names), 1, 1))
        for names in ("cdef", "cdefg")
    )
    document = run("maskable-ppo", few, settings=8)
    *graphs, everything = document["check"]
    assert [line["graph"] for line in graphs] == ["zoo/c", "zoo/d", "zoo/e", "zoo/f"]
    assert [line["gain"] for line in graphs] == pytest.approx([1 - 1.1 / 1.2] * 4)
    assert (everything["low"], everything["high"], everything["clusters"]) == (None, None, 4)
    header = as_yaml(document, "a command").partition("solver:")[0]
    assert "values 8.3 % below" in header
    assert "graph by graph 8.3 %, 8.3 %, 8.3 %, 8.3 %" in header
    interval = run("maskable-ppo", enough, settings=8)["check"][-1]
    assert interval["low"] == pytest.approx(interval["high"]) == pytest.approx(1 - 1.1 / 1.2)


@pytest.mark.usefixtures("quick")
def test_the_command_prints_gains_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PLANS, "placement", _PLAN)  # type: ignore[arg-type]
    out = CliRunner().invoke(
        app, ["reproduce", "learner-tuning", "placement", "--out", str(tmp_path), "--workers", "1"]
    )
    assert out.exit_code == 0, out.output
    assert "zoo/c" in out.stdout
    assert "8.3" in out.stdout
    assert "[" not in out.stdout.rpartition("Over the defaults")[2]
    assert json.loads((tmp_path / "tuning.json").read_text())["check"][-1]["low"] is None


@pytest.mark.usefixtures("quick")
def test_a_run_goes_on_with_the_rows_that_are_there(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "rows.jsonl"
    whole = run("maskable-ppo", _PLAN, settings=4, rows_path=path)
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:5]))
    again: list[Any] = []

    def counted(trial: Any) -> Mapping[str, Any]:
        again.append(trial)
        return _measured(trial)

    monkeypatch.setattr(learner_tuning, "measure", counted)
    assert run("maskable-ppo", _PLAN, settings=4, rows_path=path) == whole
    assert len(again) == len(lines) - 5
    assert path.read_text().splitlines(keepends=True) == lines


@pytest.mark.usefixtures("quick")
def test_the_file_loads_as_the_tuned_learner(tmp_path: Any) -> None:
    pytest.importorskip("stable_baselines3")
    document = run("maskable-ppo", _PLAN, settings=4)
    path = tmp_path / "tuned.yaml"
    path.write_text(as_yaml(document, "a command"))
    tuned = {**document["tuned"], "net_arch": (64, 64)}
    assert conf.agent(path) == make("maskable-ppo", **tuned)


def test_a_trial_is_a_run_of_the_learner() -> None:
    pytest.importorskip("stable_baselines3")
    setting = {"environment": {"slots": 4}, "n_steps": 8, "num_envs": 2, "n_epochs": 1}
    trial = learner_tuning.Trial("maskable-ppo", setting, Instance("example/two-branch"), 3, 4)
    row = learner_tuning.measure(trial)
    problem = trial.instance.problem()
    solver = make("maskable-ppo", **setting)
    found = solver.solve(problem, learner_tuning.Budget(evaluations=4), np.random.default_rng(3))
    assert (row["value"], row["verdict"]) == (found.outcome.value, found.outcome.verdict)
    assert row["trial"] == json.loads(json.dumps(trial.key))


def test_what_cannot_be_tuned_is_refused() -> None:
    with pytest.raises(UnknownIdError, match="maskable-ppo"):
        draw("maskable-pp", PLANS["placement"], 1)
    with pytest.raises(InvalidProblemError, match="0 settings"):
        run("ppo", PLANS["placement"], settings=0)
