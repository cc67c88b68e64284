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


def test_bad_settings_are_refused_before_anything_is_read(settings, tmp_path):
    bad = tmp_path / "bad.yaml"
    bad.write_text("solver: brkga\noptions: {poulation: 20}\n")
    result = CliRunner().invoke(app, ["schedule", "absent.onnx", "--solver", str(bad)])
    assert result.exit_code == 2
    assert "did you mean population" in result.stderr.replace("\n", " ")
