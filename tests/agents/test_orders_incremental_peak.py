"""The incremental peak under moves of blocks, against a full evaluation after each of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opgym import _core
from opgym.graphs.simulate import core_graph, peak_of_order

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


def test_a_position_outside_the_order_is_refused():
    graph = _chain()
    incremental = _core.IncrementalPeak(graph, np.arange(5, dtype=np.int32))
    for i, j, length in ((0, 5, 1), (-1, 0, 1), (0, 4, 2), (3, 0, 3), (0, 0, 0)):
        with pytest.raises(ValueError, match="outside the order"):
            incremental.move(i, j, length)
    assert incremental.order.tolist() == [0, 1, 2, 3, 4]


def _chain() -> _core.Graph:
    from opgym.graphs import GraphBuilder

    b = GraphBuilder("test")
    x = b.tensor(bytes=1)
    b.op("op", outputs=[x])
    for _ in range(4):
        y = b.tensor(bytes=1)
        b.op("op", inputs=[x], outputs=[y])
        x = y
    return core_graph(b.build())
