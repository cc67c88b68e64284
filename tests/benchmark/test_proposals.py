"""Rows of ``opgym benchmark proposals``: whole solves, and the network in them."""

import json
from dataclasses import fields

import pytest
from typer.testing import CliRunner

pytest.importorskip("torch")
pytest.importorskip("safetensors")

from opgym.agents import make
from opgym.agents.networks.shelf import learned_in
from opgym.agents.regal.base import SHELF
from opgym.benchmark import proposals
from opgym.benchmark.proposals import Row
from opgym.cli.app import app

from ..agents.regal.problems import tasks

QUICK = {
    "graphs": 1, "samples": 2, "evaluations_per_run": 30, "width": 4, "population": 10, "elites": 2, "mutants": 3,
    "weights": "none",
}  # fmt: skip


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    for name, value in {"OPS": 30, "TURNS": 1, "EVALUATIONS": 50, "GRAPHS": proposals.GRAPHS[:1]}.items():
        monkeypatch.setattr(proposals, name, value)
    for name, options in {"regal": {"rounds": 1}, "regal-plus": {"layers": 1, "moves": 20}}.items():
        make(name, **QUICK, **options).fit(tasks(), steps=1).save(tmp_path / name)  # type: ignore[attr-defined]
    monkeypatch.setattr(SHELF, "folder", tmp_path)
    learned_in.cache_clear()
    yield
    learned_in.cache_clear()


def test_the_command_prints_every_agent_and_task(small: None) -> None:
    result = CliRunner().invoke(app, ["benchmark", "proposals", "--json"])
    assert result.exit_code == 0, result.stderr
    rows = json.loads(result.stdout)
    assert [(row["agent"], row["task"]) for row in rows] == [
        (agent, task) for agent in ("regal", "regal-plus") for task in ("memory-1", "memory-2", "time")
    ]
    for row in rows:
        assert row.keys() == {field.name for field in fields(Row)}
        assert row["ops"] == 30
        assert 0 < row["network_seconds"] < row["seconds"]
        assert row["network_share"] == pytest.approx(row["network_seconds"] / row["seconds"])


def test_the_table_shows_a_bar_that_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    row = Row("regal-plus", "time", "synthetic/ws", 2_000, 4_000, 2.5, 0.75, 0.3, 3.0, 0.2, False)
    monkeypatch.setattr(proposals, "run", lambda progress: [vars(row)])
    cells = CliRunner().invoke(app, ["benchmark", "proposals"]).stdout.strip().splitlines()[-1].split()
    assert cells == [
        "regal-plus", "time", "synthetic/ws", "2,000", "4,000", "2.50", "0.75", "0.30", "no",
    ]  # fmt: skip


def test_agents_without_weights_are_left_out(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    monkeypatch.setattr(SHELF, "folder", tmp_path)
    assert proposals.run() == []
