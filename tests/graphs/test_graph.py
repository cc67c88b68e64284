"""The graph and its builder: order, numbering, what is refused, fingerprints."""

import copy
import pickle
from dataclasses import fields
from itertools import pairwise

import numpy as np
import pytest

from opgym.errors import InvalidGraphError
from opgym.graphs import Graph, GraphBuilder
from opgym.graphs.dtypes import BITS, storage_bytes


def names_in_order(edges: list[tuple[str, str]], file_order: str) -> list[str]:
    """Builds ops in file order, one tensor per edge; returns the names in the order of the graph."""
    b = GraphBuilder(level="test")
    tensor = {edge: b.tensor(bytes=1) for edge in edges}
    for name in file_order:
        b.op(
            "work",
            name=name,
            inputs=[tensor[e] for e in edges if e[1] == name],
            outputs=[tensor[e] for e in edges if e[0] == name],
        )
    return list(b.build().op_names)


def small_graph(name: str = "small", prefix: str = "") -> Graph:
    """A little of everything."""
    b = GraphBuilder(level="test", name=name, in_place=True)
    x = b.tensor(shape=(4, 8), role="input", name=f"{prefix}x")
    w = b.tensor(shape=(8, 16), dtype="bfloat16", role="parameter", name=f"{prefix}w")
    home = b.op("variable", outputs=[w], name=f"{prefix}home", group="w")
    y = b.tensor(shape=(4, 16), dtype="bfloat16", name=f"{prefix}y")
    z = b.tensor(shape=(4, 16), dtype="bfloat16", is_output=True, name=f"{prefix}z")
    b.op("MatMul", inputs=[x, w], outputs=[y], flops=1024, workspace_bytes=77, layer=f"{prefix}l0",
         unsupported=["TPUv3", "cpu"], name=f"{prefix}matmul")  # fmt: skip
    b.op("Relu", inputs=[y], outputs=[z], flops=64, elementwise=True, layer=f"{prefix}l1")
    w2 = b.tensor(shape=(8, 16), dtype="bfloat16")
    b.op(
        "Adam",
        inputs=[w, z],
        outputs=[w2],
        update_of=home,
        direction="update",
        group="w",
        unsupported=["cpu"],
    )
    return b.build()


# --- Order and numbering --------------------------------------------------------------------------------


def test_a_file_in_topological_order_keeps_its_order():
    assert names_in_order([("a", "c"), ("b", "d")], "abcd") == list("abcd")


def test_ops_get_the_lexicographically_smallest_topological_order():
    # File: d=0 a=1 c=2 b=3 e=4. d needs b; c needs a. At each step the available op of lowest file index.
    assert names_in_order([("b", "d"), ("a", "c")], "dacbe") == ["a", "c", "b", "d", "e"]


def test_an_order_in_reverse_is_turned_around():
    assert names_in_order([("a", "b"), ("b", "c"), ("c", "d")], "dcba") == list("abcd")


def test_tensors_are_numbered_sources_first_then_by_producer_and_slot():
    b = GraphBuilder(level="test")
    late = b.tensor(bytes=1, name="late.0")
    late2 = b.tensor(bytes=1, name="late.1")
    early = b.tensor(bytes=1, name="early")
    source1 = b.tensor(bytes=1, name="source1")
    source0 = b.tensor(bytes=1, name="source0")
    b.op("work", inputs=[early, source0], outputs=[late2, late], name="second")
    b.op("work", inputs=[source1], outputs=[early], name="first")
    graph = b.build()
    assert graph.op_names == ("first", "second")
    assert graph.tensor_names == ("source1", "source0", "early", "late.1", "late.0")
    assert graph.tensor_producer.tolist() == [-1, -1, 0, 1, 1]
    assert [list(graph.outputs(v)) for v in (0, 1)] == [[2], [3, 4]]
    assert [graph.inputs(v).tolist() for v in (0, 1)] == [[0], [2, 1]]


def test_a_tensor_read_twice_is_one_input_at_its_first_position():
    b = GraphBuilder(level="test")
    x, y = b.tensor(bytes=3), b.tensor(bytes=5)
    b.op("work", inputs=[y, x, y, x])
    graph = b.build()
    assert graph.inputs(0).tolist() == [1, 0]
    assert graph.op_accessed_bytes.tolist() == [8]


def test_consumers_and_edges():
    b = GraphBuilder(level="test")
    source, x, y = (b.tensor(bytes=1) for _ in range(3))
    b.op("work", outputs=[x, y])
    b.op("work", inputs=[y, source])
    b.op("work", inputs=[x, y])
    graph = b.build()
    assert [graph.consumers(t).tolist() for t in range(3)] == [[1], [2], [1, 2]]
    assert [column.tolist() for column in graph.edges] == [[0, 0, 0], [1, 2, 2], [2, 1, 2]]


