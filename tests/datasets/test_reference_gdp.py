"""Reference lines of GDP's workloads: each holds when it is evaluated again, and heuristics leave enough room."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from opgym import datasets
from opgym.datasets.reference import Best, Line, Lines, lines, suites_with_lines
from opgym.datasets.reference.verification import verify_lines
from opgym.datasets.suites import Row, Suite, recipes
from opgym.datasets.suites.roles import LEAST_GAP, role_of
from opgym.problems import Placement, PlacementProblem
from opgym.runs.references.reference import Task, heuristic_names, measure, named_searches
from opgym.runs.references.reference_columns import wrong_heuristics

SUITES = [name for name in suites_with_lines() if name == "gdp" or name.startswith("gdp-")]


# --- What is shipped ----------------------------------------------------------------------------------------


def test_heuristics_leave_room() -> None:
    """At least 12 rows on which the best heuristic is more than 10 % above the best known value."""
    found = lines("gdp")
    assert [line.problem for line in found] == [row.name for row in datasets.suite("gdp").rows]
    assert len(found) == 28
    gaps = [line.gap for line in found]
    assert sum(gap is not None and gap > 0.1 for gap in gaps) >= 12


def test_every_row_was_searched_for_long() -> None:
    """With 50,000 evaluations, of the largest graph with 5,000, unless a bound proved the optimum before."""
    found = list(lines("gdp"))
    largest = max(line.ops for line in found)
    for line in found:
        assert line.best is not None
        assert line.best.seconds_limit is None
        least = 5_000 if line.ops == largest else 50_000
        assert line.proven or line.searched >= least, line.problem


@pytest.mark.parametrize("name", SUITES)
def test_lines_have_all_columns(name: str) -> None:
    for line in lines(name):
        assert set(line.heuristics) == set(heuristic_names(PlacementProblem))
        assert set(line.annealing) == {100, 5_000}
        assert line.unit == "ns"
        if line.best is not None:
            assert line.bound <= line.best.value
            columns = (*line.heuristics.values(), *line.annealing.values())
            assert all(value is None or line.best.value <= value for value in columns)


def test_roles_are_what_the_lines_say() -> None:
    for name, version in recipes.ROLES_BY.items():
        found = lines(name, version)
        for row in datasets.suite(name).rows:
            gap = found[row.name].gap
            assert (row.role == "control") == (gap is not None and gap < LEAST_GAP), row.name
            assert row.role != "unscreened"


def test_small_lines_hold() -> None:
    """One workload of each suite, evaluated again."""
    for name in SUITES:
        found = lines(name)
        some = {row: line for row, line in found.lines.items() if "transformer-xl-2l" in row}
        assert some
        assert verify_lines(datasets.suite(name), replace(found, lines=some), more=wrong_heuristics) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", suites_with_lines())
def test_all_lines_hold(name: str) -> None:
    assert verify_lines(datasets.suite(name), lines(name)) == []


@pytest.mark.slow
@pytest.mark.parametrize("graph", ["rnnlm-2l", "inception-v3-b32", "wavenet-2x18"])
def test_heuristics_find_it_again(graph: str) -> None:
    found = lines("gdp")
    some = {row: line for row, line in found.lines.items() if graph in row}
    assert len(some) == 2
    assert verify_lines(datasets.suite("gdp"), replace(found, lines=some), more=wrong_heuristics) == []


@pytest.mark.slow
def test_columns_come_out_again() -> None:
    """Annealing, too, whatever else was searched since."""
    found = lines("gdp")
    for row in datasets.suite("gdp").rows:
        if "transformer-xl-2l" in row.graph or "inception-v3-b32" in row.graph:
            line = Line.from_row(measure(Task(row, searches=named_searches(row, ["annealing"], 1)))["line"])
            assert (line.heuristics, line.annealing) == (
                found[row.name].heuristics,
                found[row.name].annealing,
            )
            assert (line.bound, line.bound_by) == (found[row.name].bound, found[row.name].bound_by)


# --- What is found to be wrong ------------------------------------------------------------------------------

GRAPH = datasets.load("example/rnn-train")
ROW = Row("example/rnn-train", GRAPH.fingerprint, "2xP100", "step_time", None, "test", "task")
SUITE = Suite("tiny", 1, "summary", "rule", (ROW,))
LINE = Line.from_row(measure(Task(ROW, searches=named_searches(ROW, ["annealing"], 50)))["line"])
BEST = LINE.best
assert BEST is not None


def problems(line: Line, suite: Suite = SUITE) -> list[str]:
    """What is wrong with a line, without the name of its row."""
    found = verify_lines(suite, Lines("tiny", 1, 1, {line.problem: line}), more=wrong_heuristics)
    assert {finding.file for finding in found} <= {"tiny.v1.json"}
    return [finding.problem.removeprefix(f"{line.problem}: ") for finding in found]


def test_a_sound_line_has_no_problems() -> None:
    calls: list[tuple[int, int, str]] = []
    known = Lines("tiny", 1, 1, {ROW.name: LINE})
    assert verify_lines(SUITE, known, lambda *call: calls.append(call), wrong_heuristics) == []
    assert calls == [(1, 1, ROW.name)]


def test_stale_lines_are_reported() -> None:
    assert problems(LINE, replace(SUITE, rows=())) == ["is stale: the suite has no such row"]
    (stale,) = problems(replace(LINE, fingerprint="0" * 64))
    assert stale.startswith("is stale: it is of a graph with fingerprint 0000000000000000")
    (other,) = problems(LINE, replace(SUITE, suite_version=2))
    assert other == "is of tiny, version 1; the suite is tiny, version 2"
    (gone,) = problems(
        replace(LINE, fingerprint="0" * 64), replace(SUITE, rows=(replace(ROW, fingerprint="0" * 64),))
    )
    assert "the suite was made for 0000000000000000" in gone


def test_values_that_do_not_hold_are_reported() -> None:
    assert BEST is not None
    (worth,) = problems(replace(LINE, best=replace(BEST, value=BEST.value - 1)))
    assert worth == f"its best solution is worth {BEST.value:g}; the line says {BEST.value - 1:g}"
    short = replace(BEST, device=BEST.device[:-1], order=BEST.order[:-1])
    (length,) = problems(replace(LINE, best=short))
    assert "wrong_length" in length
    outside = replace(BEST, device=np.full_like(BEST.device, 7))
    (unknown,) = problems(replace(LINE, best=outside))
    assert "unknown_device" in unknown
    (none,) = {problem.partition(" has ")[2] for problem in problems(replace(LINE, best=None))[:1]}
    assert "and the best known is nothing" in none


def test_bounds_that_do_not_hold_are_reported() -> None:
    (bound,) = problems(replace(LINE, bound=LINE.bound - 1))
    assert bound.startswith("its bound is")
    (weaker,) = problems(replace(LINE, bound=LINE.bound - 1, bound_by="some solver"))
    assert "alone gives" in weaker
    assert problems(replace(LINE, bound=LINE.bound + 0.5, bound_by="some solver")) == []


def test_columns_that_do_not_hold_are_reported() -> None:
    assert BEST is not None
    better = {**LINE.annealing, 100: BEST.value - 1}
    assert problems(replace(LINE, annealing=better)) == [
        f"annealing 100 has {BEST.value - 1:g}, and the best known is {BEST.value:g}"
    ]
    below = problems(replace(LINE, brkga={5_000: 1.0}))
    assert below[0] == f"brkga 5000 has 1, below the bound of {LINE.bound:g}"
    heft = LINE.heuristics["heft"]
    assert heft is not None
    assert problems(replace(LINE, heuristics={**LINE.heuristics, "heft": heft + 1})) == [
        f"heft finds {heft}; the line says {heft + 1}"
    ]
    fewer = {name: value for name, value in LINE.heuristics.items() if name != "heft"}
    (others,) = problems(replace(LINE, heuristics=fewer))
    assert others.startswith("has columns of other heuristics than there are")


# --- Roles --------------------------------------------------------------------------------------------------


def test_roles() -> None:
    assert BEST is not None
    assert role_of(ROW, {}) == "unscreened"
    assert role_of(ROW, {ROW.name: replace(LINE, best=None)}) == "unscreened"
    assert role_of(replace(ROW, fingerprint="0" * 64), {ROW.name: LINE}) == "unscreened"
    nothing: dict[str, float | None] = dict.fromkeys(LINE.heuristics)
    assert role_of(ROW, {ROW.name: replace(LINE, heuristics=nothing)}) == "task"
    for factor, role in ((1.0, "control"), (1 + LEAST_GAP / 2, "control"), (1 + 2 * LEAST_GAP, "task")):
        line = replace(LINE, heuristics={"heft": BEST.value * factor})
        assert role_of(ROW, {ROW.name: line}) == role


def test_what_stands_in_a_line_can_be_evaluated(tmp_path: Path) -> None:
    assert BEST is not None
    Lines("tiny", 1, 1, {ROW.name: LINE}).save(tmp_path / "tiny.v1.json")
    read = Lines.load(tmp_path / "tiny.v1.json")[ROW.name].best
    assert isinstance(read, Best)
    placement = read.solution
    assert isinstance(placement, Placement)
    assert ROW.problem().evaluate(placement).value == BEST.value  # type: ignore[arg-type]
    assert suites_with_lines(tmp_path) == ["tiny"]
