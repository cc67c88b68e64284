"""Flops of operators that work element by element.

Counted per output element: every addition, multiplication, comparison and elementary function (exp, log, sqrt,
tanh, erf, ...) is 1. Moving or converting an element is 0.
"""

from __future__ import annotations

from .call import Call, Formula

#: One operation per element.
_ONE = (
    "abs", "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "bitwise_and", "bitwise_left_shift",
    "bitwise_not", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "ceil", "clamp_max", "clamp_min",
    "conj_physical", "copysign", "cos", "cosh", "digamma", "div", "eq", "erf", "erfc", "erfinv", "exp", "exp2",
    "expm1", "floor", "floor_divide", "fmax", "fmin", "fmod", "ge", "gt", "heaviside", "i0", "isfinite",
    "isinf", "isnan", "isneginf", "isposinf", "le", "lgamma", "log", "log10", "log1p", "log2", "logical_and",
    "logical_not", "logical_or", "logical_xor", "lt", "maximum", "minimum", "mul", "ne", "neg", "nextafter",
    "pow", "reciprocal", "relu", "remainder", "round", "rsqrt", "sgn", "sign", "signbit", "sin", "sinh", "sqrt",
    "square", "tan", "tanh", "threshold", "threshold_backward", "trunc", "where", "xlogy", "hypot", "ldexp",
    "__and__", "__or__", "__xor__", "__lshift__", "__rshift__", "special_ndtri",
    "bernoulli", "cauchy", "exponential", "geometric", "normal", "normal_functional", "rand", "rand_like",
    "randint", "randint_like", "randn", "randn_like", "random", "randperm", "uniform", "nan_to_num", "angle",
)  # fmt: skip
_PER_ELEMENT = dict.fromkeys(_ONE, 1) | {
    "clamp": 2,
    "hardtanh": 2,
    "hardtanh_backward": 3,  # two comparisons, select
    "leaky_relu": 2,
    "leaky_relu_backward": 2,
    "_prelu_kernel": 2,
    "softshrink": 2,
    "softshrink_backward": 2,
    "hardshrink": 2,
    "sigmoid": 4,  # negate, exp, add, divide
    "sigmoid_backward": 3,  # 1 - y, two products
    "tanh_backward": 3,  # y * y, 1 - that, product
    "elu": 4,  # compare, exp, subtract, multiply
    "elu_backward": 3,
    "softplus": 3,  # exp, add, log
    "softplus_backward": 4,  # exp, add, divide, multiply
    "hardsigmoid": 4,  # multiply, add, min, max
    "hardsigmoid_backward": 3,
    "hardswish": 5,
    "hardswish_backward": 5,
    "mish": 5,  # softplus, tanh, multiply
    "mish_backward": 12,
    "silu": 5,  # sigmoid, multiply
    "silu_backward": 9,  # sigmoid, 1 - s, times x, add 1, two products
    "log_sigmoid_forward": 4,
    "log_sigmoid_backward": 5,
    "logit": 3,
    "special_entr": 3,
    "lerp": 3,  # subtract, multiply, add
    "native_dropout_backward": 2,
    "linspace": 2,
    "logspace": 3,
    "_conj_physical": 1,
}  # fmt: skip


def _per_element(count: int) -> Formula:
    return lambda c: count * c.all_elements()


def _first_output(count: int) -> Formula:
    return lambda c: count * c.out_elements()


def _scaled_sum(c: Call) -> int:
    """A sum, and a product where the second operand is scaled."""
    scaled = "alpha" in c.traits.names and c.value("alpha", 1) != 1
    return (2 if scaled else 1) * c.all_elements()


def _product_added(c: Call) -> int:
    """Product (or quotient), scale, sum."""
    scaled = "value" not in c.traits.names or c.value("value", 1) != 1
    return (3 if scaled else 2) * c.all_elements()


def _gelu(c: Call) -> int:
    """Scale, erf, add, two products; by tanh: a cube, a scaled sum, scale, tanh, add, two products."""
    return (9 if c.value("approximate", "none") == "tanh" else 5) * c.out_elements()


def _gelu_backward(c: Call) -> int:
    """The distribution function (4), the density (square, scale, exp, scale), and their use (3)."""
    return (18 if c.value("approximate", "none") == "tanh" else 11) * c.out_elements()


def _dropout(c: Call) -> int:
    """Draw, compare, scale in training; a copy else."""
    return 3 * c.out_elements() if c.value("train", True) is not False else 0


FORMULAS: dict[str, Formula] = {kind: _per_element(count) for kind, count in _PER_ELEMENT.items()} | {
    "add": _scaled_sum,
    "sub": _scaled_sum,
    "rsub": _scaled_sum,
    "addcmul": _product_added,
    "addcdiv": _product_added,
    "gelu": _gelu,
    "gelu_backward": _gelu_backward,
    "native_dropout": _dropout,
    "glu": _first_output(5),  # sigmoid, multiply
    "glu_backward": lambda c: 8 * c.elements("grad_output"),
    "_prelu_kernel_backward": _first_output(3),
    "rrelu_with_noise": _first_output(3),
    "rrelu_with_noise_backward": _first_output(2),
    "frexp": _first_output(1),
}