def test_groups_and_layers_are_numbered_by_first_op_and_kinds_sorted():
    b = GraphBuilder(level="test")
    for kind, group, layer in [("z", None, "top"), ("a", "q", None), ("z", "p", "low"), ("a", "q", "top")]:
        b.op(kind, group=group, layer=layer)
    graph = b.build()
    assert graph.kinds == ("a", "z")
    assert [graph.kind(v) for v in range(4)] == ["z", "a", "z", "a"]
    assert graph.op_group.tolist() == [-1, 0, 1, 0]
    assert graph.num_groups == 2
    assert graph.layers == ("top", "low")
    assert graph.op_layer.tolist() == [0, -1, 1, 0]


def test_update_of_names_the_variable_by_its_new_index():
    b = GraphBuilder(level="test")
    w, w2 = b.tensor(bytes=4), b.tensor(bytes=4)
    b.op("step", inputs=[w], outputs=[w2], update_of=1, name="step")
    b.op("variable", outputs=[w], name="home")
    graph = b.build()
    assert graph.op_names == ("home", "step")
    assert graph.op_update_of.tolist() == [-1, 0]
    assert graph.is_variable.tolist() == [True, False]


def test_unsupported_device_classes_are_bits():
    graph = small_graph()
    assert graph.device_classes == ("TPUv3", "cpu")
    assert graph.op_unsupported.tolist() == [0, 0b11, 0, 0b10]


def test_accessed_bytes_are_inputs_and_outputs_unless_given():
    b = GraphBuilder(level="test")
    x, y = b.tensor(bytes=3), b.tensor(bytes=5)
    b.op("work", inputs=[x], outputs=[y])
    b.op("work", inputs=[x, y], accessed_bytes=0)
    assert b.build().op_accessed_bytes.tolist() == [8, 0]


# --- Tensors ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dtype", "shape", "expected"),
    [
        ("float32", (), 4),  # rank 0: one element
        ("float32", (3, 5), 60),
        ("float32", (3, 0, 5), 0),  # a real zero-size tensor
        ("int4", (3,), 2),  # packed, rounded up to whole bytes
        ("int4", (4,), 2),
        ("int2", (5,), 2),
        ("float8e4m3fn", (7,), 7),
        ("bool", (9,), 9),
        ("complex128", (2,), 32),
    ],
)
def test_bytes_come_from_shape_and_dtype(dtype, shape, expected):
    b = GraphBuilder(level="test")
    b.tensor(dtype=dtype, shape=shape)
    b.op("work")
    graph = b.build()
    assert graph.tensor_bytes.tolist() == [expected]
    assert graph.shape(0) == shape
    assert graph.dtype(0) == dtype


def test_given_bytes_go_before_the_shape():
    b = GraphBuilder(level="test")
    b.tensor(bytes=7, shape=(3, 5))
    b.op("work")
    assert b.build().tensor_bytes.tolist() == [7]


def test_an_unknown_dtype_is_an_error():
    with pytest.raises(InvalidGraphError, match="'float33'"):
        GraphBuilder(level="test").tensor(dtype="float33", shape=(2,))
    assert all(storage_bytes(dtype, 8) == bits for dtype, bits in BITS.items())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"bytes": -1}, "-1 bytes"),
        ({"bytes": 2**63}, "9223372036854775808 bytes"),
        ({"shape": (2**40, 2**40)}, "bytes"),
        ({"shape": (3, -1)}, r"negative dimension in \(3, -1\)"),
        ({"bytes": 1, "role": "weight"}, "'weight'.*activation, parameter, input, constant"),
    ],
)
def test_bad_tensors_are_refused(arguments, words):
    with pytest.raises(InvalidGraphError, match=f"tensor 0 'here'.*{words}"):
        GraphBuilder(level="test").tensor(name="here", **arguments)


# --- Ops that are refused -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"inputs": [9]}, "tensor 9; 2 tensors"),
        ({"outputs": [-1]}, "tensor -1"),
        ({"flops": -1}, "flops = -1"),
        ({"accessed_bytes": -2}, "accessed_bytes = -2"),
        ({"workspace_bytes": 2**63}, "workspace_bytes"),
        ({"flops": float("nan")}, "flops = nan"),
        ({"direction": "sideways"}, "'sideways'.*forward, backward, update"),
        ({"outputs": [1, 1]}, "writes tensor 1 'y' twice"),
        ({"outputs": [1, 0]}, "tensor 0 'x' is written by op 0 'first' and again by op 1 'work'"),
        ({"unsupported": "gpu"}, "unsupported='gpu'"),
    ],
)
def test_bad_ops_are_refused_and_leave_the_builder_as_it_was(arguments, words):
    b = GraphBuilder(level="test")
    x, y = b.tensor(bytes=1, name="x"), b.tensor(bytes=1, name="y")
    b.op("work", outputs=[x], name="first")
    with pytest.raises(InvalidGraphError, match=words):
        b.op("work", **arguments)
    b.op("work", outputs=[y])
    assert b.build().num_ops == 2


def test_a_variable_reads_nothing():
    b = GraphBuilder(level="test")
    x = b.tensor(bytes=1)
    with pytest.raises(InvalidGraphError, match="variable has no inputs"):
        b.op("variable", inputs=[x])


