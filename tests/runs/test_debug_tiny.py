"""``debug=tiny`` runs every registered agent from end to end, in seconds."""

import json
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from opgym.agents import make
from opgym.agents.learner import is_learner
from opgym.agents.registry import names, solver_class
from opgym.cli.app import app
from opgym.datasets import load
from opgym.graphs import Cluster
from opgym.problems import PlacementProblem, SchedulingProblem

TYPES = {"placement": PlacementProblem, "scheduling": SchedulingProblem}
LEARNERS = sorted({name for kind in TYPES.values() for name in names(kind) if is_learner(solver_class(name))})
#: One algorithm that learns from rollouts and one that learns from memory; the slow tests run all.
CHEAP_LEARNERS = {("maskable-ppo", "placement"), ("dqn", "scheduling")}
#: Most seconds of one agent, in time of the processor: this machine may have other work.
SECONDS = 10.0
GRAPH = "synthetic/ws?n=20&seed=0"
#: A step of these is a run of BRKGA, of 5,000 evaluations where nobody says otherwise.
SHORT_RUNS = {name: ["agent.options.evaluations_per_run=500"] for name in ("regal", "gas")}


def _json(*arguments: str):
    result = CliRunner().invoke(app, [*arguments, "--json"])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def _learners():
    for name in LEARNERS:
        for env, kind in TYPES.items():
            if issubclass(kind, solver_class(name).problem_types):
                marks = () if (name, env) in CHEAP_LEARNERS else pytest.mark.slow
                yield pytest.param(name, env, marks=marks, id=f"{name}-{env}")


@pytest.mark.parametrize(("learner", "env"), list(_learners()))
def test_every_learner_trains(learner, env, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    began = time.process_time()
    result = _json("train", "debug=tiny", f"agent={learner}", f"env={env}", *SHORT_RUNS.get(learner, ()))
    assert time.process_time() - began < SECONDS
    assert (result["agent"], result["verdict"]) == (learner, "ok")
    assert result["steps"] >= 600
    folder = Path(result["folder"])
    expected = {"config.yaml", "metrics.jsonl", "checkpoints", "agent", "result.json"}
    assert {path.name for path in folder.iterdir()} >= expected
    assert len(list((folder / "checkpoints").iterdir())) == 2


def _problems() -> dict[tuple[str, ...], list[str]]:
    """Every agent that is no learner, by the settings of a problem that it solves."""
    graph = load(GRAPH)
    problems = {("problem.cluster=null",): SchedulingProblem(graph)}
    for objective in ("step_time", "max_load", "peak_memory", "latency"):
        settings = ("problem.cluster=2xP100", f"problem.objective={objective}")
        problems[settings] = PlacementProblem(graph, Cluster.parse("2xP100"), objective)
    found: dict[tuple[str, ...], list[str]] = {}
    for name in dict.fromkeys(name for kind in TYPES.values() for name in names(kind)):
        if name in LEARNERS:
            continue
        able = [s for s, problem in problems.items() if make(name).skip_reason(problem) is None]
        assert able, f"{name} solves none of these problems"
        found.setdefault(able[0], []).append(name)
    return found


@pytest.mark.parametrize("settings", list(_problems()), ids=lambda s: s[-1].partition("=")[2])
def test_every_agent_is_evaluated(settings, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    agents = _problems()[settings]
    rows = _json("evaluate", "debug=tiny", f"agents=[{','.join(agents)}]", *settings)["results"]
    assert {row["agent"] for row in rows} == set(agents)
    for row in rows:
        assert row["error"] == "", row
        assert row["verdict"] == "ok", row
        assert row["evaluations"] <= row["budget"]
        assert row["seconds"] < SECONDS, row


@pytest.mark.slow
@pytest.mark.parametrize("learner", LEARNERS)
def test_every_learner_is_evaluated_untrained_and_trained(learner, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    trained = _json("train", "debug=tiny", f"agent={learner}")["folder"]
    rows = _json("evaluate", "debug=tiny", f"agents=[{learner},{trained}]", "problem.cluster=2xP100")[
        "results"
    ]
    assert len({row["agent"] for row in rows}) == 2
    assert all(row["verdict"] == "ok" and row["error"] == "" for row in rows)
    assert all(row["evaluations"] == row["budget"] for row in rows)
