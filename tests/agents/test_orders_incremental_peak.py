"""The incremental peak under moves of blocks, against a full evaluation after each of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opgym import _core
from opgym.graphs import GraphBuilder
from opgym.graphs.core_graph import core_graph
from opgym.graphs.order_peak import peak_of_order

from ..reference.strategies import graphs


@settings(max_examples=150, deadline=None)
@given(graphs(max_ops=16), st.integers(0, 2**32))
def test_moving_blocks_equals_evaluating_the_order_that_results(graph, seed):
    rng = np.random.default_rng(seed)
    order = np.flatnonzero(~graph.is_variable).astype(np.int32)
    incremental = _core.IncrementalPeak(core_graph(graph), order)
    current = order.tolist()
    size = len(current)
    for _ in range(25):
        length = int(rng.integers(1, size + 1))
        i, j = (int(p) for p in rng.integers(0, size - length + 1, 2))
        block = current[i : i + length]
        rest = current[:i] + current[i + length :]
        moved = rest[:j] + block + rest[j:]
        try:
            expected = peak_of_order(graph, moved)
        except ValueError:
            expected = None
        assert incremental.move(i, j, length) == (expected is not None)
        if expected is not None:
            current = moved
            assert incremental.peak == expected
        assert incremental.order.tolist() == current


@settings(max_examples=150, deadline=None)
@given(graphs(max_ops=16), st.integers(0, 2**32))
def test_moving_an_op_with_what_goes_along_equals_evaluating_the_order_that_results(graph, seed):
    rng = np.random.default_rng(seed)
    order = np.flatnonzero(~graph.is_variable).astype(np.int32)
    incremental = _core.IncrementalPeak(core_graph(graph), order)
    current = order.tolist()
    reads = [set(graph.tensor_producer[graph.inputs(op)].tolist()) for op in range(graph.num_ops)]
    for _ in range(25 if current else 0):
        low, high = sorted(rng.integers(0, len(current), 2).tolist())
        window = current[low : high + 1]
        later = bool(rng.integers(0, 2))
        along = {window[0] if later else window[-1]}
        for op in window if later else window[::-1]:
            if (reads[op] & along) if later else any(op in reads[other] for other in along):
                along.add(op)
        moved, rest = [op for op in window if op in along], [op for op in window if op not in along]
        done = incremental.move_later(low, high + 1) if later else incremental.move_earlier(high, low)
        assert done == bool(rest)
        current[low : high + 1] = rest + moved if later else moved + rest
        assert incremental.order.tolist() == current
        assert incremental.peak == peak_of_order(graph, current)


def test_a_position_outside_the_order_is_refused():
    graph = _chain()
    incremental = _core.IncrementalPeak(graph, np.arange(5, dtype=np.int32))
    for i, j, length in ((0, 5, 1), (-1, 0, 1), (0, 4, 2), (3, 0, 3), (0, 0, 0)):
        with pytest.raises(ValueError, match="outside the order"):
            incremental.move(i, j, length)
    for position, end in ((-1, 3), (3, 3), (0, 6)):
        with pytest.raises(ValueError, match="outside the order"):
            incremental.move_later(position, end)
    for position, begin in ((5, 0), (2, 3), (2, -1)):
        with pytest.raises(ValueError, match="outside the order"):
            incremental.move_earlier(position, begin)
    assert incremental.order.tolist() == [0, 1, 2, 3, 4]


def test_a_reader_of_which_two_inputs_change_hands_is_corrected_once():
    b = GraphBuilder("test", in_place=True)
    inputs = [b.tensor(bytes=100), b.tensor(bytes=100)]
    for tensor in inputs:
        b.op("source", outputs=[tensor])
    for workspace_bytes in (0, 500):
        b.op(
            "Add", inputs=inputs, outputs=[b.tensor(bytes=100, is_output=True)], elementwise=True,
            workspace_bytes=workspace_bytes,
        )  # fmt: skip
    graph = b.build()
    incremental = _core.IncrementalPeak(core_graph(graph), np.arange(4, dtype=np.int32))
    assert incremental.peak == 800  # the last reader takes one of its inputs over
    assert incremental.move(3, 2)
    assert incremental.peak == 800  # now the first one, which takes nothing over
    assert incremental.move(2, 3)
    assert incremental.peak == 800
    assert incremental.move(2, 3)
    assert incremental.peak == 800


def _chain() -> _core.Graph:
    b = GraphBuilder("test")
    x = b.tensor(bytes=1)
    b.op("op", outputs=[x])
    for _ in range(4):
        y = b.tensor(bytes=1)
        b.op("op", inputs=[x], outputs=[y])
        x = y
    return core_graph(b.build())
