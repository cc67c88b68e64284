"""Flops of pooling, normalisation, reductions, sorting and sampling."""

from __future__ import annotations

from math import ceil, log2, prod

from .view import Formula, OpView

#: max, subtract, exp, sum, divide (or subtract, for the logarithm).
_SOFTMAX = 5
#: mean, squared deviation (3), scale, and the affine map (2).
_NORMALISE = 7


def _per_input(count: int) -> Formula:
    return lambda v: count * v.elements()


def _reduce(per_input: int, per_output: int = 0) -> Formula:
    return lambda v: per_input * v.elements() + per_output * v.out_elements()


def _pool(per_tap: int) -> Formula:
    return lambda v: per_tap * v.out_elements() * prod(int(k) for k in v.attributes["kernel_shape"])


def _batch_normalization(v: OpView) -> int:
    """A scale and a shift at inference, statistics too in training."""
    training = bool(v.attributes.get("training_mode"))
    return (_NORMALISE if training else 2) * v.elements()


def _local_response(v: OpView) -> int:
    """Square, a sum over ``size`` channels, and scale, add, power, divide."""
    return (int(v.attributes["size"]) + 4) * v.elements()


def _top_k(v: OpView) -> int:
    """A heap of k values: log2(k) comparisons per element."""
    axis = int(v.attributes.get("axis", -1))
    return v.elements() * max(1, ceil(log2(max(2, v.out_shape()[axis]))))


def _sort(v: OpView) -> int:
    n = v.elements()
    return n * max(1, ceil(log2(max(2, n))))


def _determinant(v: OpView) -> int:
    """LU factorisation: 2/3 n^3."""
    n = v.shape()[-1]
    return 2 * n * v.elements() // 3


def _resize(v: OpView) -> int:
    """Interpolation over the axes that change; the nearest neighbour is a copy."""
    shape, out = v.shape(), v.out_shape()
    axes = sum(a != b for a, b in zip(shape, out, strict=True))
    taps = {"nearest": 0, "linear": 2, "bilinear": 2, "cubic": 4}[str(v.attributes.get("mode", "nearest"))]
    return 2 * taps**axes * prod(out) if taps else 0


def _grid_sample(v: OpView) -> int:
    rank = len(v.shape()) - 2
    mode = str(v.attributes.get("mode", "linear"))
    taps = {"nearest": 0, "linear": 2, "bilinear": 2, "cubic": 4, "bicubic": 4}[mode]
    return 2 * taps**rank * v.out_elements() if taps else 0


def _affine_grid(v: OpView) -> int:
    return 2 * v.out_elements() * (v.out_shape()[-1] + 1)


def _roi_align(v: OpView) -> int | None:
    """Bilinear samples per output; how many is the op's own choice where the ratio is 0."""
    ratio = int(v.attributes.get("sampling_ratio", 0))
    return 8 * ratio * ratio * v.out_elements() if ratio > 0 else None


def _fourier(n: int, signals: int, *, real: bool) -> int:
    """5 n log2(n) per complex signal, half of it per real one."""
    full = 5 * n * ceil(log2(max(2, n))) * signals
    return full // 2 if real else full


def _dft(v: OpView) -> int | None:
    shape = v.shape()
    axis_input = v.data[2] if v.has_input(2) else None
    if v.has_input(2) and axis_input is None:
        return None
    axis = int(axis_input.item()) if axis_input is not None else int(v.attributes.get("axis", 1))
    axis = axis + len(shape) if axis < 0 else axis
    length = v.ints("dft_length", 1)
    n = length[0] if length else shape[axis]
    signals = prod(d for i, d in enumerate(shape[:-1]) if i != axis)
    return _fourier(n, signals, real=shape[-1] == 1)


def _stft(v: OpView) -> int | None:
    length = v.ints("frame_length", 3)
    n = v.shape(2)[0] if v.has_input(2) else length[0] if length else None
    if n is None:
        return None
    frames = v.out_shape()[0] * v.out_shape()[1]
    real = len(v.shape()) < 3 or v.shape()[-1] == 1
    return _fourier(n, frames, real=real) + n * frames


def _scatter(data: int) -> Formula:
    """One operation per update where updates are combined, else a copy."""
    return lambda v: 0 if v.attributes.get("reduction", "none") == "none" else v.elements(data)


def _linear_model(v: OpView) -> int:
    """A score per row and class: a product with as many coefficients as there are features."""
    shape = v.shape()
    rows = shape[0] if len(shape) > 1 else 1
    return 2 * rows * len(v.attributes["coefficients"])


FORMULAS: dict[str, Formula] = {
    "MaxPool": _pool(1), "AveragePool": _pool(1), "LpPool": _pool(2),
    "GlobalAveragePool": _per_input(1), "GlobalMaxPool": _per_input(1), "GlobalLpPool": _per_input(2),
    "BatchNormalization": _batch_normalization,
    "InstanceNormalization": _per_input(_NORMALISE),
    "LayerNormalization": _per_input(_NORMALISE),
    "GroupNormalization": _per_input(_NORMALISE),
    "MeanVarianceNormalization": _per_input(_NORMALISE - 2),
    "RMSNormalization": _per_input(4),  # square, add, scale, weight
    "LpNormalization": _per_input(3),
    "LRN": _local_response,
    "Softmax": _per_input(_SOFTMAX), "LogSoftmax": _per_input(_SOFTMAX), "Hardmax": _per_input(1),
    "SoftmaxCrossEntropyLoss": _per_input(_SOFTMAX),
    "NegativeLogLikelihoodLoss": lambda v: 2 * v.elements(1),
    "ReduceMax": _reduce(1), "ReduceMin": _reduce(1), "ReduceProd": _reduce(1), "ReduceSum": _reduce(1),
    "ReduceMean": _reduce(1, 1), "ReduceL1": _reduce(2), "ReduceL2": _reduce(2, 1),
    "ReduceSumSquare": _reduce(2),
    "ReduceLogSum": _reduce(1, 1), "ReduceLogSumExp": _reduce(4, 1),
    "ArgMax": _reduce(1), "ArgMin": _reduce(1), "CumSum": _reduce(1), "CumProd": _reduce(1),
    "TopK": _top_k, "Unique": _sort, "NonZero": _per_input(1), "Det": _determinant,
    "Resize": _resize, "Upsample": _resize, "GridSample": _grid_sample, "AffineGrid": _affine_grid,
    "RoiAlign": _roi_align, "Col2Im": _per_input(1), "DFT": _dft, "STFT": _stft,
    "ScatterElements": _scatter(2), "ScatterND": _scatter(2),
    "ai.onnx.ml.LinearRegressor": _linear_model, "ai.onnx.ml.LinearClassifier": _linear_model,
}  # fmt: skip
