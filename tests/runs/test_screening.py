"""Suites that are made by search: what the rules make of lines, and a search of two real graphs."""

from dataclasses import replace
from pathlib import Path

import pytest

from opgym import datasets
from opgym.datasets import zoo
from opgym.datasets.reference import Best, Line
from opgym.datasets.suites import Suite
from opgym.datasets.suites.roles import LEAST_GAP
from opgym.problems import Order, SchedulingProblem
from opgym.runs.references.screening import RULES, candidates, method, order_row, screen, suite_of

#: One that leaves a gap, and one where the program order is the best.
ENTRIES = [zoo.entry("din-12-train"), zoo.entry("googlenet-infer")]


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> list[Line]:
    return screen(ENTRIES, tmp_path_factory.mktemp("rows") / "rows.jsonl", seconds=None, evaluations=20_000)


def test_only_graphs_of_some_size_are_looked_at() -> None:
    found = candidates()
    assert [entry.name for entry in found] == sorted(entry.name for entry in found)
    assert max(entry.ops for entry in found) <= 5_000
    assert len(candidates(200)) < len(found) < len(zoo.manifest().entries)


def test_a_gap_makes_a_task(lines: list[Line]) -> None:
    suite = suite_of("memory-order", ENTRIES, lines, method(None, 20_000))
    assert [(row.graph, row.role, row.part) for row in suite.rows] == [
        ("zoo/din-12-train", "task", ENTRIES[0].split)
    ]
    assert suite.screening is not None
    assert suite.screening.acceptance_rate == 0.5
    assert [candidate.accepted for candidate in suite.screening.candidates] == [True, False]
    assert suite.screening.candidates[0].gap == lines[0].gap
    assert "20,000" in suite.screening.method
    assert "without a limit of seconds" in suite.screening.method


def test_a_proof_makes_an_exact_row(lines: list[Line], tmp_path: Path) -> None:
    suite = suite_of("small-exact", ENTRIES, lines, method(), 7)
    assert [(row.graph, row.role) for row in suite.rows] == [
        ("zoo/din-12-train", "task"), ("zoo/googlenet-infer", "control"),
    ]  # fmt: skip
    suite.save(tmp_path / "s.json")
    assert Suite.load(tmp_path / "s.json") == suite
    assert suite.suite_version == 7
    problem = suite.rows[0].problem()
    assert isinstance(problem, SchedulingProblem)
    best = lines[0].best
    assert best is not None
    assert isinstance(best.solution, Order)
    assert problem.evaluate(best.solution).value == lines[0].bound


def test_what_is_shipped_is_what_is_found_again(lines: list[Line]) -> None:
    shipped = datasets.suite("small-exact").screening
    assert shipped is not None
    known = {candidate.graph: candidate for candidate in shipped.candidates}
    for entry, line in zip(ENTRIES, lines, strict=True):
        candidate = known[zoo.PREFIX + entry.name]
        assert line.best is not None
        assert (candidate.best_known, candidate.bound, candidate.best_heuristic) == (
            line.best.value, line.bound, line.best_heuristic,
        )  # fmt: skip


def test_the_edges_of_the_rules(lines: list[Line]) -> None:
    line = lines[0]
    assert line.best is not None
    value = line.best.value
    at = replace(line, heuristics={"dfs": value * (1 + LEAST_GAP) + 1})
    below = replace(line, heuristics={"dfs": value * (1 + LEAST_GAP) - 1})
    assert RULES["memory-order"].accepts(at)
    assert not RULES["memory-order"].accepts(below)
    assert RULES["small-exact"].accepts(replace(line, ops=100))
    assert not RULES["small-exact"].accepts(replace(line, ops=99))
    assert not RULES["small-exact"].accepts(replace(line, bound=value - 1))


def test_candidates_are_orders_of_one_device() -> None:
    row = order_row(ENTRIES[0], "task")
    problem = row.problem()
    assert isinstance(problem, SchedulingProblem)
    best = Best.of(problem, Order(problem.ops), "program-order", 1, None)
    assert best.value == problem.reference_bytes
