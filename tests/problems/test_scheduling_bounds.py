"""Lower bounds of the peak against all orders of small graphs, and by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from opgym import _core
from opgym.graphs import VARIABLE, Graph, GraphBuilder
from opgym.graphs.core_graph import core_graph
from opgym.problems import SchedulingProblem
from opgym.problems.order_bounds import order_bound
from opgym.problems.plain_order import plain_order_memory

from ..reference.strategies import graphs
from .exhaustive_orders import all_orders, least_peak


@settings(max_examples=300, deadline=None)
@given(graphs(max_ops=6).filter(lambda graph: not graph.is_variable.all()))
def test_no_order_beats_the_bound_and_no_op_runs_with_less_than_its_cut(graph):
    cut, end = _core.cut_bytes(core_graph(graph)), _core.end_bytes(core_graph(graph))
    least = []
    for order in all_orders(graph):
        memory = plain_order_memory(graph, order)
        assert (np.array(memory) >= cut[order]).all()
        assert memory[-1] >= end
        least.append(max(memory))
    bound = SchedulingProblem(graph).lower_bound()
    assert cut.max() <= bound.value <= min(least)
    assert not cut[graph.is_variable].any()


def chain_of_cells(cells: int) -> Graph:
    """Each cell reads what the last one wrote and the skip tensor that the first op wrote; exact by cuts."""
    b = GraphBuilder("test")
    skip, x = b.tensor(bytes=100), b.tensor(bytes=1)
    b.op("first", outputs=[skip, x])
    for _ in range(cells):
        y = b.tensor(bytes=3)
        b.op("cell", inputs=[x], outputs=[y], workspace_bytes=2)
        x = y
    b.op("last", inputs=[skip, x], outputs=[b.tensor(bytes=1)])
    return b.build()


@pytest.mark.parametrize("cells", [1, 2, 600, 1100])  # the last two need several blocks of bits
def test_what_an_ancestor_wrote_and_a_descendant_reads_is_live(cells):
    graph = chain_of_cells(cells)
    cut = _core.cut_bytes(core_graph(graph)).tolist()
    cell = 100 + 3 + 3 + 2
    assert cut == [101, *([100 + 1 + 3 + 2, *[cell] * (cells - 1)]), 104]
    problem = SchedulingProblem(graph)
    bound = problem.lower_bound()
    assert bound.value == problem.reference_bytes == max(cut)
    assert bound.name == ("bytes live around an op" if cells > 0 else "")


def test_cuts_of_a_wide_graph_equal_plain_sets():
    """A random graph beyond one block of bits, by reachability with Python's sets."""
    rng = np.random.default_rng(7)
    b = GraphBuilder("test")
    written: list[int] = []
    for _ in range(700):
        reads = (
            [written[i] for i in rng.integers(max(0, len(written) - 60), len(written), 2)] if written else []
        )
        out = [
            b.tensor(bytes=int(rng.integers(0, 9)), is_output=rng.random() < 0.02)
            for _ in range(rng.integers(1, 3))
        ]
        b.op("op", inputs=reads, outputs=out, workspace_bytes=int(rng.integers(0, 3)))
        written += out
    graph = b.build()
    after: list[set[int]] = [set() for _ in range(graph.num_ops)]
    for op in reversed(range(graph.num_ops)):
        for tensor in graph.outputs(op):
            for reader in graph.consumers(tensor).tolist():
                after[op] |= {reader} | after[reader]
    cut = graph.op_workspace_bytes.astype(np.int64)
    for tensor in range(graph.num_tensors):
        producer = int(graph.tensor_producer[tensor])
        readers = graph.consumers(tensor).tolist()
        for op in {producer} | after[producer]:
            forced = op == producer or bool(graph.tensor_is_output[tensor])
            if forced or any(reader == op or reader in after[op] for reader in readers):
                cut[op] += graph.tensor_bytes[tensor]
    assert _core.cut_bytes(core_graph(graph)).tolist() == cut.tolist()


def test_outputs_are_live_together_at_the_end():
    b = GraphBuilder("test")
    for _ in range(4):
        x = b.tensor(bytes=6)
        b.op("make", outputs=[x])
        b.op("finish", inputs=[x], outputs=[b.tensor(bytes=10, is_output=True)])
    problem = SchedulingProblem(b.build())
    bound = problem.lower_bound()
    assert (bound.value, bound.name) == (4 * 10 + 6, "outputs at the end")
    assert least_peak(problem.graph) == bound.value


def test_variables_and_updates_take_no_dynamic_memory():
    b = GraphBuilder("test")
    weight, gradient = b.tensor(bytes=500), b.tensor(bytes=7)
    variable = b.op(VARIABLE, outputs=[weight])
    b.op("gradient", inputs=[weight], outputs=[gradient])
    b.op("update", inputs=[gradient, weight], outputs=[b.tensor(bytes=500)], update_of=variable)
    assert SchedulingProblem(b.build()).lower_bound().value == 7


def test_an_op_that_may_write_over_its_input_needs_one_buffer_unless_another_reads_it_later():
    def bound(*, read_later: bool) -> float:
        b = GraphBuilder("test", in_place=True)
        x, y = b.tensor(bytes=8), b.tensor(bytes=8)
        b.op("a", outputs=[x])
        b.op("relu", inputs=[x], outputs=[y], elementwise=True)
        b.op("add", inputs=[y, x] if read_later else [y], outputs=[b.tensor(bytes=1)])
        return SchedulingProblem(b.build()).lower_bound().value

    assert bound(read_later=False) == 9
    assert bound(read_later=True) == 8 + 8 + 1


def test_a_graph_beyond_the_limit_of_cuts_still_has_a_bound(monkeypatch):
    monkeypatch.setattr("opgym.problems.order_bounds.MAX_OPS_FOR_CUTS", 3)
    problem = SchedulingProblem(chain_of_cells(5))
    bound = order_bound(problem)
    assert (bound.value, bound.name) == (104, "largest op footprint")
