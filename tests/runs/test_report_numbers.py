"""Numbers of a report by hand, and which tables are joined in it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opgym.errors import InvalidDatasetError
from opgym.runs.report.figures import pareto_front
from opgym.runs.report.markdown import page as page_of
from opgym.runs.report.numbers import anytime_curves, document, ranking
from opgym.runs.report.sections import Section, read_sections

from .made_tables import PICTURES, PROBLEMS, made, result, write


@pytest.fixture
def section(tmp_path: Path) -> Section:
    [found] = read_sections([write(tmp_path / "made", made())])
    return found


def agents(numbers: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {agent["agent"]: agent for agent in numbers["agents"]}


# --- Numbers ------------------------------------------------------------------------------------------------


def test_ratios_are_to_the_best_known_and_nothing_found_is_infinite(section: Section) -> None:
    assert [agent.label for agent in section.agents] == ["a", "b", "c"]
    np.testing.assert_array_equal(section.ratios[0], [[1.0, 1.1]] * 6)
    np.testing.assert_array_equal(section.ratios[1], [[1.2]] * 6)
    np.testing.assert_array_equal(section.ratios[2], [[1.05, 1.15]] * 5 + [[np.inf, np.inf]])


def test_means_shares_and_counts_by_hand(section: Section) -> None:
    found = agents(document(section))
    # a: twelve runs, three are cut off at each end: three of 1.0 and three of 1.1 are left.
    assert found["a"]["interquartile_mean"]["estimate"] == pytest.approx(1.05)
    # c: of 1.05 x 5, 1.15 x 5 and two infinite ones, two of 1.05 and four of 1.15 are left.
    assert found["c"]["interquartile_mean"]["estimate"] == pytest.approx((2 * 1.05 + 4 * 1.15) / 6)
    assert found["b"]["interquartile_mean"] == {"estimate": 1.2, "low": 1.2, "high": 1.2, "clusters": 6}
    # Over the five problems that all solve.
    assert found["a"]["geometric_mean"] == pytest.approx(math.sqrt(1.1))
    assert found["c"]["geometric_mean"] == pytest.approx(math.sqrt(1.05 * 1.15))
    assert [found[a]["feasible"] for a in "abc"] == [1, 1, 10 / 12]
    assert [found[a]["close"] for a in "abc"] == [0.5, 0, 0]
    assert [found[a]["failed"] for a in "abc"] == [0, 0, 1]
    assert [found[a]["deterministic"] for a in "abc"] == [False, True, False]
    assert [found[a]["evaluations"] for a in "abc"] == [10, 1, 10]
    numbers = document(section)
    assert (numbers["problems"], numbers["clusters"], numbers["solved_by_all"]) == (6, 6, 5)


def test_overlapping_seeds_are_a_tie_and_others_are_not(section: Section) -> None:
    # a has 100 .. 110 and c 105 .. 115: tied; b has 120. On p5 only a and b have a solution.
    assert [rank.ties for rank in ranking(section)] == [(0, 2)] * 5 + [(0,)]
    numbers = document(section)
    assert [row["tied"] for row in numbers["rows"]] == [["a", "c"]] * 5 + [[]]
    assert [row["winner"] for row in numbers["rows"]] == [None] * 5 + ["a"]
    found = agents(numbers)
    assert [(found[a]["wins"], found[a]["ties"]) for a in "abc"] == [(1, 5), (0, 0), (0, 5)]
    assert numbers["rows"][0]["median"] == {"a": 105.0, "b": 120.0, "c": 110.0}


def test_equal_values_without_noise_are_a_tie_and_nobody_may_win(tmp_path: Path) -> None:
    rows = [result("p", name, 100.0, deterministic=True) for name in ("a", "b")]
    rows += [result("q", name, None, deterministic=True) for name in ("a", "b")]
    [found] = read_sections([write(tmp_path / "made", rows)])
    assert [rank.ties for rank in ranking(found)] == [(0, 1), ()]
    assert document(found)["rows"][1]["winner"] is None
    assert document(found)["rows"][1]["tied"] == []


def test_how_often_one_is_better_by_hand(section: Section) -> None:
    pairs = {(pair["first"], pair["second"]): pair["first_is_better"] for pair in document(section)["pairs"]}
    # Of 100, 110 against 105, 115 three pairs of four, on five problems; on the last one a always is.
    assert pairs["a", "c"]["estimate"] == pytest.approx((5 * 0.75 + 1) / 6)
    assert pairs["a", "b"] == {"estimate": 1, "low": 1, "high": 1, "clusters": 6}
    assert pairs["b", "c"]["estimate"] == pytest.approx(1 / 6)


def test_profile_by_hand(section: Section) -> None:
    profile = document(section)["profile"]
    factor, share = np.array(profile["factor"]), {a: np.array(profile["share"][a]) for a in "abc"}
    assert (factor[0], factor[-1]) == (1, pytest.approx(1.2))
    np.testing.assert_array_equal(share["a"], np.where(factor >= 1.1, 1, 0.5))
    assert share["c"][-1] == pytest.approx(10 / 12)
    assert share["b"][-2] == 0


def test_few_families_have_no_interval(tmp_path: Path) -> None:
    rows = [row | {"twins": f"family {int(row['row'][1]) % 4}"} for row in made()]
    [found] = read_sections([write(tmp_path / "made", rows)])
    numbers = document(found)
    assert numbers["clusters"] == 4
    assert {agent["interquartile_mean"]["low"] for agent in numbers["agents"]} == {None}
    assert {pair["first_is_better"]["high"] for pair in numbers["pairs"]} == {None}


def test_without_a_best_known_value_the_best_here_takes_its_place(tmp_path: Path) -> None:
    rows = [result("p", "a", 80.0, best_known=None), result("p", "b", 160.0, best_known=None)]
    rows += [result("q", "a", 80.0), result("q", "b", 160.0)]
    [found] = read_sections([write(tmp_path / "made", rows)])
    np.testing.assert_array_equal(found.best, [80, 100])
    np.testing.assert_array_equal(found.ratios[0], [[1.0], [0.8]])
    assert document(found)["without_best_known"] == 1


def test_of_nothing_only_nothing_is_a_multiple() -> None:
    found = Section.ratio(np.array([0.0, 5.0, np.inf]), np.array([0.0, 0.0, 0.0]))
    np.testing.assert_array_equal(found, [1, np.inf, np.inf])


def test_anytime_curves_by_hand(tmp_path: Path) -> None:
    rows = [result(problem, "a", 100.0, seed) for problem in ("p", "q", "r") for seed in (0, 1, 2)]
    points = []
    for row in rows:
        # p: 400 at once, and 200 from the fourth evaluation on with one of three seeds, 100 at the end;
        # q: 300 from the second on; r: nothing before the tenth.
        curve: list[Any] = {
            "p": [(1, 0.1, 400.0), *([(4, 0.2, 200.0)] if row["seed"] == 0 else []), (10, 0.5, 100.0)],
            "q": [(2, 0.1, 300.0), (10, 0.5, 100.0)],
            "r": [(10, 0.5, 100.0)],
        }[row["row"]]
        points.append((row, curve))
    [found] = read_sections([write(tmp_path / "made", rows, points)])
    [curve] = anytime_curves(found, "evaluations")
    at = {int(spent): curve.ratio[:, i].tolist() for i, spent in enumerate(curve.spent)}
    assert min(at) == 1
    assert max(at) == 10
    inf = np.inf
    assert at[1] == [4, inf, inf]  # quartiles of 4, nothing, nothing
    assert at[2] == [3, 4, inf]  # of 3, 4, nothing
    assert at[4] == [3, 4, inf]  # one seed of three does not move a median
    assert at[10] == [1, 1, 1]
    [seconds] = anytime_curves(found, "seconds")
    assert seconds.spent[0] == pytest.approx(0.1)
    assert seconds.ratio[:, -1].tolist() == [1, 1, 1]


def test_the_pareto_front_by_hand() -> None:
    points = np.array([[1.0, 9.0], [2.0, 5.0], [2.0, 5.0], [2.0, 7.0], [3.0, 5.0], [4.0, 1.0], [9.0, 1.0]])
    np.testing.assert_array_equal(pareto_front(points), [[1, 9], [2, 5], [4, 1]])
    assert pareto_front(np.empty((0, 2))).shape == (0, 2)


# --- What is joined -----------------------------------------------------------------------------------------


def test_folders_are_joined_over_the_problems_that_all_agents_ran_on(tmp_path: Path) -> None:
    rows = made()
    one = write(tmp_path / "one", [row for row in rows if row["agent"] != "c"])
    two = write(tmp_path / "two", [row for row in rows if row["agent"] == "c" and row["row"] != "p0"])
    [joined] = read_sections([one, two, two])
    assert [problem.name for problem in joined.problems] == PROBLEMS[1:]
    assert joined.left_out == 1
    assert [agent.label for agent in joined.agents] == ["a", "b", "c"]


def test_seeds_that_not_all_problems_have_are_left_out(tmp_path: Path) -> None:
    rows = [result("p", "a", 100.0 + seed, seed) for seed in (0, 1, 2)]
    rows += [result("q", "a", 100.0 + seed, seed) for seed in (1, 2, 3)]
    rows.append(result("r", "a", 110.0, 0, deterministic=True))
    [found] = read_sections([write(tmp_path / "made", rows)])
    assert found.agents[0].seeds == (1, 2)
    assert not found.agents[0].deterministic
    np.testing.assert_array_equal(found.values[0], [[101, 102], [101, 102], [110, 110]])


def test_what_may_not_be_averaged_has_sections_of_its_own(tmp_path: Path) -> None:
    rows = [
        result("p", "a", 100.0),
        result("p", "a", 100.0, budget=20),
        result("p", "a", 100.0, suite="other"),
        result("s", "a", 100.0, graph="synthetic/er?n=30"),
        result("t", "a", 100.0, objective="step_time"),
        result("p", "a", 100.0, seconds_limit=60.0),
        result("p", "b", 100.0, seconds_limit=1.5),
    ]
    found = read_sections([write(tmp_path / "made", rows)])
    assert [(s.suite, s.population, s.objective, s.budget, s.seconds_limit) for s in found] == [
        ("made", "real", "peak_memory", 10, None),
        ("made", "real", "peak_memory", 20, None),
        ("other", "real", "peak_memory", 10, None),
        ("made", "synthetic", "peak_memory", 10, None),
        ("made", "real", "step_time", 10, None),
        ("made", "real", "peak_memory", 10, 60.0),
        ("made", "real", "peak_memory", 10, 1.5),
    ]
    documents = [document(section) for section in found]
    assert [numbers["seconds_limit"] for numbers in documents] == [None] * 5 + [60.0, 1.5]
    heads = [line for line in page_of(documents, [PICTURES] * 7, []).splitlines() if line.startswith("## ")]
    assert heads[0] == "## made: peak\\_memory, real graphs, 10 evaluations"
    assert heads[5:] == [
        "## made: peak\\_memory, real graphs, 10 evaluations, at most 60 s each run",
        "## made: peak\\_memory, real graphs, 10 evaluations, at most 1.5 s each run",
    ]


def test_curves_of_runs_with_a_limit_of_time_are_their_own(tmp_path: Path) -> None:
    rows = [result("p", "a", 100.0), result("p", "a", 100.0, seconds_limit=60.0)]
    points = [(rows[0], [(1, 0.1, 200.0), (5, 0.3, 100.0)]), (rows[1], [(2, 0.1, 100.0)])]
    found = read_sections([write(tmp_path / "made", rows, points)])
    assert [section.curves[0][0][0] for section in found] == [
        [(1, 0.1, 200.0), (5, 0.3, 100.0)],
        [(2, 0.1, 100.0)],
    ]


def test_agents_of_one_name_and_other_options_are_told_apart(tmp_path: Path) -> None:
    rows = [result("p", "a", 100.0, options=digest) for digest in ("aaaa11112222", "bbbb11112222")]
    [found] = read_sections([write(tmp_path / "made", rows)])
    assert [agent.label for agent in found.agents] == ["a (aaaa)", "a (bbbb)"]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "no results"),
        ([result("p", "a", 1.0), result("q", "b", 1.0)], "no problem that all of 2 agents ran on"),
        ([result("p", "a", 1.0, 0), result("q", "a", 1.0, 1)], "no seed that it ran on every problem"),
        ([result("p", "a", 1.0), result("p", "b", 1.0, unit="ns")], "several units"),
        ([result("p", "a", 1.0), result("p", "b", 1.0, twins="x")], "several groups of twins"),
        ([result("p", "a", 1.0, unit="parsecs")], "ok without a value"),
        ([result("p", "a", None, verdict="ok")], "ok without a value"),
        ([result("p", "a", 1.0, verdict="failed")], "is failed, and has a value"),
        ([result("p", "a", 1.0), result("p", "a", 2.0)], "has another value"),
        ([result("p", f"agent {i}", 1.0) for i in range(41)], "41 agents; at most 40"),
        ([result("p", "a", 1.0, i) for i in range(101)], "101 seeds; at most 100"),
        ([result("p", "a", 1.0, budget=i) for i in range(51)], "at most 50 are compared"),
    ],
)
def test_results_that_cannot_be_compared(tmp_path: Path, rows: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(InvalidDatasetError, match=message):
        read_sections([write(tmp_path / "made", rows)])


def test_a_run_has_one_result_in_all_folders(tmp_path: Path) -> None:
    one, two = (write(tmp_path / name, [result("p", "a", value)]) for name, value in (("x", 1.0), ("y", 2.0)))
    with pytest.raises(InvalidDatasetError, match="has another value than in another folder"):
        read_sections([one, two])
