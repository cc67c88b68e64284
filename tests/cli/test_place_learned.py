"""``opgym place`` with a learned placer: the best heuristic beside it, and learning on."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("safetensors")

from opgym import agents
from opgym.agents import registry
from opgym.agents.gdp.gdp import SHELF
from opgym.agents.networks.shelf import learned_in
from opgym.datasets import load
from opgym.graphs import Cluster
from opgym.problems import PlacementProblem

MODEL = ("example/two-branch", "--cluster", "2xP100")


@pytest.fixture
def trained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A package in which ``gdp`` comes trained, for nothing much."""
    problem = PlacementProblem(load("example/two-branch"), Cluster.parse("2xP100"))
    small = {"width": 8, "heads": 2, "layers": 1, "rounds": 1, "weights": "none"}
    learner: Any = agents.make("gdp", **small)
    learner.fit([problem], steps=8).save(tmp_path / "gdp-unseen-family")  # what it uses by itself
    monkeypatch.setattr(SHELF, "folder", tmp_path)
    learned_in.cache_clear()
    yield
    learned_in.cache_clear()


@pytest.mark.usefixtures("trained")
def test_the_best_heuristic_stands_beside_it_and_the_better_one_is_written(
    rows: Callable[..., Any], tmp_path: Path
) -> None:
    out = tmp_path / "best.json"
    found = rows("place", *MODEL, "--solver", "gdp", "--out", out)
    problem = PlacementProblem(load("example/two-branch"), Cluster.parse("2xP100"))
    heuristics = [
        agents.make(name) for name in agents.names() if registry.family(name) == registry.HEURISTICS
    ]
    best = min(
        solver.solve(problem).outcome.value
        for solver in heuristics
        if not solver.control and solver.skip_reason(problem) is None
    )
    by_name = {row["solver"]: row for row in found}
    assert len(found) == 2
    (heuristic,) = by_name.keys() - {"gdp"}
    assert by_name[heuristic]["value"] == best
    assert by_name["gdp"]["note"] == "zero-shot"
    assert rows("check", MODEL[0], out)["value"] == min(row["value"] for row in found)


@pytest.mark.usefixtures("trained")
def test_pure_leaves_it_alone(rows: Callable[..., Any]) -> None:
    (row,) = rows("place", *MODEL, "--solver", "gdp", "--pure")
    assert row["solver"] == "gdp"
    assert row["evaluations"] == 2  # its most likely placement, in both orders


@pytest.mark.usefixtures("trained")
def test_it_goes_on_learning_for_so_many_seconds(rows: Callable[..., Any]) -> None:
    command = ("place", *MODEL, "--solver", "gdp", "--pure", "--evaluations", 40)
    (row,) = rows(*command, "--finetune", 60)
    assert row["evaluations"] == 40
    assert "updates" in row["note"]


@pytest.mark.parametrize("option", [("--pure",), ("--finetune", 3)])
def test_without_a_placer_there_is_nothing_to_leave_alone_or_to_teach(
    refused: Callable[..., str], option: tuple[Any, ...]
) -> None:
    assert "needs a learned placer" in refused("place", *MODEL, "--solver", "m-etf", *option)
