"""Flops of ops that work element by element.

Counted per element: every addition, multiplication, comparison and elementary function (exp, log, sqrt, tanh,
erf, ...) is 1. Moving or converting an element is 0.
"""

from __future__ import annotations

from .view import Formula, OpView

#: Kinds of one operation per output element.
_ONE = (
    "Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Cos", "Cosh", "Erf", "Exp", "Floor",
    "IsInf", "IsNaN", "Log", "Neg", "Not", "Reciprocal", "Round", "Sign", "Sin", "Sinh", "Sqrt", "Tan",
    "Tanh", "Relu", "BitwiseNot", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Add", "Sub", "Mul",
    "Div", "Mod", "Pow", "And", "Or", "Xor", "Where", "Equal", "Less", "LessOrEqual", "Greater",
    "GreaterOrEqual", "ThresholdedRelu",
)  # fmt: skip
#: Operations per output element.
_PER_ELEMENT = dict.fromkeys(_ONE, 1) | {
    "Clip": 2,
    "LeakyRelu": 2,
    "PRelu": 2,
    "Shrink": 3,
    "Sigmoid": 4,  # negate, exp, add, divide
    "Elu": 4,  # compare, exp, subtract, multiply
    "Selu": 5,  # as Elu, and a scale
    "Celu": 7,  # divide, exp, subtract, multiply, min, max, add
    "Softplus": 3,  # exp, add, log
    "Softsign": 3,  # abs, add, divide
    "HardSigmoid": 4,  # multiply, add, min, max
    "HardSwish": 5,  # as HardSigmoid, and a multiplication
    "Gelu": 5,  # scale, erf, add, two multiplications
    "Mish": 5,  # softplus, tanh, multiply
    "Swish": 5,  # sigmoid, multiply
    "SwiGLU": 6,  # swish, multiply
    "RotaryEmbedding": 3,  # two multiplications, one addition
    "DequantizeLinear": 2,  # shift, scale
    "QuantizeLinear": 3,  # scale, round, shift
    "Cast": 0, "CastLike": 0, "BitCast": 0,
    "RandomNormal": 1, "RandomNormalLike": 1, "RandomUniform": 1, "RandomUniformLike": 1, "Bernoulli": 1,
    "Range": 2, "HannWindow": 4, "HammingWindow": 4, "BlackmanWindow": 7,
}  # fmt: skip

#: Kinds that give each output element from the elements at the same place, and so may run in place.
ELEMENTWISE = frozenset(_PER_ELEMENT) - {
    "RotaryEmbedding", "Range", "HannWindow", "HammingWindow", "BlackmanWindow", "RandomNormal",
    "RandomUniform", "RandomNormalLike", "RandomUniformLike",
} | {"Sum", "Mean", "Max", "Min", "Dropout", "BatchNormalization"}  # fmt: skip


def _per_element(count: int) -> Formula:
    return lambda v: count * v.out_elements()


def _combine(v: OpView) -> int:
    """One operation less than there are inputs."""
    return max(0, len(v.inputs) - 1) * v.out_elements()


def _dropout(v: OpView) -> int:
    """Draw, compare, scale in training; a copy at inference (an op only if its mask is read)."""
    training = v.data[2] if v.has_input(2) else None
    trains = v.has_input(2) and (training is None or bool(training.any()))
    return 3 * v.out_elements() if trains else 0


FORMULAS: dict[str, Formula] = {kind: _per_element(count) for kind, count in _PER_ELEMENT.items()} | {
    "Sum": _combine,
    "Max": _combine,
    "Min": _combine,
    "Mean": lambda v: len(v.inputs) * v.out_elements(),
    "Dropout": _dropout,
    "DynamicQuantizeLinear": lambda v: 5 * v.elements(),  # smallest, largest, and QuantizeLinear
    "ai.onnx.ml.Binarizer": _per_element(1),
    "ai.onnx.ml.Imputer": _per_element(1),
    "ai.onnx.ml.Normalizer": _per_element(3),
    "ai.onnx.ml.Scaler": _per_element(2),
}
