"""What the reader computes while reading, against onnx's own reference implementation."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from onnx import NodeProto, TensorProto, numpy_helper
from onnx.reference import ReferenceEvaluator

from opgym.graphs.readers.onnx import read_onnx
from opgym.graphs.readers.onnx.folding import fold
from opgym.graphs.readers.onnx.types import TensorType, Value, constant

from .onnx_files import FLOAT, INT64, array, model, node

ELEMENT = {np.dtype(np.int64): 7, np.dtype(np.int32): 6, np.dtype(np.float32): 1, np.dtype(bool): 9}


def folded(
    step: NodeProto, arrays: list[np.ndarray | None], results: list[np.ndarray]
) -> list[np.ndarray] | None:
    inputs: list[Value | None] = [
        None if a is None else constant("c", TensorType(ELEMENT[a.dtype], a.shape), a) for a in arrays
    ]
    return fold(step, inputs, [TensorType(ELEMENT[r.dtype], r.shape) for r in results])


def reference(step: NodeProto, arrays: list[np.ndarray | None]) -> list[np.ndarray]:
    """Runs one node by itself."""
    graph_inputs = [(f"i{i}", ELEMENT[a.dtype], list(a.shape)) for i, a in enumerate(arrays) if a is not None]
    proto = model([step], graph_inputs, [(name, 0, None) for name in step.output], opset=18)
    feeds = {f"i{i}": a for i, a in enumerate(arrays) if a is not None}
    return [np.asarray(r) for r in ReferenceEvaluator(proto).run(None, feeds)]


def agree(op_type: str, *arrays: np.ndarray | None, outputs: int = 1, **attributes: object) -> None:
    names = ["" if a is None else f"i{i}" for i, a in enumerate(arrays)]
    step = node(op_type, names, [f"o{i}" for i in range(outputs)], **attributes)
    expected = reference(step, list(arrays))
    ours = folded(step, list(arrays), expected)
    assert ours is not None, f"{op_type} was not folded"
    for mine, theirs in zip(ours, expected, strict=True):
        assert mine.dtype == theirs.dtype
        np.testing.assert_array_equal(mine, theirs)


def i64(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


small_ints = st.lists(st.integers(-9, 9), min_size=1, max_size=6).map(lambda v: np.array(v, np.int64))


@settings(max_examples=60, deadline=None)
@given(
    data=small_ints, start=st.integers(-8, 8), end=st.integers(-8, 8), step=st.sampled_from([-3, -1, 1, 2])
)
def test_slices(data: np.ndarray, start: int, end: int, step: int) -> None:
    agree("Slice", data, i64(start), i64(end), i64(0), i64(step))


@settings(max_examples=60, deadline=None)
@given(a=st.integers(-20, 20), b=st.integers(-5, 5).filter(bool))
def test_integer_arithmetic(a: int, b: int) -> None:
    for op in ("Add", "Sub", "Mul", "Min", "Max", "Equal", "Less", "GreaterOrEqual"):
        agree(op, i64(a, b), i64(b))
    agree("Mod", i64(a), i64(b))
    agree("Mod", i64(a), i64(b), fmod=1)
    quotient = folded(node("Div", ["i0", "i1"], ["o"]), [i64(a), i64(b)], [i64(0)])
    assert quotient is not None
    assert quotient[0].tolist() == [int(a / b)]  # the standard rounds integers towards zero


@settings(max_examples=40, deadline=None)
@given(rows=st.integers(1, 3), columns=st.integers(1, 4), axis=st.integers(-2, 1), data=st.data())
def test_gathering_and_joining(rows: int, columns: int, axis: int, data: st.DataObject) -> None:
    table = np.arange(rows * columns, dtype=np.int64).reshape(rows, columns)
    length = table.shape[axis]
    index = data.draw(st.lists(st.integers(-length, length - 1), min_size=1, max_size=3))
    agree("Gather", table, i64(*index), axis=axis)
    agree("Gather", table, np.array(index[0], np.int64), axis=axis)
    agree("Concat", table, table, axis=axis)
    agree("ReduceProd", table, i64(axis), keepdims=data.draw(st.integers(0, 1)))
    agree("ReduceMax", table, keepdims=0)
    agree("Transpose", table)
    agree("Tile", table, i64(1, 2))
    agree("Unsqueeze", table, i64(axis))
    agree("Split", table, outputs=1, axis=axis, num_outputs=1)


def test_the_other_rules() -> None:
    agree("Range", np.array(2, np.int64), np.array(11, np.int64), np.array(3, np.int64))
    agree("Where", np.array([True, False]), i64(1, 2), i64(3))
    agree("NonZero", np.array([[0, 3], [4, 0]], np.int64))
    agree("Expand", i64(7), i64(2, 3))
    agree("Cast", np.array([2.9, -2.9], np.float32), to=INT64)
    agree("Floor", np.array([2.9, -2.9], np.float32))
    agree("Ceil", np.array([2.1, -2.1], np.float32))
    agree("Sqrt", np.array([4, 9], np.float32))
    agree("Reshape", i64(1, 2, 3, 4, 5, 6), i64(2, -1))
    agree("Squeeze", np.array([[5]], np.int64), i64(0))
    agree("Flatten", np.zeros((2, 3, 2), np.int64), axis=2)
    agree("Split", i64(1, 2, 3, 4, 5), None, outputs=3, num_outputs=3)
    agree("Split", i64(1, 2, 3, 4, 5), i64(1, 4), outputs=2)
    agree("ScatterND", i64(1, 2, 3), np.array([[1]], np.int64), i64(9))
    agree("ScatterElements", i64(1, 2, 3), i64(-1), i64(9))
    agree("GatherElements", i64(4, 5, 6), i64(-1, 0))
    agree("ConstantOfShape", i64(2, 3), value=numpy_helper.from_array(i64(7)))
    agree("Not", np.array([True, False]))
    agree("And", np.array([True, False]), np.array([True]))
    agree("Sign", i64(-3, 0, 5))


def test_size_and_shape_need_no_contents() -> None:
    unknown = Value(TensorType(1, (2, 3, 4)), constant("x", TensorType(1, (2, 3, 4))).storage)
    (shape,) = fold(node("Shape", ["x"], ["s"], start=-2), [unknown], [TensorType(7, (2,))]) or []
    assert shape.tolist() == [3, 4]
    (size,) = fold(node("Size", ["x"], ["s"]), [unknown], [TensorType(7, ())]) or []
    assert size.tolist() == 24


@pytest.mark.parametrize(
    ("op_type", "arrays"),
    [
        ("Div", [i64(3), i64(0)]),
        ("Gather", [i64(3), i64(5)]),
        ("Concat", [i64(3), np.zeros((2, 2), np.int64)]),
        ("Reshape", [i64(1, 2, 3), i64(2, 2)]),
        ("Split", [i64(1, 2, 3), i64(1, 1)]),
        ("Cast", [np.array([np.inf], np.float32)]),
        ("Range", [np.array(0, np.int64), np.array(5, np.int64), np.array(0, np.int64)]),
    ],
)
def test_what_cannot_be_computed_stays_an_op(op_type: str, arrays: list[np.ndarray]) -> None:
    attributes = {"Concat": {"axis": 0}, "Cast": {"to": INT64}}.get(op_type, {})
    names = [f"i{i}" for i in range(len(arrays))]
    assert folded(node(op_type, names, ["o"], **attributes), list(arrays), [i64(0)]) is None


def test_a_huge_result_is_never_computed() -> None:
    proto = model(
        [
            node("ConstantOfShape", ["s"], ["big"]),
            node("Expand", ["one", "s"], ["wide"]),
            node("Add", ["big", "wide"], ["y"]),
        ],
        [],
        [("y", FLOAT, None)],
        [array("s", [10**6, 10**6], np.int64), array("one", [1.0])],
    )
    graph = read_onnx(proto, strict=True).graph
    assert [graph.kind(op) for op in range(2)] == ["Expand", "Add"]
    assert graph.tensor_bytes.max() == 4 * 10**12


def test_a_chain_that_computes_a_shape_vanishes_with_what_it_alone_needed() -> None:
    """What torch exports for x.view(x.size(0), -1, heads, 2 * x.size(1) // heads): the Transpose gives only sizes."""
    nodes = [
        node("Relu", ["x"], ["h"]),
        node("Transpose", ["h"], ["t"], perm=[1, 0]),
        node("Shape", ["t"], ["ts"]),
        node("Constant", [], ["zero"], value_int=0),
        node("Gather", ["ts", "zero"], ["width"]),
        node("Constant", [], ["two"], value_int=2),
        node("Mul", ["width", "two"], ["double"]),
        node("Constant", [], ["heads"], value_int=3),
        node("Div", ["double", "heads"], ["each"]),
        node("Cast", ["each"], ["each64"], to=TensorProto.INT64),
        node("Constant", [], ["axis"], value_ints=[0]),
        node("Unsqueeze", ["each64", "axis"], ["e1"]),
        node("Constant", [], ["head"], value_ints=[-1, 3]),
        node("Concat", ["head", "e1"], ["target"], axis=0),
        node("Reshape", ["h", "target"], ["v"]),
        node("Softmax", ["v"], ["y"]),
    ]
    proto = model(nodes, [("x", FLOAT, ["rows", "columns"])], [("y", FLOAT, None)])
    imported = read_onnx(proto, dims={"rows": 4, "columns": 6}, strict=True)
    graph = imported.graph
    assert [graph.kind(op) for op in range(graph.num_ops)] == ["Relu", "Softmax"]
    assert graph.shape(graph.num_tensors - 1) == (2, 3, 4)
    assert imported.report.folded["Transpose"] == 1
    assert imported.report.ops + sum(imported.report.folded.values()) == len(nodes)
    assert any("1 Transpose" in note for note in imported.report.notes)


def test_views_of_inputs_weights_and_results() -> None:
    nodes = [
        node("Unsqueeze", ["w", "axis"], ["wu"]),
        node("Identity", ["x"], ["xi"]),
        node("Mul", ["xi", "wu"], ["m"]),
        node("Mul", ["m", "w"], ["n"]),
        node("Flatten", ["n"], ["y"]),
        node("Cast", ["n"], ["same"], to=FLOAT),
        node("Cast", ["n"], ["half"], to=TensorProto.FLOAT16),
        node("Dropout", ["half"], ["kept", "mask"]),
    ]
    proto = model(
        nodes,
        [("x", FLOAT, [2, 3])],
        [
            ("y", FLOAT, None),
            ("same", FLOAT, None),
            ("xi", FLOAT, None),
            ("w", FLOAT, [3]),
            ("kept", TensorProto.FLOAT16, None),
        ],
        [array("w", [1, 2, 3]), array("axis", [0], np.int64)],
    )
    graph = read_onnx(proto, strict=True).graph
    assert [graph.kind(op) for op in range(graph.num_ops)] == ["Mul", "Mul", "Cast"]
    assert graph.tensor_names == ("x", "w", "m", "n", "half")
    assert graph.tensor_is_output.tolist() == [True, True, False, True, True]
    assert graph.tensor_role.tolist() == [2, 1, 0, 0, 0]
    assert graph.inputs(1).tolist() == [2, 1]


def test_a_dropout_that_is_more_than_a_view() -> None:
    for inputs, outputs, kinds in (
        (["x", "", "yes"], ["y"], ["Dropout", "Relu"]),
        (["x", "", "no"], ["y"], ["Relu"]),
        (["x"], ["y", "mask"], ["Dropout", "Relu", "Not"]),
    ):
        nodes = [node("Dropout", inputs, outputs), node("Relu", ["y"], ["z"])]
        if "mask" in outputs:
            nodes.append(node("Not", ["mask"], ["q"]))
        proto = model(
            nodes,
            [("x", FLOAT, [4])],
            [("z", FLOAT, [4])],
            [array("yes", True, bool), array("no", False, bool)],
        )
        graph = read_onnx(proto, strict=True).graph
        assert [graph.kind(op) for op in range(graph.num_ops)] == kinds
        assert graph.op_flops[0] == (12 if "yes" in inputs else 4 if kinds == ["Relu"] else 0)
