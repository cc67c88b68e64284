"""Graphs from arrays of edges: equal to what the builder makes, and as strict."""

from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opgym.errors import InvalidGraphError
from opgym.graphs import Graph, GraphBuilder
from opgym.graphs.edge_list import graph_from_edges
from opgym.graphs.storage import check_structure

KINDS = ("op", "concat", "add")


@st.composite
def op_lists(draw: st.DrawFn) -> dict:
    """Ops in topological order with edges in any order, some twice, and layers numbered by first op."""
    ops = draw(st.integers(1, 20))
    pairs = [(u, v) for v in range(ops) for u in range(v)]
    edges = draw(st.lists(st.sampled_from(pairs), max_size=40)) if pairs else []
    figures = st.lists(st.integers(0, 10**12), min_size=ops, max_size=ops)
    op_layer = None
    if draw(st.booleans()):
        op_layer, highest = [], -1
        for _ in range(ops):
            op_layer.append(draw(st.integers(-1, highest + 1)))
            highest = max(highest, op_layer[-1])
    return {
        "source": [u for u, _ in edges],
        "target": [v for _, v in edges],
        "tensor_bytes": draw(figures),
        "flops": draw(figures),
        "op_kind": draw(st.none() | st.lists(st.integers(0, 2), min_size=ops, max_size=ops)),
        "op_layer": op_layer,
    }


def built(case: dict) -> Graph:
    builder = GraphBuilder("test", "g")
    ops = len(case["tensor_bytes"])
    tensors = [builder.tensor(bytes=case["tensor_bytes"][v], dtype="uint8", name=f"v{v}") for v in range(ops)]
    for v in range(ops):
        layer = case["op_layer"][v] if case["op_layer"] else -1
        builder.op(
            KINDS[case["op_kind"][v]] if case["op_kind"] else KINDS[0],
            inputs=sorted(u for u, w in zip(case["source"], case["target"], strict=True) if w == v),
            outputs=[tensors[v]],
            flops=case["flops"][v],
            layer=f"layer {layer}" if layer >= 0 else None,
            name=f"v{v}",
        )
    return builder.build()


def from_edges(case: dict) -> Graph:
    layers = 1 + max(case["op_layer"] or [-1])
    names = [f"layer {i}" for i in range(layers)]
    return graph_from_edges(**case, kinds=KINDS, layers=names, level="test", name="g")


@settings(max_examples=300, deadline=None)
@given(case=op_lists())
def test_equals_what_the_builder_makes(case: dict) -> None:
    graph, expected = from_edges(case), built(case)
    check_structure(graph)
    for f in fields(Graph):
        one, other = getattr(graph, f.name), getattr(expected, f.name)
        if isinstance(other, np.ndarray):
            assert one.dtype == other.dtype, f.name
            assert one.tolist() == other.tolist(), f.name
            assert not one.flags.writeable, f.name
        else:
            assert one == other, f.name
    assert graph.fingerprint == expected.fingerprint


def test_the_arrays_given_may_be_changed_afterwards() -> None:
    size, flops = np.array([5, 6]), np.array([7, 8])
    graph = graph_from_edges([0], [1], tensor_bytes=size, flops=flops, level="test")
    size[0] = flops[0] = 99
    assert graph.tensor_bytes.tolist() == [5, 6]
    assert graph.op_flops.tolist() == [7, 8]
    assert graph.op_accessed_bytes.tolist() == [5, 11]


def test_more_ops_than_names_made_in_advance() -> None:
    ops = 1500
    figures = np.ones(ops, np.int64)
    graph = graph_from_edges([0], [ops - 1], tensor_bytes=figures, flops=figures, level="test")
    assert graph.op_names[0] == "v0"
    assert graph.op_names[-1] == "v1499"


GOOD: dict = {"source": [0, 0, 1], "target": [1, 2, 2], "tensor_bytes": [1, 2, 3], "flops": [0, 0, 0]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tensor_bytes": [], "flops": [], "source": [], "target": []}, "has no ops"),
        ({"source": [0, 1]}, "one length"),
        ({"source": [0, 0, 2]}, "edge 2 leads from op 2 to op 2 of 3"),
        ({"source": [0, 2, 1], "target": [1, 1, 2]}, "edge 1 leads from op 2 to op 1"),
        ({"source": [-1, 0, 1]}, "edge 0 leads from op -1"),
        ({"target": [1, 2, 3]}, "to op 3 of 3"),
        ({"flops": [0, 0]}, r"flops has shape \(2,\); expected \(3,\)"),
        ({"flops": [0, -1, 0]}, "flops has entries from -1 to 0"),
        ({"tensor_bytes": [1, -2, 3]}, "tensor_bytes has entries from -2"),
        ({"tensor_bytes": [1, 2**61, 2**61]}, "add up to more than"),
        ({"kinds": ("a", "b"), "op_kind": [0, 1, 2]}, "op_kind has entries from 0 to 2; expected 0 to 1"),
        ({"kinds": ("a", "a"), "op_kind": [0, 1, 1]}, "hold a name twice"),
        ({"layers": ("a", "b"), "op_layer": [1, 0, 0]}, "layers are not"),
        ({"layers": ("a", "b"), "op_layer": [0, 0, -1]}, "layers are not"),
        ({"layers": ("a", "a"), "op_layer": [0, 1, -1]}, "layers are not"),
        ({"op_layer": [0, 0, 0]}, "op_layer has entries from 0 to 0; expected -1 to -1"),
    ],
)
def test_refuses(change: dict, message: str) -> None:
    with pytest.raises(InvalidGraphError, match=message):
        graph_from_edges(**GOOD | change, level="test")
    assert graph_from_edges(**GOOD, level="test").num_ops == 3
