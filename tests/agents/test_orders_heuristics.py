"""Rules that order ops in one pass: orders by hand, against naive versions, and legal on everything."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opgym import agents, datasets
from opgym.graphs import Graph, GraphBuilder
from opgym.problems import Budget, SchedulingProblem
from opgym.problems.plain_order import plain_order_memory

from ..problems.exhaustive_orders import all_orders, least_peak
from ..reference.strategies import graphs

RULES = ["program-order", "bfs", "dfs", "post-order", "sethi-ullman", "greedy-freed-bytes"]


def order_of(rule: str, graph: Graph) -> list[int]:
    return agents.make(rule).solve(SchedulingProblem(graph)).solution.op.tolist()


def dag(reads: list[list[int]], sizes: list[int], **options) -> Graph:
    """One op per row, which reads the outputs of those rows and writes one tensor of that size."""
    b = GraphBuilder("test", **options)
    tensors = [b.tensor(bytes=size) for size in sizes]
    for op, row in enumerate(reads):
        b.op("op", inputs=[tensors[r] for r in row], outputs=[tensors[op]])
    return b.build()


def test_cheap_rules_come_first():
    assert agents.names(SchedulingProblem)[: len(RULES) + 1] == [*RULES, "best-of-three"]


@settings(max_examples=60, deadline=None)
@given(graphs(max_ops=6).filter(lambda graph: not graph.is_variable.all()))
def test_orders_are_legal_and_not_better_than_the_best(graph):
    problem = SchedulingProblem(graph)
    least = least_peak(graph)
    values = {}
    for rule in RULES:
        result = agents.make(rule).solve(problem)
        assert result.outcome.ok, result.outcome.details
        assert result.evaluations == 1
        values[rule] = result.outcome.value
    assert min(values.values()) >= least
    best = agents.make("best-of-three").solve(problem)
    assert best.evaluations == 3
    assert best.outcome.value == min(values[rule] for rule in ("greedy-freed-bytes", "dfs", "post-order"))


#: 0 is read by 1 and 2; 3 reads 1; 4 reads 2 and 3 (first 2); 5 reads nothing and is read by nobody.
READS = [[], [0], [0], [1], [2, 3], []]


def test_orders_by_hand():
    graph = dag(READS, [1] * 6)
    assert order_of("program-order", graph) == [0, 1, 2, 3, 4, 5]
    assert order_of("bfs", graph) == [0, 5, 1, 2, 3, 4]
    assert order_of("post-order", graph) == [0, 2, 1, 3, 4, 5]


def test_depth_first_visits_the_operand_with_most_fan_out_behind_it_then_most_bytes():
    # 4 reads 0 and 1, equal but for bytes; then but for a second reader, 5, of the smaller one.
    assert order_of("dfs", dag([[], [], [], [], [0, 1]], [1, 2, 1, 1, 1])) == [1, 0, 4, 2, 3]
    graph = dag([[], [], [], [], [0, 1], [0]], [1, 2, 1, 1, 1, 1])
    assert order_of("dfs", graph)[:3] == [0, 1, 4]


def test_greedy_by_hand():
    # After 0: 1 frees nothing and writes 10; 2 the same with 20; what 1 makes is reduced before 2 starts.
    graph = dag([[], [0], [1], [0], [3], [2, 4]], [1, 10, 2, 20, 3, 1])
    assert order_of("greedy-freed-bytes", graph) == [0, 1, 2, 3, 4, 5]


def naive_greedy(graph: Graph) -> list[int]:
    """Looks at every ready op anew in every step."""
    real = [op for op in range(graph.num_ops) if not graph.is_variable[op]]
    done: list[int] = []
    while len(done) < len(real):
        ready = [
            op
            for op in real
            if op not in done
            and all(
                u in done
                for u in graph.tensor_producer[graph.inputs(op)]
                if u >= 0 and not graph.is_variable[u]
            )
        ]

        def net(op: int) -> int:
            takes = graph.op_update_of[op] < 0
            freed = sum(
                int(graph.tensor_bytes[t])
                for t in (*graph.inputs(op), *graph.outputs(op))
                if not graph.tensor_is_output[t]
                and (u := int(graph.tensor_producer[t])) >= 0
                and not graph.is_variable[u]
                and graph.op_update_of[u] < 0
                and set(graph.consumers(t).tolist()) <= {*done, op}
            )
            return freed - takes * sum(int(graph.tensor_bytes[t]) for t in graph.outputs(op))

        done.append(max(ready, key=lambda op: (net(op), -op)))
    return done


@settings(max_examples=150, deadline=None)
@given(graphs(max_ops=14).filter(lambda graph: not graph.is_variable.all()))
def test_greedy_equals_looking_at_every_ready_op(graph):
    assert order_of("greedy-freed-bytes", graph) == naive_greedy(graph)


@st.composite
def trees(draw):
    """In-trees: every tensor has one reader at most; workspaces."""
    ops = draw(st.integers(1, 7))
    children: list[list[int]] = [[] for _ in range(ops)]
    for op in range(ops - 1):
        children[draw(st.integers(op + 1, ops - 1))].append(op)
    b = GraphBuilder("tree")
    tensors = [b.tensor(bytes=draw(st.integers(0, 20))) for _ in range(ops)]
    for op in range(ops):
        b.op(
            "op",
            inputs=[tensors[c] for c in children[op]],
            outputs=[tensors[op]],
            workspace_bytes=draw(st.integers(0, 5)),
        )
    return b.build()


@settings(max_examples=150, deadline=None)
@given(trees())
def test_sethi_ullman_is_the_best_post_order_of_a_tree(graph):
    def post_orders(op: int) -> list[list[int]]:
        operands = graph.tensor_producer[graph.inputs(op)].tolist()
        return [
            [v for part in parts for v in part] + [op]
            for row in permutations(operands)
            for parts in product(*(post_orders(u) for u in row))
        ]

    best = min(max(plain_order_memory(graph, order)) for order in post_orders(graph.num_ops - 1))
    assert max(plain_order_memory(graph, order_of("sethi-ullman", graph))) == best


def test_best_of_three_within_a_budget_of_two():
    problem = SchedulingProblem(datasets.load("example/rnn-train"))
    result = agents.make("best-of-three").solve(problem, Budget(evaluations=2))
    assert result.evaluations == 2
    values = [agents.make(rule).solve(problem).outcome.value for rule in ("greedy-freed-bytes", "dfs")]
    assert result.outcome.value == min(values)


@pytest.mark.parametrize("rule", [*RULES, "best-of-three"])
def test_long_chains_need_no_recursion(rule):
    graph = dag([[], *([op] for op in range(30_000))], [1] * 30_001)
    result = agents.make(rule).solve(SchedulingProblem(graph))
    assert result.outcome.value == 2


def test_all_orders_are_what_they_should_be():
    """The oracle itself: two chains of two and three ops interleave in 5 over 2 ways."""
    graph = dag([[], [0], [], [2], [3]], [1] * 5)
    orders = [tuple(order) for order in all_orders(graph)]
    assert len(set(orders)) == len(orders) == 10
    assert np.array_equal(sorted(orders)[0], range(5))
