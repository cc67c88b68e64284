"""Columns of the reproduction of REGAL: what each runs, with which budget."""

import numpy as np
import pytest

from opgym import datasets
from opgym.agents import make
from opgym.conf import agent
from opgym.datasets.reference import lines
from opgym.problems import Budget
from opgym.runs.references import regal_suites
from opgym.runs.reproduce import headroom
from opgym.runs.reproduce.regal import methods
from opgym.runs.reproduce.regal.methods import BASE, SEEDS, Method, baselines

GRAPH = "synthetic/er?costs=bytes&seed=1000005"


def _column(name: str, devices: int) -> Method:
    [method] = [method for method in baselines(devices) if method.name == name]
    return method


def _problem(devices: int):
    suite = "regal-memory-1" if devices == 1 else "regal-memory-2"
    return regal_suites.row_of(suite, GRAPH, "validation").problem()


@pytest.mark.parametrize("devices", [1, 2])
def test_every_baseline_of_the_paper_and_those_that_decide_are_columns(devices: int, monkeypatch) -> None:
    monkeypatch.setattr(methods, "installed", lambda: True)
    found = {method.name: method for method in baselines(devices)}
    assert next(iter(found)) == BASE
    of_one_device = {"best-of-three"} if devices == 1 else set()
    assert set(found) - of_one_device == {
        BASE, "brkga-tuned-5k", "brkga-seeded-5k", "key-search-5k", "idrs-5k", "annealing-5k", "partition-dfs",
        "best-heuristic", "brkga-50k", "idrs-100k", "cp-sat",
    }  # fmt: skip
    assert of_one_device <= set(found)
    budgets = {name: method.evaluations for name, method in found.items()}
    assert budgets["brkga-50k"] == 50_000
    assert budgets["idrs-100k"] == 100_000
    assert all(count in (None, 5_000) for name, count in budgets.items() if not found[name].long)
    assert len({str(method.key) for method in found.values()}) == len(found)
    monkeypatch.setattr(methods, "installed", lambda: False)
    assert "cp-sat" not in [method.name for method in baselines(devices)]


def test_the_seed_of_the_screening_is_none_of_the_columns() -> None:
    assert regal_suites._SEED not in SEEDS
    assert len(set(SEEDS)) == 4


@pytest.mark.parametrize("devices", [1, 2])
def test_a_column_finds_what_its_solver_finds(devices: int) -> None:
    problem = _problem(devices)
    options = headroom.columns(devices)[BASE].options
    direct = make("brkga", **options).solve(problem, Budget(evaluations=5_000), np.random.default_rng(3))
    [found] = _column(BASE, devices).run(problem, 3)
    assert (found.outcome, found.evaluations) == (direct.outcome, direct.evaluations)
    tuned = agent("brkga-tuned").solve(problem, Budget(evaluations=5_000), np.random.default_rng(3))
    assert _column("brkga-tuned-5k", devices).run(problem, 3)[0].outcome == tuned.outcome
    heuristics = _column("best-heuristic", devices).run(problem, 0)
    assert len(heuristics) >= 5
    seeded = _column("brkga-seeded-5k", devices).run(problem, 0)[0]
    assert seeded.outcome.value <= min(result.outcome.value for result in heuristics)


def test_the_base_is_the_reference_line_of_the_suite() -> None:
    """Its first seed, on the first row of the test."""
    row = datasets.suite("regal-memory-1").part("test", "synthetic")[0]
    [found] = _column(BASE, 1).run(row.problem(), SEEDS[0])
    assert found.outcome.value == lines("regal-memory-1")[row.name].brkga[5_000]


def test_seeds_of_columns() -> None:
    assert _column(BASE, 1).chosen_seeds(SEEDS) == SEEDS
    assert _column("idrs-100k", 1).chosen_seeds(SEEDS) == SEEDS[:1]
    assert _column("best-heuristic", 2).chosen_seeds(SEEDS) == SEEDS[:1]


def test_why_a_column_does_not_apply() -> None:
    best_of_three = _column("best-of-three", 1)
    assert best_of_three.skip_reason(_problem(1)) is None
    assert best_of_three.skip_reason(_problem(2)) == "does not solve a PlacementProblem"


def test_the_document_of_a_column_is_plain_data() -> None:
    document = _column("key-search-5k", 2).document()
    assert document["solver"] == "pair-annealing"
    assert _column("key-search-5k", 1).document()["solver"] == "key-search"
    assert document["digest"] != _column("key-search-5k", 1).document()["digest"]
    assert (document["kind"], document["published"], document["evaluations"]) == ("baseline", True, 5_000)
