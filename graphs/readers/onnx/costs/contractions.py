"""Flops of products: convolutions, matrix products, attention, recurrent layers. A multiply-add is 2."""

from __future__ import annotations

from math import prod

from .view import Formula, OpView

#: Operations per output element to bring an integer product back to 8 bits: scale, round, shift.
_REQUANTIZE = 3
#: Operations per element of the scores of attention: scale, and softmax (see ``reductions``).
_SOFTMAX = 5
#: Reading a value between grid points: 4 multiply-adds.
_BILINEAR = 8


def _conv(v: OpView, weight: int = 1, bias: int | None = 2) -> int:
    """Each output is a product over the input channels of its group and the kernel."""
    kernel = v.shape(weight)
    out = v.out_elements()
    return 2 * out * prod(kernel[1:]) + (out if bias is not None and v.has_input(bias) else 0)


def _conv_transpose(v: OpView) -> int:
    """Each input is spread over the output channels of its group and the kernel."""
    kernel = v.shape(1)
    return 2 * v.elements(0) * prod(kernel[1:]) + (v.out_elements() if v.has_input(2) else 0)


def _deform_conv(v: OpView) -> int:
    kernel = v.shape(1)
    out = v.out_elements()
    groups = int(v.attributes.get("group", 1))
    sampled = out // max(1, kernel[0]) * kernel[1] * groups * prod(kernel[2:])
    return 2 * out * prod(kernel[1:]) + _BILINEAR * sampled + (out if v.has_input(3) else 0)


def _qlinear_conv(v: OpView) -> int:
    return _conv(v, weight=3, bias=8) + _REQUANTIZE * v.out_elements()


def _gemm(v: OpView) -> int:
    a = v.shape(0)
    depth = a[0] if v.attributes.get("transA") else a[1]
    out = v.out_elements()
    return 2 * out * depth + (out if v.has_input(2) else 0)


def _matmul(v: OpView) -> int:
    return 2 * v.out_elements() * v.shape(0)[-1]


def _qlinear_matmul(v: OpView) -> int:
    return _matmul(v) + _REQUANTIZE * v.out_elements()


def _einsum(v: OpView) -> int:
    """The product over all labels at once, as the equation is written."""
    equation = str(v.attributes["equation"]).replace(" ", "")
    terms = equation.split("->")[0].split(",")
    if len(terms) != len(v.inputs):
        raise ValueError
    size: dict[str, int] = {}
    wild: list[int] = []  # sizes under the ellipsis, last axis first
    for index, term in enumerate(terms):
        shape = list(v.shape(index))
        head, dots, tail = term.partition("...")
        named = len(head) + len(tail)
        if len(shape) < named or (not dots and len(shape) != named):
            raise ValueError
        middle = shape[len(head) : len(shape) - len(tail)]
        for label, length in zip(
            head + tail, shape[: len(head)] + shape[len(shape) - len(tail) :], strict=True
        ):
            size[label] = max(size.get(label, 1), length) if length else 0
        for axis, length in enumerate(reversed(middle)):
            if axis == len(wild):
                wild.append(1)
            wild[axis] = max(wild[axis], length) if length else 0
    everything = prod(size.values()) * prod(wild)
    if len(terms) == 1:
        return everything if everything != v.out_elements() else 0
    return len(terms) * everything


def _attention(v: OpView) -> int:
    """Scaled dot product attention (opset 23) over all positions, masked ones included."""
    q, k, value = v.shape(0), v.shape(1), v.shape(2)
    if len(q) == 4:
        batch, heads, length, depth = q
        positions, value_depth = k[2], value[3]
    else:
        heads = int(v.attributes["q_num_heads"])
        kv_heads = int(v.attributes["kv_num_heads"])
        batch, length, depth = q[0], q[1], q[2] // heads
        positions, value_depth = k[1], value[2] // kv_heads
    if v.has_input(4):
        positions += v.shape(4)[2]  # the cache of earlier keys
    scores = batch * heads * length * positions
    mask = scores if v.has_input(3) else 0
    return scores * (2 * depth + 1 + _SOFTMAX + 2 * value_depth) + mask


def _linear_attention(v: OpView) -> int:
    """Per position and head: an update of the state by an outer product, and a product with the query."""
    query, key, value = v.shape(0), v.shape(1), v.shape(2)
    heads, kv_heads = int(v.attributes["q_num_heads"]), int(v.attributes["kv_num_heads"])
    state = key[2] // kv_heads * (value[2] // kv_heads)
    rule = str(v.attributes.get("update_rule", "gated_delta"))
    update = 2 + ("gated" in rule) + 2 * ("delta" in rule)
    return query[0] * query[1] * state * (update * kv_heads + 2 * heads)


def _causal_conv(v: OpView) -> int:
    """A depthwise convolution over past positions, with an optional fused swish."""
    out = v.out_elements()
    swish = 5 if str(v.attributes.get("activation", "none")) != "none" else 0
    return out * (2 * v.shape(1)[-1] + v.has_input(2) + swish)


def _recurrent(gates: int, pointwise: int) -> Formula:
    """A recurrent layer: so many products of input and state per step, and operations per unit."""

    def formula(v: OpView) -> int:
        steps, batch, features = v.shape(0)
        if v.attributes.get("layout"):
            steps, batch = batch, steps
        directions, _, hidden = v.shape(2)
        products = 2 * gates * hidden * (features + hidden)
        return directions * steps * batch * (products + pointwise * hidden)

    return formula


FORMULAS: dict[str, Formula] = {
    "Conv": _conv,
    "ConvInteger": lambda v: _conv(v, bias=None),
    "ConvTranspose": _conv_transpose,
    "DeformConv": _deform_conv,
    "QLinearConv": _qlinear_conv,
    "Gemm": _gemm,
    "MatMul": _matmul,
    "MatMulInteger": _matmul,
    "QLinearMatMul": _qlinear_matmul,
    "Einsum": _einsum,
    "Attention": _attention,
    "ai.onnx.preview.FlexAttention": _attention,
    "LinearAttention": _linear_attention,
    "CausalConvWithState": _causal_conv,
    # bias and sum of both products per gate, sigmoids of 4 operations, tanh of 1, and the update of the state
    "RNN": _recurrent(1, 3),
    "GRU": _recurrent(3, 20),
    "LSTM": _recurrent(4, 26),
}
