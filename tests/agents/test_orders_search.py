"""Searches over orders: optimal on small graphs, exact budgets, the same course for the same seed."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings

from opgym import _core, agents, datasets
from opgym.errors import InvalidProblemError
from opgym.graphs import Graph, GraphBuilder
from opgym.graphs.core_graph import core_graph
from opgym.graphs.order_peak import peak_of_order
from opgym.problems import Budget, Order, SchedulingProblem
from opgym.problems.checker import check

from ..problems.exhaustive_orders import least_peak
from ..reference.strategies import graphs

ANYTIME = ["random-order", "key-search", "order-search", "order-annealing"]
SEARCHES = [*ANYTIME, "beam"]


@pytest.fixture(scope="module")
def synthetic() -> SchedulingProblem:
    """An Erdos-Renyi graph of 100 ops; its bound is far below what any order needs."""
    return SchedulingProblem(datasets.load("synthetic/er?n=100&seed=2"))


def chain(ops: int) -> Graph:
    b = GraphBuilder("test")
    x = b.tensor(bytes=5)
    b.op("op", outputs=[x])
    for i in range(ops - 1):
        y = b.tensor(bytes=7 + i % 3)
        b.op("op", inputs=[x], outputs=[y])
        x = y
    return b.build()


def test_all_are_known_by_name():
    known = agents.names(SchedulingProblem)
    assert [name for name in known if name in SEARCHES] == [
        "random-order", "beam", "key-search", "order-search", "order-annealing"
    ]  # fmt: skip
    assert [name for name in SEARCHES if agents.make(name).anytime] == ANYTIME


@settings(max_examples=60, deadline=None)
@given(graphs(max_ops=6).filter(lambda graph: not graph.is_variable.all()))
def test_small_graphs_are_solved(graph):
    problem = SchedulingProblem(graph)
    least = least_peak(graph)
    for name in SEARCHES:
        result = agents.make(name, evaluations=400).solve(problem)
        assert result.outcome.ok
        assert check(problem, result.solution) == result.outcome
        if name == "key-search":  # keys can express every order, but a local optimum may hold it
            assert result.outcome.value >= least
        else:
            assert result.outcome.value == least, name
    assert agents.make("beam").solve(problem).proven_optimal


@pytest.mark.parametrize("name", ANYTIME)
@pytest.mark.parametrize("evaluations", [1, 2, 3, 6, 7, 300, 1111])
def test_budgets_are_spent_exactly(synthetic, name, evaluations):
    calls = []
    result = agents.make(name).solve(synthetic, Budget(evaluations=evaluations), progress=calls.append)
    assert result.evaluations == evaluations == calls[-1].evaluations
    assert not result.proven_optimal
    spent = [point.evaluations for point in result.curve]
    values = [point.value for point in result.curve]
    assert spent == sorted(spent)
    assert spent[-1] <= evaluations
    assert all(new < old for old, new in pairwise(values))
    assert values[-1] == result.outcome.value == calls[-1].best.value
    assert synthetic.evaluate(result.solution).value == result.outcome.value


@pytest.mark.parametrize("evaluations", [1, 6, 7, 50])
def test_a_beam_stops_at_its_budget(synthetic, evaluations):
    result = agents.make("beam").solve(synthetic, Budget(evaluations=evaluations))
    assert result.evaluations == evaluations
    assert result.outcome.ok


@pytest.mark.parametrize("name", SEARCHES)
def test_time_is_a_limit_too(synthetic, name):
    result = agents.make(name, evaluations=10).solve(synthetic, Budget(seconds=0.2))
    assert result.outcome.ok
    assert result.evaluations > 10  # the default holds only where the budget states nothing
    assert all(point.seconds <= result.seconds for point in result.curve)
    assert agents.make(name).solve(synthetic, Budget(seconds=0.0)).evaluations == 1


@pytest.mark.parametrize("name", ANYTIME)
def test_without_a_budget_the_default_is_spent(synthetic, name):
    assert agents.make(name, evaluations=77).solve(synthetic).evaluations == 77


@pytest.mark.parametrize("name", SEARCHES)
def test_the_course_depends_on_the_seed_alone(synthetic, name):
    def course(seed: int) -> list[tuple[int, float]]:
        result = agents.make(name).solve(synthetic, Budget(evaluations=3000), np.random.default_rng(seed))
        return [(point.evaluations, point.value) for point in result.curve]

    assert course(1) == course(1)
    assert (course(1) == course(2)) == (name == "beam")


def native_searches(problem: SchedulingProblem) -> dict[str, _core.OrderSearch]:
    graph = core_graph(problem.graph)
    starts = np.stack([problem.ops, agents.make("bfs").solve(problem).solution.op])
    return {
        "random": _core.RandomOrders(graph, 5, 0),
        "keys": _core.KeyDescent(graph, problem.ops, 5, 0),
        "descent": _core.OrderDescent(graph, problem.ops, 5, 0, 60, 7),
        "annealing": _core.OrderAnnealing(graph, starts, 5, 0, 0.02, 150),
        "beam": _core.OrderBeam(graph, problem.ops, 0, [4, 16]),
    }


@pytest.mark.parametrize("name", ["random", "keys", "descent", "annealing", "beam"])
def test_calls_go_on_where_the_last_one_ended(synthetic, name):
    """However a search is cut into calls, its improvements and its end are the same."""

    def course(calls: list[int]) -> tuple[list[tuple[int, int]], list[int], int]:
        search, before, improvements = native_searches(synthetic)[name], 0, []
        for evaluations in calls:
            spent = search.run(evaluations, math.inf)
            improvements += [(before + at, peak) for at, _, peak in search.improvements]
            before += spent
        return improvements, search.best_order.tolist(), search.best_peak

    whole = course([1000])
    assert course([1] * 20 + [130, 350, 500]) == whole
    improvements, order, peak = whole
    assert improvements[-1][1] == peak == peak_of_order(synthetic.graph, order)


def test_a_search_ends_at_its_target(synthetic):
    graph, ops = core_graph(synthetic.graph), synthetic.ops
    reached = synthetic.reference_bytes * 0.9
    search = _core.OrderDescent(graph, ops, 1, int(reached), 400, 30)
    spent = search.run(100_000, math.inf)
    assert search.over
    assert search.proven
    assert search.improvements[-1][0] == spent < 100_000
    assert search.best_peak <= reached
    assert search.run(10, math.inf) == 0


@pytest.mark.parametrize("name", SEARCHES)
def test_what_meets_the_bound_is_proven_and_ends_the_search(name):
    problem = SchedulingProblem(datasets.load("onnx-light/resnet50"))
    result = agents.make(name).solve(problem)
    assert result.proven_optimal
    assert result.outcome.value == problem.lower_bound().value
    assert result.evaluations < 2000


@pytest.mark.parametrize("name", ["order-search", "order-annealing", "beam"])
def test_a_graph_with_one_order_is_proven_at_once(name):
    """Skips over one op each: a single order, whose peak its bound does not tell."""
    b = GraphBuilder("test")
    tensors = [b.tensor(bytes=5 + i % 4) for i in range(12)]
    for i, tensor in enumerate(tensors):
        b.op("op", inputs=tensors[max(0, i - 1) : i], outputs=[tensor], workspace_bytes=i)
    order = list(range(12))
    problem = SchedulingProblem(b.build())
    graph = core_graph(problem.graph)
    search = {
        "order-search": _core.OrderDescent(graph, problem.ops, 0, 0, 10, 3),
        "order-annealing": _core.OrderAnnealing(graph, problem.ops[None], 0, 0, 0.1, 10),
        "beam": _core.OrderBeam(graph, problem.ops, 0, [1]),
    }[name]
    search.run(100, math.inf)
    assert search.proven
    assert search.best_order.tolist() == order


def test_a_long_chain_with_one_free_op_is_searched_within_its_time():
    """Nearly every draw comes to nothing; the clock is looked at all the same."""
    b = GraphBuilder("test")
    x = b.tensor(bytes=5)
    b.op("op", outputs=[x])
    for _ in range(30_000):
        y = b.tensor(bytes=5)
        b.op("op", inputs=[x], outputs=[y])
        x = y
    side = b.tensor(bytes=3)
    b.op("side", outputs=[side])
    b.op("join", inputs=[side, x], outputs=[b.tensor(bytes=1)])
    problem = SchedulingProblem(b.build())
    search = _core.OrderDescent(core_graph(problem.graph), problem.ops, 1, 0, 100, 3)
    search.run(10**9, 0.3)
    assert search.best_peak == peak_of_order(problem.graph, search.best_order)


def test_a_complete_beam_proves_and_a_narrow_one_does_not():
    problem = SchedulingProblem(datasets.load("synthetic/fork-join?n=40&seed=3"))
    narrow, wide = (
        agents.make("beam", width=1).solve(problem),
        agents.make("beam", width=100_000).solve(problem),
    )
    assert wide.proven_optimal
    assert not narrow.proven_optimal
    assert problem.lower_bound().value < wide.outcome.value <= narrow.outcome.value
    for name in ("order-search", "order-annealing"):
        assert agents.make(name).solve(problem).outcome.value == wide.outcome.value


@settings(max_examples=40, deadline=None)
@given(graphs(max_ops=14).filter(lambda graph: not graph.is_variable.all()))
def test_searches_never_beat_a_proof(graph):
    problem = SchedulingProblem(graph)
    proven = agents.make("beam", width=100_000).solve(problem)
    assert proven.proven_optimal
    for name in ANYTIME:
        assert agents.make(name, evaluations=800).solve(problem).outcome.value >= proven.outcome.value
    annealed = agents.make("order-annealing", evaluations=3000).solve(problem)
    assert annealed.outcome.value == proven.outcome.value


def test_a_beam_leaves_huge_graphs_alone():
    problem = SchedulingProblem(chain(20_001))
    assert agents.make("beam").skip_reason(problem) == "20001 ops to order; at most 20000"
    with pytest.raises(InvalidProblemError, match="solver 'beam': 20001 ops to order"):
        agents.make("beam").solve(problem)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("random-order", {"evaluations": 0}, "evaluations = 0; expected a whole number, 1 or more"),
        ("key-search", {"evaluations": 1.5}, "evaluations = 1.5; expected a whole number"),
        ("beam", {"width": 0}, "width = 0"),
        ("order-search", {"patience": 0}, "patience = 0"),
        ("order-search", {"kick": True}, "kick = True"),
        ("order-annealing", {"temperature": math.nan}, "temperature = nan; expected a finite share"),
        ("order-annealing", {"moves_per_op": 0}, "moves_per_op = 0"),
    ],
)
def test_impossible_options_are_refused(name, options, message):
    with pytest.raises(InvalidProblemError, match=message):
        agents.make(name, **options)


def test_the_core_refuses_what_is_no_start(synthetic):
    graph, ops = core_graph(synthetic.graph), synthetic.ops
    with pytest.raises(ValueError, match="starts are orders of 100 ops"):
        _core.OrderAnnealing(graph, ops[None, :50], 0, 0, 0.1, 10)
    with pytest.raises(ValueError, match="starts are orders of 100 ops"):
        _core.OrderDescent(graph, ops[:0], 0, 0, 10, 3)
    with pytest.raises(ValueError, match="before op"):
        _core.OrderDescent(graph, ops[::-1].copy(), 0, 0, 10, 3)
    with pytest.raises(ValueError, match="at least one evaluation"):
        _core.OrderAnnealing(graph, ops[None], 0, 0, 0.1, 0)
    for widths in ([], [4, 0]):
        with pytest.raises(ValueError, match="at least 1 wide"):
            _core.OrderBeam(graph, ops, 0, widths)


def test_key_search_starts_from_greedy(synthetic):
    first = agents.make("key-search").solve(synthetic, Budget(evaluations=1))
    greedy = agents.make("greedy-freed-bytes").solve(synthetic)
    assert first.solution.op.tolist() == greedy.solution.op.tolist()


def test_random_orders_are_spread_over_all_of_them():
    """Of two free ops and a chain, each order as often as its choices make it likely."""
    b = GraphBuilder("test")
    x = b.tensor(bytes=1)
    b.op("a", outputs=[x])
    b.op("b", inputs=[x], outputs=[b.tensor(bytes=1)])
    b.op("c", outputs=[b.tensor(bytes=1)])
    graph = core_graph(b.build())
    counts: dict[tuple[int, ...], int] = {}
    for seed in range(4000):
        search = _core.RandomOrders(graph, seed, 0)
        search.run(1, math.inf)
        order = tuple(search.best_order.tolist())
        counts[order] = counts.get(order, 0) + 1
    # c first with 1/2; else b or c after a with 1/2 each.
    share = {order: count / 4000 for order, count in counts.items()}
    assert share.keys() == {(2, 0, 1), (0, 2, 1), (0, 1, 2)}
    for order, expected in (((2, 0, 1), 0.5), ((0, 2, 1), 0.25), ((0, 1, 2), 0.25)):
        assert abs(share[order] - expected) < 0.04


@pytest.mark.parametrize("seed", [0, 1])
def test_training_graphs_with_variables_and_updates(seed):
    problem = SchedulingProblem(datasets.load("example/rnn-train"))
    values = {}
    for name in SEARCHES:
        result = agents.make(name).solve(problem, Budget(evaluations=3000), np.random.default_rng(seed))
        assert check(problem, result.solution) == result.outcome
        values[name] = result.outcome.value
    for name in ("beam", "order-search", "order-annealing"):
        assert values[name] < problem.reference_bytes  # program order is good there, and not the best


@pytest.mark.slow
def test_searches_rank_as_they_should_on_synthetic_graphs():
    """At 5,000 evaluations: random, then keys, then moves of orders; ten times as many close in on the best known."""
    ratios: dict[str, list[float]] = {name: [] for name in ("greedy-freed-bytes", *ANYTIME)}
    for family in ("er", "ba", "ws", "sbm"):
        for seed in range(5):
            problem = SchedulingProblem(datasets.load(f"synthetic/{family}?n=100&seed={seed}"))
            best = agents.make("order-annealing").solve(problem, Budget(evaluations=300_000)).outcome.value
            for name in ratios:
                value = agents.make(name).solve(problem, Budget(evaluations=5000)).outcome.value
                ratios[name].append(math.log(value / best))
    mean = {name: math.exp(float(np.mean(logs))) for name, logs in ratios.items()}
    assert mean["greedy-freed-bytes"] > mean["key-search"] > mean["order-annealing"]
    assert mean["random-order"] > mean["key-search"] > mean["order-search"]
    assert mean["order-annealing"] < 1.1
    assert mean["order-search"] < 1.1


def test_an_order_that_a_search_returns_is_an_order(synthetic):
    result = agents.make("order-annealing").solve(synthetic, Budget(evaluations=500))
    assert isinstance(result.solution, Order)
    assert sorted(result.solution.op.tolist()) == synthetic.ops.tolist()
    assert result.note.startswith("started from ")
