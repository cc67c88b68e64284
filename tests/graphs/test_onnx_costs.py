"""Flops and bytes of ops, against counts made independently."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto

from opgym.graphs import Graph
from opgym.graphs.readers import Imported
from opgym.graphs.readers.onnx import read_onnx
from opgym.graphs.readers.onnx.costs import FORMULAS

from .onnx_files import BOOL, FLOAT, INT64, array, model, node

INT8, UINT8 = TensorProto.INT8, TensorProto.UINT8

#: Kinds that the reader says it cannot price: their work depends on contents, on texts, or on gradients.
WITHOUT_FORMULA = {
    "If", "Loop", "Scan", "SequenceMap",  # counted by their bodies
    "NonMaxSuppression", "MaxRoiPool", "Multinomial", "MelWeightMatrix", "ImageDecoder",
    "StringNormalizer", "StringConcat", "StringSplit", "RegexFullMatch", "TfIdfVectorizer",
    "ai.onnx.ml.CastMap", "ai.onnx.ml.CategoryMapper", "ai.onnx.ml.DictVectorizer",
    "ai.onnx.ml.FeatureVectorizer", "ai.onnx.ml.LabelEncoder", "ai.onnx.ml.OneHotEncoder",
    "ai.onnx.ml.SVMClassifier", "ai.onnx.ml.SVMRegressor", "ai.onnx.ml.TreeEnsemble",
    "ai.onnx.ml.TreeEnsembleClassifier", "ai.onnx.ml.TreeEnsembleRegressor", "ai.onnx.ml.ZipMap",
    "ai.onnx.preview.training.Adagrad", "ai.onnx.preview.training.Adam", "ai.onnx.preview.training.Gradient",
    "ai.onnx.preview.training.Momentum",
}  # fmt: skip


def test_every_standard_operator_has_a_formula_or_is_known_to_have_none() -> None:
    kinds = {(f"{s.domain}." if s.domain else "") + s.name for s in onnx.defs.get_all_schemas()}
    assert kinds - set(FORMULAS) == WITHOUT_FORMULA & kinds
    assert not WITHOUT_FORMULA & set(FORMULAS)


def one_op(
    op_type: str,
    inputs: Sequence[tuple[int, Sequence[int]] | Any],
    outputs: int = 1,
    *,
    opset: int = 18,
    domain: str = "",
    **attributes: Any,
) -> Imported:
    """Reads a model of one op; an input is (dtype, shape), an array (a constant), or None (left out)."""
    names, infos, weights = [], [], []
    for i, given in enumerate(inputs):
        names.append("" if given is None else f"i{i}")
        if isinstance(given, np.ndarray):
            weights.append(array(f"i{i}", given, given.dtype))
        elif given is not None:
            infos.append((f"i{i}", given[0], list(given[1])))
    results = [f"o{i}" for i in range(outputs)]
    proto = model(
        [node(op_type, names, results, domain=domain, **attributes)],
        infos,
        [(r, 0, None) for r in results],
        weights,
        opset=opset,
        domains={domain: 1} if domain else None,
        ir_version=10,
    )
    for output in proto.graph.output:
        output.ClearField("type")
    return read_onnx(proto, strict=True)


def flops(*args: Any, **kwargs: Any) -> int:
    graph: Graph = one_op(*args, **kwargs).graph
    assert graph.num_ops == 1
    return int(graph.op_flops[0])


def brute_force_conv(x: Sequence[int], w: Sequence[int], out: Sequence[int], group: int) -> int:
    """Multiply-adds by walking over all outputs and taps (padding counts as work, as in every published figure)."""
    count = 0
    for _ in range(x[0]):
        for channel in range(w[0]):
            first = channel // (w[0] // group) * (x[1] // group)
            for _ in np.ndindex(*out):
                for _ in range(first, first + x[1] // group):
                    count += int(np.prod(w[2:]))
    return count


@pytest.mark.parametrize("group", [1, 2, 4])
def test_convolutions(group: int) -> None:
    x, w = [2, 4, 6, 5], [8, 4 // group, 3, 2]
    expected = brute_force_conv(x, w, (3, 4), group)
    attributes = {"group": group, "pads": [1, 0, 1, 0], "strides": [2, 1]}
    assert flops("Conv", [(FLOAT, x), (FLOAT, w)], **attributes) == 2 * expected
    assert flops("Conv", [(FLOAT, x), (FLOAT, w), (FLOAT, [8])], **attributes) == 2 * expected + 2 * 8 * 12
    assert flops("ConvInteger", [(UINT8, x), (UINT8, w)], **attributes) == 2 * expected
    scale, zero = np.array(0.5, np.float32), np.array(0, np.uint8)
    quantised = [(UINT8, x), scale, zero, (UINT8, w), scale, zero, scale, zero]
    assert flops("QLinearConv", quantised, **attributes) == 2 * expected + 3 * 2 * 8 * 12


@pytest.mark.parametrize("group", [1, 2])
def test_a_transposed_convolution_costs_what_its_adjoint_costs(group: int) -> None:
    """The adjoint of a convolution has the same multiply-adds as the convolution itself."""
    small, large, w = [2, 8, 3, 4], [2, 4, 5, 5], [8, 4 // group, 3, 2]
    forward = flops("Conv", [(FLOAT, large), (FLOAT, w)], group=group)
    assert flops("ConvTranspose", [(FLOAT, small), (FLOAT, w)], group=group) == forward
    bias = flops("ConvTranspose", [(FLOAT, small), (FLOAT, w), (FLOAT, [4])], group=group)
    assert bias == forward + int(np.prod(large))


def test_products() -> None:
    assert flops("Gemm", [(FLOAT, [7, 3]), (FLOAT, [5, 7])], transA=1, transB=1) == 2 * 3 * 7 * 5
    assert flops("Gemm", [(FLOAT, [3, 7]), (FLOAT, [7, 5]), (FLOAT, [5])]) == 2 * 3 * 7 * 5 + 15
    assert flops("MatMul", [(FLOAT, [2, 1, 3, 7]), (FLOAT, [4, 7, 5])]) == 2 * (2 * 4 * 3 * 5) * 7
    assert flops("MatMul", [(FLOAT, [7]), (FLOAT, [7])]) == 14
    assert flops("MatMul", [(FLOAT, [7]), (FLOAT, [4, 7, 5])]) == 2 * 4 * 5 * 7
    assert flops("MatMulInteger", [(UINT8, [3, 7]), (UINT8, [7, 5])]) == 2 * 3 * 7 * 5


@pytest.mark.parametrize(
    ("equation", "shapes", "expected"),
    [
        ("ij,jk->ik", [[3, 7], [7, 5]], 2 * 3 * 7 * 5),
        ("bhqd,bhkd->bhqk", [[2, 4, 3, 8], [2, 4, 6, 8]], 2 * 2 * 4 * 3 * 6 * 8),
        ("...ij,...jk->...ik", [[2, 3, 7], [1, 7, 5]], 2 * 2 * 3 * 7 * 5),
        ("i,j,k->ijk", [[2], [3], [4]], 3 * 24),
        ("ii->i", [[5, 5]], 0),
        ("ij->j", [[3, 5]], 15),
        ("ij->ji", [[3, 5]], 0),
    ],
)
def test_einsum(equation: str, shapes: list[list[int]], expected: int) -> None:
    assert flops("Einsum", [(FLOAT, s) for s in shapes], equation=equation) == expected


def test_attention_is_the_sum_of_its_parts() -> None:
    b, hq, hk, length, positions, d, dv = 2, 4, 2, 3, 5, 8, 6
    scores = b * hq * length * positions
    parts = 2 * scores * d + scores + 5 * scores + 2 * scores * dv
    four = [(FLOAT, [b, hq, length, d]), (FLOAT, [b, hk, positions, d]), (FLOAT, [b, hk, positions, dv])]
    assert flops("Attention", four, opset=23) == parts
    three = [(FLOAT, [b, length, hq * d]), (FLOAT, [b, positions, hk * d]), (FLOAT, [b, positions, hk * dv])]
    assert flops("Attention", three, opset=23, q_num_heads=hq, kv_num_heads=hk) == parts
    assert flops("Attention", [*four, (FLOAT, [length, positions])], opset=23) == parts + scores


def test_recurrent_layers() -> None:
    t, b, i, h = 5, 2, 3, 4
    for op, gates, pointwise in (("RNN", 1, 3), ("GRU", 3, 20), ("LSTM", 4, 26)):
        for directions, direction in ((1, "forward"), (2, "bidirectional")):
            inputs = [
                (FLOAT, [t, b, i]),
                (FLOAT, [directions, gates * h, i]),
                (FLOAT, [directions, gates * h, h]),
            ]
            per_step = 2 * gates * h * (i + h) + pointwise * h
            assert flops(op, inputs, hidden_size=h, direction=direction) == directions * t * b * per_step


def test_pooling_normalisation_and_reductions() -> None:
    x = (FLOAT, [2, 3, 8, 8])
    assert flops("MaxPool", [x], kernel_shape=[2, 2], strides=[2, 2]) == 2 * 3 * 16 * 4
    assert flops("AveragePool", [x], kernel_shape=[3, 3], pads=[1, 1, 1, 1]) == 384 * 9
    assert flops("GlobalAveragePool", [x]) == 384
    channels = np.ones(3, np.float32)
    assert flops("BatchNormalization", [x, channels, channels, channels, channels]) == 2 * 384
    assert flops("LayerNormalization", [x, np.ones(8, np.float32)]) == 7 * 384
    assert flops("LRN", [x], size=5) == 9 * 384
    assert flops("GroupNormalization", [x, channels, channels], num_groups=3, opset=21) == 7 * 384
    assert flops("MeanVarianceNormalization", [x]) == 5 * 384
    assert flops("Softmax", [x]) == 5 * 384
    assert flops("ReduceSum", [x, np.array([1])]) == 384
    assert flops("ReduceMean", [x, np.array([2, 3])]) == 384 + 6
    assert flops("ArgMax", [x], axis=1) == 384
    assert flops("TopK", [(FLOAT, [100]), np.array([8])], outputs=2) == 100 * 3


def test_elementwise_ops() -> None:
    a, b = (FLOAT, [4, 1, 3]), (FLOAT, [5, 1])
    assert flops("Add", [a, b]) == 60
    assert flops("Sum", [a, b, b]) == 120
    assert flops("Mean", [a, b, b]) == 180
    assert flops("Sigmoid", [a]) == 48
    assert flops("Clip", [a, np.array(0, np.float32)]) == 24
    assert flops("Where", [(BOOL, [5, 1]), a, a]) == 60
    assert flops("Cast", [a], to=TensorProto.FLOAT16) == 0


def test_resizing_interpolates_over_the_axes_that_change() -> None:
    x, sizes = (FLOAT, [1, 2, 4, 4]), np.array([1, 2, 8, 4])
    assert flops("Resize", [x, None, None, sizes], mode="linear") == 2 * 2 * 64
    assert flops("Resize", [x, None, None, sizes], mode="nearest") == 0
    assert flops("Resize", [x, None, None, np.array([1, 2, 8, 8])], mode="cubic") == 2 * 16 * 128


def accessed(imported: Imported) -> int:
    return int(imported.graph.op_accessed_bytes[0])


def test_picking_rows_reads_the_rows_and_not_the_table() -> None:
    assert accessed(one_op("Gather", [(FLOAT, [50000, 16]), (INT64, [7])])) == 7 * 8 + 2 * 7 * 64
    cut = one_op("Slice", [(FLOAT, [1000, 16]), np.array([0]), np.array([3]), np.array([0])])
    assert accessed(cut) == 2 * 3 * 64 + 3 * 8
    assert accessed(one_op("Transpose", [(FLOAT, [10, 16])])) == 2 * 640
    assert accessed(one_op("Mul", [(FLOAT, [10]), (FLOAT, [10])])) == 120


def test_an_op_that_reads_a_tensor_twice_reads_its_bytes_once() -> None:
    proto = model([node("Mul", ["x", "x"], ["y"])], [("x", FLOAT, [10])], [("y", FLOAT, [10])])
    assert accessed(read_onnx(proto)) == 80


def test_a_formula_that_depends_on_contents_is_listed() -> None:
    inputs = [("x", FLOAT, [1, 2, 8, 8]), ("rois", FLOAT, [3, 4]), ("batch", INT64, [3])]
    for ratio, expected in ((0, None), (2, 8 * 4 * 3 * 2 * 4)):
        proto = model(
            [
                node(
                    "RoiAlign",
                    ["x", "rois", "batch"],
                    ["y"],
                    output_height=2,
                    output_width=2,
                    sampling_ratio=ratio,
                )
            ],
            inputs,
            [("y", FLOAT, None)],
        )
        imported = read_onnx(proto)
        assert imported.report.missing_cost == ({"RoiAlign": 1} if expected is None else {})
        assert imported.graph.op_flops[0] == (expected or 0)