@pytest.mark.parametrize("home", [0, 2, 7, -1])
def test_an_update_updates_a_variable(home):
    b = GraphBuilder(level="test")
    b.op("work")
    b.op("variable")
    b.op("step", update_of=home, name="step")
    with pytest.raises(InvalidGraphError, match=f"op 2 'step' updates op {home}, which is not a variable"):
        b.build()


def test_a_variable_updates_nothing():
    b = GraphBuilder(level="test")
    b.op("variable")
    b.op("variable", update_of=0, name="odd")
    with pytest.raises(InvalidGraphError, match="op 1 'odd' is a variable and updates another"):
        b.build()


def test_a_graph_without_ops_is_refused():
    b = GraphBuilder(level="test", name="void")
    b.tensor(bytes=4)
    with pytest.raises(InvalidGraphError, match="'void' has no ops"):
        b.build()


def cycle_message(edges: list[tuple[str, str]], names: str) -> str:
    with pytest.raises(InvalidGraphError, match="cycle") as caught:
        names_in_order(edges, names)
    return str(caught.value)


def test_the_message_about_a_cycle_lists_one_in_the_direction_of_the_edges():
    # a feeds the cycle b -> d -> c -> b, which feeds e.
    message = cycle_message([("a", "b"), ("b", "d"), ("d", "c"), ("c", "b"), ("c", "e")], "abcde")
    walk = message.split(": ", 1)[1].split(";")[0].split(" -> ")
    assert len(walk) == 4
    assert walk[0] == walk[-1]
    steps = {f"op {'abcde'.index(n)} '{n}'" for n in "bcd"}
    assert set(walk) == steps
    follows = {("b", "d"), ("d", "c"), ("c", "b")}
    assert all((x[-2], y[-2]) in follows for x, y in pairwise(walk))


def test_an_op_that_reads_its_own_output_is_a_cycle():
    assert "op 0 'a' -> op 0 'a'" in cycle_message([("a", "a")], "a")


def test_a_long_cycle_is_shortened_in_the_message():
    b = GraphBuilder(level="test")
    n = 50_000  # walked without recursion
    tensors = [b.tensor(bytes=1) for _ in range(n)]
    for v in range(n):
        b.op("work", inputs=[tensors[v - 1]], outputs=[tensors[v]])
    with pytest.raises(InvalidGraphError, match=r"\.\.\. 49989 more \.\.\.") as caught:
        b.build()
    assert len(str(caught.value)) < 500


def test_a_chain_50000_deep_needs_no_recursion():
    b = GraphBuilder(level="test")
    n = 50_000
    tensors = [b.tensor(bytes=1) for _ in range(n)]
    for v in reversed(range(n)):  # the worst order for a depth-first walk
        b.op("work", inputs=[tensors[v - 1]] if v else [], outputs=[tensors[v]])
    graph = b.build()
    assert graph.tensor_producer.tolist() == list(range(n))
    assert len(graph.fingerprint) == 64
    assert pickle.loads(pickle.dumps(graph)) == graph


# --- The graph as a value -----------------------------------------------------------------------------


def test_the_fingerprint_is_the_same_for_ever():
    # A change of this value is a new version of the format: every id of a dataset would name other bytes.
    assert small_graph().fingerprint == "d32a99cbe90278103dc6524227c00559a79e73bd3bd67909a13661ab47f36da9"


def test_names_do_not_count_and_everything_else_does():
    graph = small_graph()
    assert small_graph(name="other", prefix="p.") == graph
    assert hash(small_graph(name="other", prefix="p.")) == hash(graph)
    for f in fields(Graph):
        value = getattr(graph, f.name)
        if f.name in ("name", "op_names", "tensor_names", "layers"):
            continue
        if isinstance(value, np.ndarray):
            changed = value.copy()
            changed[-1] = not changed[-1] if changed.dtype == bool else changed[-1] + 1
        elif isinstance(value, bool):
            changed = not value
        else:
            changed = value + (("more",) if isinstance(value, tuple) else "more")
        other = Graph(**{g.name: getattr(graph, g.name) for g in fields(Graph)} | {f.name: changed})
        assert other.fingerprint != graph.fingerprint, f.name


def test_arrays_are_read_only_derived_ones_too():
    for graph in (small_graph(), pickle.loads(pickle.dumps(small_graph())), copy.deepcopy(small_graph())):
        derived = (graph.is_variable, graph.consumer_ptr, graph.consumer_op, *graph.edges)
        stored = [getattr(graph, f.name) for f in fields(Graph)]
        for array in (*derived, *(value for value in stored if isinstance(value, np.ndarray))):
            assert not array.flags.writeable
        with pytest.raises(AttributeError):
            graph.name = "other"


def test_pickles_and_copies_are_equal_and_small():
    graph = small_graph()
    before = len(pickle.dumps(graph))
    assert graph.fingerprint
    assert len(graph.consumer_op) == 5
    assert len(pickle.dumps(graph)) == before  # what is derived stays behind
    assert pickle.loads(pickle.dumps(graph)) == copy.copy(graph) == copy.deepcopy(graph) == graph
    assert graph != "graph"


def test_repr_says_what_it_is():
    assert repr(small_graph()) == "Graph('small', level='test', ops=4, tensors=5)"
