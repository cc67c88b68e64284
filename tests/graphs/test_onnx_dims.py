"""Dynamic dimensions: never a silent 1, and a refusal that says what to type."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from opgym.errors import ImportFailedError, UnknownIdError
from opgym.graphs.readers.onnx import read_onnx

from .onnx_files import FLOAT, INT64, Dim, array, model, node


def net(*shape: Dim, name: str = "x") -> onnx.ModelProto:
    return model([node("Relu", [name], ["y"])], [(name, FLOAT, list(shape))], [("y", FLOAT, None)])


def sizes(proto: onnx.ModelProto, **dims: int) -> list[tuple[int, ...]]:
    graph = read_onnx(proto, dims=dims).graph
    return [graph.shape(t) for t in range(graph.num_tensors)]


def test_a_named_dimension_is_bound_everywhere() -> None:
    proto = model(
        [node("Add", ["a", "b"], ["y"])],
        [("a", FLOAT, ["batch", 3]), ("b", FLOAT, ["batch", 3])],
        [("y", FLOAT, ["batch", 3])],
    )
    imported = read_onnx(proto, dims={"batch": 8})
    assert [imported.graph.shape(t) for t in range(3)] == [(8, 3)] * 3
    assert imported.report.bound_dims == {"batch": 8}


def test_all_open_dimensions_are_listed_with_what_to_type() -> None:
    proto = model(
        [node("Concat", ["a", "b", "c"], ["y"], axis=0)],
        [
            ("a", FLOAT, ["batch", None]),
            ("b", FLOAT, ["batch", 4]),
            ("c:0", FLOAT, [-1, "my dim"]),
            ("c", FLOAT, [2, 2]),
        ],
        [("y", FLOAT, None)],
    )
    with pytest.raises(ImportFailedError) as caught:
        read_onnx(proto)
    message = str(caught.value)
    for place in (
        "'a' axis 0 (batch)",
        "'a' axis 1",
        "'b' axis 0 (batch)",
        "'c:0' axis 0",
        "'c:0' axis 1 (my dim)",
    ):
        assert place in message
    assert message.endswith("give --dim batch=N --dim a:1=N --dim c:0:0=N --dim 'my dim'=N")


def test_what_is_not_set_is_unknown_but_an_explicit_zero_is_zero() -> None:
    assert sizes(net(None, 4), **{"x:0": 3}) == [(3, 4), (3, 4)]
    assert sizes(net(-1, 4), **{"x:0": 3}) == [(3, 4), (3, 4)]
    assert sizes(net(0, 4)) == [(0, 4), (0, 4)]
    assert sizes(net("n", 4), n=0) == [(0, 4), (0, 4)]
    with pytest.raises(ImportFailedError, match="axis 0"):
        read_onnx(net(None, 4))


def test_an_input_without_a_shape_can_be_given_one() -> None:
    proto = model([node("Relu", ["x"], ["y"])], [("x", FLOAT, None)], [("y", FLOAT, None)])
    with pytest.raises(ImportFailedError, match=r"'x' \(no shape at all\).*--dim x:0=N"):
        read_onnx(proto)
    assert sizes(proto, **{"x:0": 2, "x:1": 5}) == [(2, 5), (2, 5)]
    with pytest.raises(ImportFailedError, match="no shape at all"):
        read_onnx(proto, dims={"x:1": 5})
    graph = read_onnx(proto, shapes={"x": (7,)}).graph
    assert graph.shape(0) == (7,)


def test_sums_of_names_are_computed_as_exporters_write_them() -> None:
    proto = model(
        [node("MatMul", ["mask", "past"], ["y"])],
        [
            ("mask", FLOAT, ["batch", "past + length"]),
            ("past", FLOAT, ["past + length", "past"]),
            ("ids", INT64, ["length"]),
        ],
        [("y", FLOAT, None)],
    )
    graph = read_onnx(proto, dims={"batch": 2, "past": 3, "length": 4}).graph
    assert graph.shape(0) == (2, 7)
    with pytest.raises(ImportFailedError, match=r"give --dim batch=N --dim past=N --dim length=N$"):
        read_onnx(proto)


def test_wrong_names_places_and_sizes() -> None:
    with pytest.raises(UnknownIdError, match="did you mean batch"):
        read_onnx(net("batch", 3), dims={"batsh": 2})
    with pytest.raises(ImportFailedError, match="axis 1 of input 'x' is fixed to 3"):
        read_onnx(net("batch", 3), dims={"batch": 1, "x:1": 2})
    with pytest.raises(ImportFailedError, match="axis 0 of input 'x' is named 'batch'"):
        read_onnx(net("batch", 3), dims={"x:0": 2})
    with pytest.raises(ImportFailedError, match="'x' has 2 axes; there is no axis 5"):
        read_onnx(net("batch", 3), dims={"batch": 1, "x:5": 2})
    with pytest.raises(ImportFailedError, match="has no dynamic dimension, so 'batch' cannot be bound"):
        read_onnx(net(2, 3), dims={"batch": 2})
    for size in (-1, 1.5, True, "2", 2**31):
        with pytest.raises(ImportFailedError, match="dimension batch is bound to"):
            read_onnx(net("batch", 3), dims={"batch": size})  # type: ignore[dict-item]
    assert sizes(net("batch", 3), batch=np.int64(2)) == [(2, 3), (2, 3)]  # type: ignore[arg-type]


def test_a_size_that_contradicts_the_model_is_refused_at_the_op() -> None:
    proto = model(
        [node("Reshape", ["x", "shape"], ["y"], name="flat"), node("Relu", ["y"], ["z"])],
        [("x", FLOAT, ["batch", 6])],
        [("z", FLOAT, None)],
        [array("shape", [1, 6], np.int64)],
    )
    assert read_onnx(proto, dims={"batch": 1}).graph.num_ops == 1
    with pytest.raises(ImportFailedError, match="'flat'"):
        read_onnx(proto, dims={"batch": 2})


def test_a_named_dimension_of_a_result_may_be_bound_too() -> None:
    """How many elements are not zero is known to the user alone."""
    proto = model(
        [node("NonZero", ["x"], ["where"]), node("Cast", ["where"], ["y"], to=FLOAT)],
        [("x", FLOAT, [9])],
        [("y", FLOAT, [1, "found"])],
        value_info=[("where", INT64, [1, "found"])],
    )
    assert read_onnx(proto).report.missing_shape == ("where", "y")
    imported = read_onnx(proto, dims={"found": 4})
    assert imported.report.missing_shape == ()
    assert imported.graph.tensor_bytes.tolist() == [36, 32, 16]
