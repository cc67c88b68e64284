"""The plain sentences under the table of orders, and the bound, on results made by hand."""

from typing import Any

import numpy as np
import pytest

from opgym.agents import Result
from opgym.cli.order_report import order_conclusions, order_table
from opgym.cli.report import ranked, tightest_bound
from opgym.graphs import GraphBuilder
from opgym.outcome import Outcome, Verdict
from opgym.problems import Order, SchedulingProblem

MIB = 2**20


@pytest.fixture
def problem() -> SchedulingProblem:
    """The program order needs 30 MiB; no order needs less than 10 by the problem's bound."""
    b = GraphBuilder("test", "stairs")
    x, y, z = (b.tensor(bytes=10 * MIB) for _ in range(3))
    for tensor in (x, y, z):
        b.op("Source", outputs=[tensor])
    for tensor in (x, y, z):
        b.op("Sink", inputs=[tensor], outputs=[])
    made = SchedulingProblem(b.build())
    assert (made.reference_bytes, made.lower_bound().value) == (30 * MIB, 10 * MIB)
    return made


def result(
    solver: str, mib: float, *, bound: float | None = None, optimal: bool = False, **outcome: Any
) -> Result[Order]:
    return Result(
        solver, Order(np.zeros(1, int)), Outcome(mib * MIB, "bytes", **outcome), 3, 0.5, (), optimal,
        bound=mib * MIB if optimal else bound if bound is None else bound * MIB,
    )  # fmt: skip


def test_the_tightest_bound_counts(problem: SchedulingProblem) -> None:
    found = [result("bfs", 20, bound=12), result("beam", 25, bound=15), result("dfs", 21)]
    bound = tightest_bound(problem, found)
    assert (bound.value, bound.name, bound.unit) == (15 * MIB, "proven by beam", "bytes")
    assert tightest_bound(problem, [result("bfs", 20, bound=9)]) == problem.lower_bound()


def test_a_bound_above_what_was_reached_is_no_bound(problem: SchedulingProblem) -> None:
    found = [result("bfs", 20), result("beam", 25, bound=21), result("dfs", 30, optimal=True)]
    assert tightest_bound(problem, found) == problem.lower_bound()


def sentences(problem: SchedulingProblem, *results: Result[Order]) -> list[str]:
    found = ranked(results)
    return order_conclusions(found, problem, tightest_bound(problem, found))


def test_search_pays_and_something_is_left(problem: SchedulingProblem) -> None:
    assert sentences(problem, result("dfs", 24), result("order-search", 15), result("random-order", 11)) == [
        "random-order needs 63.3 % less than the order of the program, 30 MiB.",
        "order-search is 37.5 % better than the best method without search, dfs.",
        "The best found is 1.10 times the lower bound (largest op footprint, 10 MiB): at most 9.1 % is left to gain.",
    ]


def test_a_rule_is_enough_and_another_solver_proves_it(problem: SchedulingProblem) -> None:
    found = sentences(problem, result("dfs", 15), result("beam", 15, optimal=True))
    assert found == [
        "dfs needs 50.0 % less than the order of the program, 30 MiB.",
        "dfs is enough: beam finds nothing better.",
        "Nothing can be better: proven by beam.",
    ]


def test_the_program_is_right_already(problem: SchedulingProblem) -> None:
    assert sentences(problem, result("program-order", 30), result("order-search", 30, bound=20)) == [
        "The order of the program is as good as any that was found.",
        "The best found is 1.50 times the lower bound (proven by order-search, 20 MiB): "
        "at most 33.3 % is left to gain.",
    ]


def test_the_bound_of_the_problem_is_met(problem: SchedulingProblem) -> None:
    assert sentences(problem, result("dfs", 10))[-1] == (
        "Nothing can be better: the peak is the lower bound (largest op footprint)."
    )


def test_nothing_legal(problem: SchedulingProblem) -> None:
    broken = result("dfs", float("inf"), verdict=Verdict.ILLEGAL_ORDER)
    assert sentences(problem, broken) == ["No order found is legal: the closest, dfs, is illegal_order."]


def test_rows_say_what_is_proven(problem: SchedulingProblem) -> None:
    found = ranked([
        result("beam", 15, optimal=True), result("dfs", 15), result("bfs", 18, bound=14), result("post-order", 20),
        result("sethi-ullman", float("inf"), verdict=Verdict.ILLEGAL_ORDER),
    ])  # fmt: skip
    table = order_table(found, problem, tightest_bound(problem, found))
    columns = {str(column.header): list(column.cells) for column in table.columns}
    assert columns["verdict"] == ["ok, optimal", "ok, optimal", "ok, at least 14 MiB", "ok", "illegal_order"]
    assert columns["peak"] == ["15.000 MiB", "15.000 MiB", "18.000 MiB", "20.000 MiB", "-"]
    assert columns["x program order"] == ["0.500", "0.500", "0.600", "0.667", "-"]
    assert columns["x bound"][:4] == ["1.000", "1.000", "1.200", "1.333"]
    narrow = order_table(found, problem, tightest_bound(problem, found), narrow=True)
    assert [str(column.header) for column in narrow.columns] == [
        "solver",
        "peak",
        "x bound",
        "verdict",
        "seconds",
    ]
