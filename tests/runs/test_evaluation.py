"""Comparisons: equal budgets, judged results, failures that cost no other run its result, and two tables."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from opgym import datasets
from opgym.agents import Result, make, registry
from opgym.agents.solver import Remark, SchedulingSolver
from opgym.errors import InvalidProblemError
from opgym.problems import Budget, Order, SchedulingProblem
from opgym.runs.evaluate.cases import Case, cases_of_graphs, cases_of_suite
from opgym.runs.evaluate.contestants import contestants
from opgym.runs.evaluate.evaluation import ROWS, Comparison, evaluate
from opgym.runs.evaluate.measuring import measure
from opgym.runs.evaluate.result_tables import CURVES, RESULTS, read_table

GRAPHS = ["synthetic/er?n=30&seed=3", "synthetic/ws?n=30&seed=4"]
AGENTS = ["bfs", "random-order", "order-annealing"]
ORDERS = cases_of_graphs(GRAPHS)


def small(
    agents: list[Any] = AGENTS, cases: list[Case] = ORDERS, seeds: tuple[int, ...] = (0, 1)
) -> Comparison:
    return Comparison(cases, contestants(agents), 40, seeds)


def timeless(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: value for key, value in row.items() if key != "seconds"} for row in rows]


# --- What a row holds ---------------------------------------------------------------------------------------


def test_rows_hold_what_the_agents_found() -> None:
    found = evaluate(small())
    assert not found.failed
    assert [(row["agent"], row["seed"]) for row in found.results[:5]] == [
        ("bfs", 0), ("random-order", 0), ("random-order", 1), ("order-annealing", 0), ("order-annealing", 1),
    ]  # fmt: skip
    assert len(found.results) == 10
    for row in found.results:
        problem = SchedulingProblem(datasets.load(row["graph"]))
        result = make(row["agent"]).solve(problem, Budget(40), np.random.default_rng(row["seed"]))
        assert row["value"] == result.outcome.value
        assert row["evaluations"] == result.evaluations
        assert row["reference"] == problem.reference_bytes
        assert row["bound"] == problem.lower_bound().value
        assert row["ratio_to_reference"] == row["value"] / problem.reference_bytes
        assert row["ratio_to_bound"] == row["value"] / row["bound"] >= 1
        assert row["best_known"] is row["ratio_to_best_known"] is row["step_time_ns"] is None
        assert row["peak_bytes"] == row["value"] + problem.resident_bytes
        assert (row["unit"], row["verdict"], row["error"]) == ("bytes", "ok", "")
        assert row["deterministic"] == (row["agent"] == "bfs")
        assert row["family"] == row["graph"][10:12]
        assert row["twins"] == row["graph"]


def test_placements_of_a_suite_are_compared_with_its_reference_lines() -> None:
    case = cases_of_suite("gdp", rows=[0])[0]
    row = measure(*Comparison([case], contestants(["single"]), 5, [7]).first_runs())["result"]
    line = datasets.reference.lines("gdp")[case.row.name]
    assert line.best is not None
    assert (row["bound"], row["best_known"]) == (line.bound, line.best.value)
    assert row["ratio_to_best_known"] == row["value"] / line.best.value > 1
    # All work on the fastest single device is what the reference is.
    assert row["ratio_to_reference"] == 1
    assert row["value"] == row["step_time_ns"]
    assert (row["suite"], row["cluster"], row["objective"]) == ("gdp", "2xP100", "step_time")
    assert (row["family"], row["seed"], row["budget"]) == ("rnnlm", 7, 5)


def test_an_infeasible_result_has_a_value_and_no_ratio() -> None:
    [case] = cases_of_graphs(["example/rnn-train"], "2xP100", "step_time", 260_000_000)
    row = measure(*Comparison([case], contestants(["single"]), 5, [0]).first_runs())
    result = row["result"]
    assert result["verdict"] == "out_of_memory"
    assert result["value"] > 0
    assert result["peak_bytes"] > 260_000_000
    assert result["ratio_to_bound"] is result["ratio_to_reference"] is None
    assert row["curve"] == []


# --- Parallel, stored, taken up -----------------------------------------------------------------------------


def test_one_worker_and_two_write_the_same(tmp_path: Path) -> None:
    tables = []
    for workers in (1, 2):
        folder = tmp_path / str(workers)
        folder.mkdir()
        evaluate(small(), folder, workers)
        tables.append([pq.read_table(folder / name).drop(["seconds"]) for name in (RESULTS, CURVES)])
    for one, two in zip(*tables, strict=True):
        assert one.equals(two, check_metadata=True)
    assert tables[0][0].num_rows == 10
    assert tables[0][1].num_rows > 10


def test_what_is_stored_is_not_run_again(tmp_path: Path) -> None:
    first = evaluate(small(), tmp_path)
    rows = (tmp_path / ROWS).read_bytes()
    told: list[tuple[int, int, str]] = []
    again = evaluate(small(), tmp_path, progress=lambda *what: told.append(what))
    assert again.results == first.results
    assert told == [(10, 10, "")]
    assert (tmp_path / ROWS).read_bytes() == rows


def test_a_run_that_was_cut_off_goes_on(tmp_path: Path) -> None:
    whole = evaluate(small(), tmp_path)
    lines = (tmp_path / ROWS).read_bytes().splitlines(keepends=True)
    (tmp_path / ROWS).write_bytes(b"".join(lines[:4]) + lines[4][:20])
    told: list[int] = []
    again = evaluate(small(), tmp_path, progress=lambda done, total, name: told.append(done))
    assert timeless(again.results) == timeless(whole.results)
    assert told[0] == 4
    assert told[-1] == 10


def test_rows_of_other_columns_are_run_again(tmp_path: Path) -> None:
    whole = evaluate(small(), tmp_path)
    lines = [json.loads(line) for line in (tmp_path / ROWS).read_text().splitlines()]
    del lines[0]["result"]["unit"]
    lines[1]["result"]["more"] = 1
    (tmp_path / ROWS).write_text("".join(json.dumps(line) + "\n" for line in [*lines, {"other": 1}]))
    assert timeless(evaluate(small(), tmp_path).results) == timeless(whole.results)


def test_other_budgets_seeds_and_options_are_other_runs(tmp_path: Path) -> None:
    evaluate(small(), tmp_path)
    base = small()
    for other in (
        replace(base, budget=41),
        replace(base, seconds=100.0),
        replace(base, seeds=(5,)),
        small([{"solver": "order-annealing", "options": {"temperature": 0.5}}]),
    ):
        told: list[int] = []
        evaluate(other, tmp_path, progress=lambda done, total, name, told=told: told.append(done))
        assert told[0] == 0


def test_tables_say_what_limit_of_time_there_was(tmp_path: Path) -> None:
    found = evaluate(replace(small(["bfs"]), seconds=100), tmp_path)
    assert {row["seconds_limit"] for row in found.results} == {100.0}
    for name in (RESULTS, CURVES):
        assert set(read_table(tmp_path, name)["seconds_limit"]) == {100.0}
    assert {row["seconds_limit"] for row in evaluate(small(["bfs"])).results} == {None}


def test_progress_counts_what_is_left() -> None:
    told: list[tuple[int, int]] = []
    evaluate(small(), progress=lambda done, total, name: told.append((done, total)))
    assert told[0] == (0, 12)  # three agents on two problems with two seeds each
    assert told[-1] == (10, 10)  # one of the agents draws nothing
    assert [done for done, _ in told] == list(range(11))


# --- Agents that break or lie -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Broken(SchedulingSolver):
    """Does what its option says on the second problem, and well on the others."""

    name = "broken"
    summary = "breaks"
    how: str = "raises"

    def solve(self, problem: SchedulingProblem, *args: Any) -> Result[Order]:
        if self.how == "cannot" and not problem.graph.name.startswith("synthetic/er"):
            raise InvalidProblemError("too large")
        result = super().solve(problem, *args)
        if problem.graph.name.startswith("synthetic/er"):
            return result
        if self.how == "raises":
            raise RuntimeError("a | tensor\nis lost")
        if self.how == "exits":
            sys.exit(0)
        if self.how == "gives up":
            raise InvalidProblemError("lost its way")
        if self.how == "lies":
            return replace(result, outcome=replace(result.outcome, value=result.outcome.value - 1))
        if self.how == "overspends":
            return replace(result, evaluations=41)
        if self.how == "boasts":
            return replace(result, curve=(replace(result.curve[-1], value=1.0),))
        assert self.how == "spoils"
        return replace(result, solution=Order(result.solution.op[::-1]))

    def _search(self, problem: Any, evaluator: Any, rng: np.random.Generator) -> Remark | None:
        evaluator.evaluate(Order(problem.ops))
        return None


@pytest.fixture
def broken() -> Iterator[None]:
    registry.register(Broken)
    yield
    del registry._registry["broken"]


@pytest.mark.usefixtures("broken")
@pytest.mark.parametrize(
    ("how", "error"),
    [
        ("raises", "RuntimeError: a | tensor is lost"),
        ("exits", "SystemExit: 0"),
        ("gives up", "InvalidProblemError: lost its way"),
        ("lies", "MisreportedError: the agent says .* and evaluation of its solution"),
        (
            "spoils",
            r"MisreportedError: the agent says .* \(ok\), and evaluation of its solution inf .*illegal_order",
        ),
        ("overspends", "MisreportedError: the agent says that it spent 41 evaluations of 40"),
        ("boasts", "MisreportedError: the curve of the agent does not descend to the value"),
    ],
)
def test_an_agent_that_breaks_is_seen_at_once_and_costs_no_other_its_result(
    tmp_path: Path, how: str, error: str
) -> None:
    agents = ["bfs", {"solver": "broken", "options": {"how": how}}]
    said: list[str] = []
    found = evaluate(small(agents), tmp_path, complain=said.append)
    assert [row["verdict"] for row in found.results] == ["ok", "ok", "ok", "failed", "failed"]
    assert [(row["agent"], row["seed"]) for row in found.failed] == [("broken", 0), ("broken", 1)]
    for failed in found.failed:
        assert failed["value"] is failed["evaluations"] is failed["ratio_to_reference"] is None
        assert re.match(error, failed["error"])
    assert said == [f"broken on {row['row']}, seed {row['seed']}: {row['error']}" for row in found.failed]
    assert read_table(tmp_path, RESULTS)["verdict"] == ["ok", "ok", "ok", "failed", "failed"]

    stored = (tmp_path / ROWS).read_text().splitlines()
    assert len(stored) == 5
    assert "Traceback" in json.loads(stored[-1])["trace"]
    # Only what failed is run again.
    told: list[tuple[int, int, str]] = []
    evaluate(small(agents), tmp_path, progress=lambda *what: told.append(what))
    assert told[0][:2] == (3, 5)
    assert len((tmp_path / ROWS).read_text().splitlines()) == 7


@pytest.mark.usefixtures("broken")
def test_an_agent_that_does_not_apply_is_no_failure() -> None:
    found = evaluate(small([{"solver": "broken", "options": {"how": "cannot"}}, "m-etf"]))
    assert not found.failed
    assert [(row["agent"], row["verdict"], row["error"]) for row in found.results] == [
        ("broken", "ok", ""),
        ("m-etf", "not_applicable", "does not solve a SchedulingProblem"),
        ("broken", "not_applicable", "too large"),
        ("m-etf", "not_applicable", "does not solve a SchedulingProblem"),
    ]


def test_a_problem_that_cannot_be_posed_fails_alone_in_other_processes_too(tmp_path: Path) -> None:
    stale = replace(ORDERS[1], row=replace(ORDERS[1].row, fingerprint="0" * 64))
    said: list[str] = []
    found = evaluate(small(["bfs", "dfs"], [stale, ORDERS[0]]), tmp_path, 2, complain=said.append)
    assert [row["verdict"] for row in found.results] == ["failed"] * 4 + ["ok", "ok"]
    assert all("has fingerprint" in row["error"] for row in found.failed)
    assert len(said) == 4
