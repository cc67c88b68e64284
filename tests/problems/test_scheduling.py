"""The scheduling problem: verdicts, values by hand, the checker, files."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opgym.errors import InvalidProblemError, InvalidSolutionError
from opgym.graphs import VARIABLE, Graph, GraphBuilder
from opgym.outcome import Outcome, Verdict
from opgym.problems import Order, SchedulingProblem
from opgym.problems.checker import check
from opgym.problems.plain_order import plain_order_memory
from opgym.problems.solution_file import load, save

from ..reference.strategies import graphs, orders


def training_step() -> Graph:
    """A weight, a forward and a backward op that reads what the forward one left, and an update."""
    b = GraphBuilder("test", name="step")
    x = b.tensor(bytes=1000, role="input", name="x")
    weight = b.tensor(bytes=500, role="parameter", name="w")
    saved, loss = b.tensor(bytes=40), b.tensor(bytes=4, is_output=True)
    gradient, updated = b.tensor(bytes=500), b.tensor(bytes=500)
    variable = b.op(VARIABLE, outputs=[weight], name="w")
    b.op("forward", inputs=[x, weight], outputs=[saved, loss], workspace_bytes=7, name="forward")
    b.op("backward", inputs=[saved, weight], outputs=[gradient], name="backward")
    b.op("update", inputs=[gradient], outputs=[updated], update_of=variable, name="update")
    return b.build()


def two_branches(*, in_place: bool = False) -> Graph:
    """``root`` writes 1 byte; ``grow`` 10 and 20, ``reduce`` 2 and 3; ``join`` writes 1."""
    b = GraphBuilder("test", in_place=in_place)
    root = b.tensor(bytes=1)
    large, small = [b.tensor(bytes=10), b.tensor(bytes=20)], [b.tensor(bytes=2), b.tensor(bytes=3)]
    b.op("root", outputs=[root])
    for i in range(2):
        b.op("grow", inputs=[root], outputs=[large[i]])
        b.op("reduce", inputs=[large[i]], outputs=[small[i]])
    b.op("join", inputs=small, outputs=[b.tensor(bytes=1)])
    return b.build()


def test_the_value_is_the_dynamic_peak_and_resident_bytes_are_apart():
    problem = SchedulingProblem(training_step())
    assert problem.ops.tolist() == [1, 2, 3]
    outcome = problem.evaluate(Order(problem.ops))
    # backward: saved 40, loss 4, gradient 500
    assert (outcome.value, outcome.unit, outcome.verdict) == (544.0, "bytes", Verdict.OK)
    assert outcome.details == {"peak_bytes": [544 + 1500], "resident_bytes": [1500]}
    assert problem.reference_bytes == 544


def test_the_order_decides():
    problem = SchedulingProblem(two_branches())
    peaks = {
        tuple(order): problem.evaluate(Order(np.array(order))).value
        for order in ([0, 1, 2, 3, 4, 5], [0, 3, 4, 1, 2, 5], [0, 1, 3, 2, 4, 5])
    }
    # The second growth beside what is left of the first branch; or both large tensors at once.
    assert list(peaks.values()) == [2 + 20 + 3, 1 + 20 + 3, 10 + 20 + 2]
    assert problem.lower_bound().value == 20 + 3  # reduce, wherever it runs


@pytest.mark.parametrize(
    ("order", "verdict", "reason"),
    [
        ([0, 1, 2, 3, 4], Verdict.WRONG_LENGTH, "shape (5,); expected (6,)"),
        ([[0, 1, 2], [3, 4, 5]], Verdict.WRONG_LENGTH, "shape (2, 3)"),
        ([0, 2, 1, 3, 4, 5], Verdict.ILLEGAL_ORDER, "op 2 runs before op 1"),
        ([0, 1, 1, 3, 4, 5], Verdict.ILLEGAL_ORDER, "op 2 is missing"),
        ([0, 1, 2, 3, 4, 6], Verdict.ILLEGAL_ORDER, "op 5 is missing"),
        ([-1, 1, 2, 3, 4, 5], Verdict.ILLEGAL_ORDER, "op 0 is missing"),
        ([0.0, 1, 2, 3, 4, 5], Verdict.ILLEGAL_ORDER, "dtype float64"),
    ],
)
def test_an_illegal_order_has_a_verdict_and_no_value(order, verdict, reason):
    problem = SchedulingProblem(two_branches())
    outcome = problem.evaluate(Order(np.array(order)))
    assert (outcome.value, outcome.verdict) == (float("inf"), verdict)
    assert reason in outcome.details["reason"]
    checked = check(problem, Order(np.array(order)))
    assert (checked.value, checked.verdict) == (outcome.value, outcome.verdict)


def test_variables_are_not_ordered():
    problem = SchedulingProblem(training_step())
    for order in ([0, 1, 2, 3], [1, 2, 0]):
        assert not problem.evaluate(Order(np.array(order))).ok
        assert not check(problem, Order(np.array(order))).ok


def test_a_graph_of_variables_alone_has_nothing_to_order():
    b = GraphBuilder("test", name="weights")
    b.op(VARIABLE, outputs=[b.tensor(bytes=5)])
    with pytest.raises(InvalidProblemError, match="'weights' has only variables"):
        SchedulingProblem(b.build())


def test_an_op_may_write_over_an_input_of_the_same_size():
    b = GraphBuilder("test", in_place=True)
    x, y, z = b.tensor(bytes=8), b.tensor(bytes=8), b.tensor(bytes=8)
    b.op("a", outputs=[x])
    b.op("b", inputs=[x], outputs=[y], elementwise=True)
    b.op("c", inputs=[x], outputs=[z], elementwise=True)
    problem = SchedulingProblem(b.build())
    # b must leave x to c, or c to b; the last reader of x writes over it.
    assert plain_order_memory(problem.graph, [0, 1, 2]) == [8, 16, 8]
    assert problem.evaluate(Order(problem.ops)).value == 16


@st.composite
def problems_with_orders(draw):
    """A random graph and a legal order of it."""
    graph = draw(graphs().filter(lambda graph: not graph.is_variable.all()))
    order = draw(orders(graph))
    return SchedulingProblem(graph), Order(order[~graph.is_variable[order]])


@settings(max_examples=200, deadline=None)
@given(problems_with_orders())
def test_the_checker_says_the_same_as_the_evaluation(instance):
    problem, order = instance
    assert check(problem, order) == problem.evaluate(order)


@settings(max_examples=100, deadline=None)
@given(problems_with_orders(), st.data())
def test_the_checker_says_the_same_of_damaged_orders(instance, data):
    problem, order = instance
    places = st.integers(0, len(order.op) - 1)
    damaged = order.op.copy()
    damaged[data.draw(places)] = data.draw(st.integers(-1, problem.graph.num_ops))
    i, j = data.draw(places), data.draw(places)
    damaged[[i, j]] = damaged[[j, i]]
    expected, checked = problem.evaluate(Order(damaged)), check(problem, Order(damaged))
    assert (checked.value, checked.verdict) == (expected.value, expected.verdict)


def test_round_trip_of_a_file(tmp_path):
    problem = SchedulingProblem(two_branches())
    order = Order(np.array([0, 3, 4, 1, 2, 5]))
    path = tmp_path / "order.json"
    save(path, problem, order, problem.evaluate(order))
    assert load(path, problem).op.tolist() == order.op.tolist()
    document = json.loads(path.read_text())
    assert document["format"] == "opgym.order"
    assert document["claim"] == {"value": 24.0, "unit": "bytes", "verdict": "ok"}
    save(path, problem, order)
    assert json.loads(path.read_text())["claim"] is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 2}, "is version 2 of opgym.order; this opgym reads version 1"),
        ({"format": "opgym.placement"}, "has format 'opgym.placement'; expected 'opgym.order'"),
        ({"graph": {"fingerprint": "0" * 64, "name": ""}}, "orders the graph with fingerprint 000000000000"),
        ({"order": [0, 1.5]}, r"has order\[1\] = 1.5; expected a whole number"),
        ({"order": [True]}, r"has order\[0\] = True"),
        ({"order": "0 1 2"}, "has order = text; expected a list"),
        ({"device": [0]}, "has unknown keys 'device'"),
        ({"claim": {"value": 1, "unit": "bytes", "verdict": "fine"}}, "has verdict 'fine'"),
    ],
)
def test_a_wrong_file_is_refused_and_named(tmp_path, change, message):
    problem = SchedulingProblem(two_branches())
    path = tmp_path / "order.json"
    save(path, problem, Order(problem.ops))
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(InvalidSolutionError, match=message) as caught:
        load(path, problem)
    assert str(path) in str(caught.value)


def test_an_illegal_order_in_a_file_is_for_the_evaluation_to_judge(tmp_path):
    problem = SchedulingProblem(two_branches())
    save(tmp_path / "order.json", problem, Order(np.array([5, 4, 3, 2, 1, 0])))
    outcome = problem.evaluate(load(tmp_path / "order.json", problem))
    assert isinstance(outcome, Outcome)
    assert outcome.verdict is Verdict.ILLEGAL_ORDER
