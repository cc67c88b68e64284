"""Tuning of learners: stages on disjoint training graphs, a check on validation graphs, and settings that load."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from opgym import conf
from opgym.agents import make
from opgym.datasets import zoo
from opgym.errors import InvalidProblemError, UnknownIdError
from opgym.runs.reproduce import learner_tuning
from opgym.runs.reproduce.learner_tuning import CHOICES, PLANS, Instance, Stage, as_yaml, draw, run

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
    return {"trial": trial.key, "value": value, "seconds": 0.0}


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


@pytest.mark.parametrize("environment", PLANS)
@pytest.mark.parametrize("agent", CHOICES)
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
    assert of_graph["estimate"] == pytest.approx(np.mean([1 - tuned / untuned for tuned, untuned in values]))
    assert everything["estimate"] == of_graph["estimate"]
    assert document["runs"] == (1 + 8) + 2 * (1 + 2) + 3 * (1 + 1)


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
    assert row["value"] == found.outcome.value
    assert row["trial"] == json.loads(json.dumps(trial.key))


def test_what_cannot_be_tuned_is_refused() -> None:
    with pytest.raises(UnknownIdError, match="maskable-ppo"):
        draw("maskable-pp", PLANS["placement"], 1)
    with pytest.raises(InvalidProblemError, match="0 settings"):
        run("ppo", PLANS["placement"], settings=0)
