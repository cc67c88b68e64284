"""``--solver`` takes stored settings and files of them, by a name of their own."""

import json

import pytest
from typer.testing import CliRunner

from opgym.cli.app import app

GRAPH = "synthetic/ws?n=50&seed=1"
PLACE = ["place", GRAPH, "--cluster", "2xREGAL", "--objective", "peak_memory"]


@pytest.fixture
def settings(tmp_path):
    path = tmp_path / "small.yaml"
    path.write_text("solver: brkga\noptions: {population: 20, elites: 4, mutants: 2}\n")
    return str(path)


@pytest.mark.parametrize("command", [PLACE, ["schedule", GRAPH]], ids=lambda command: command[0])
def test_settings_run_beside_the_solver_they_are_of(command, settings):
    solvers = ["--solver", settings, "--solver", "brkga", "--evaluations", "400"]
    result = CliRunner().invoke(app, [*command, *solvers, "--json"])
    assert result.exit_code == 0, result.stderr
    rows = {row["solver"]: row for row in json.loads(result.stdout)}
    assert rows.keys() == {settings, "brkga"}
    assert rows[settings]["note"] == "24 generations"  # 20, then 16 more in each
    assert rows["brkga"]["note"] == "4 generations"
    table = CliRunner().invoke(app, [*command, *solvers])
    assert table.exit_code == 0
    assert settings[:10] in table.stdout


def test_a_trained_agent_runs_by_its_folder_and_that_of_its_training(tmp_path):
    pytest.importorskip("torch")
    pytest.importorskip("safetensors")
    from opgym import agents
    from opgym.datasets import load
    from opgym.problems import SchedulingProblem

    learner = agents.make(
        "regal", weights="none", width=8, graphs=1, samples=2, evaluations_per_run=120, threads=1
    )
    trained = learner.fit([SchedulingProblem(load("synthetic/ws?n=12&seed=0"))], steps=2)
    trained.save(tmp_path / "training" / "agent")
    training, agent = str(tmp_path / "training"), str(tmp_path / "training" / "agent")
    command = ["schedule", GRAPH, "--evaluations", "300", "--solver", training, "--solver", agent]
    result = CliRunner().invoke(app, [*command, "--json"])
    assert result.exit_code == 0, result.stderr
    one, other = json.loads(result.stdout)
    assert {one.pop("solver"), other.pop("solver")} == {training, agent}
    assert one["value"] == other["value"]
    assert one["evaluations"] == 300
    refused = CliRunner().invoke(
        app, ["schedule", GRAPH, "--solver", str(tmp_path)]
    )  # a folder of neither kind
    assert refused.exit_code == 2
    assert "unknown solver" in refused.stderr


def test_bad_settings_are_refused_before_anything_is_read(settings, tmp_path):
    bad = tmp_path / "bad.yaml"
    bad.write_text("solver: brkga\noptions: {poulation: 20}\n")
    result = CliRunner().invoke(app, ["schedule", "absent.onnx", "--solver", str(bad)])
    assert result.exit_code == 2
    assert "did you mean population" in result.stderr.replace("\n", " ")
