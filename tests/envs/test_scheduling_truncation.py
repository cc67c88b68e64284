"""What slots hide from a policy: how it is measured, and that the manual says what is measured."""

import inspect

import numpy as np
import pytest

from opgym import datasets
from opgym._core import PartialOrder
from opgym.envs import OpSchedulingEnv
from opgym.envs.scheduling.layout import build_layout
from opgym.envs.scheduling.truncation import RULES, Truncation, follow, make_order, searched_order, table_row
from opgym.problems import Order, SchedulingProblem

from .instances import SHAPES
from .naive_order import greedy_order


def start_of(problem: SchedulingProblem) -> PartialOrder:
    return build_layout(problem).start()


@pytest.mark.parametrize("name", ["synthetic/ba?seed=1", "synthetic/ws?seed=2", "example/rnn-train"])
def test_orders_are_what_they_are_called(name: str) -> None:
    problem = SchedulingProblem(datasets.load(name))
    start = start_of(problem)
    orders = {rule: make_order(start, choose) for rule, choose in RULES.items()}
    by_op = {rule: problem.ops[order.order].tolist() for rule, order in orders.items()}
    assert by_op["program order"] == problem.ops.tolist()
    assert by_op["greedy"] == greedy_order(problem.graph)
    for rule, order in orders.items():
        assert order.peak_bytes == problem.evaluate(Order(np.array(by_op[rule]))).value
    searched = searched_order(problem, start, list(orders.values()))
    outcome = problem.evaluate(Order(problem.ops[searched.order]))
    assert outcome.value == searched.peak_bytes
    assert outcome.value < min(order.peak_bytes for order in orders.values())


def test_depth_first_follows_a_branch_to_its_end() -> None:
    problem = SchedulingProblem(SHAPES["disconnected"]())  # 0 -> 1, 2 -> 3
    assert list(make_order(start_of(problem), RULES["depth first"]).order) == [0, 1, 2, 3]


def test_enough_slots_hide_nothing() -> None:
    problem = SchedulingProblem(datasets.load("synthetic/ba?seed=1"))
    start = start_of(problem)
    for choose in RULES.values():
        order = make_order(start, choose)
        assert follow(start, order, len(problem.ops)) == Truncation(0.0, 1.0)
    for rule in ("program order", "greedy"):  # those fit through two
        assert follow(start, make_order(start, RULES[rule]), 2) == Truncation(0.0, 1.0)


def test_one_slot_leaves_only_the_greedy_order() -> None:
    problem = SchedulingProblem(datasets.load("synthetic/ws?seed=2"))
    start = start_of(problem)
    program, greedy = make_order(start, RULES["program order"]), make_order(start, RULES["greedy"])
    followed = follow(start, program, 1)
    assert followed.left > 0
    assert followed.ratio == greedy.peak_bytes / program.peak_bytes


@pytest.mark.parametrize("family", ["ba", "ws"])
def test_the_manual_says_what_is_measured(family: str) -> None:
    row = table_row(family, [f"synthetic/{family}?seed={seed}" for seed in range(20)], slots=16)
    assert row in (inspect.getdoc(OpSchedulingEnv) or "")
