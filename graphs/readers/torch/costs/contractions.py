"""Flops of products: convolutions, matrix products, attention. A multiply-add is 2."""

from __future__ import annotations

from math import prod

from .call import Call, Formula

#: Operations per score of attention: scale, and softmax (see ``reductions``).
_SCALE, _SOFTMAX = 1, 5
#: Per score, backward: scale, the exponential of score - logsumexp, and P * (dP - sum), scale.
_SCORE_BACKWARD = 6


def _products(c: Call, output_elements: int) -> int:
    """The multiply-adds of a convolution, at 2 each.

    Each output is a product over the input channels of its group and the kernel; transposed, each input is
    spread over the output channels of its group and the kernel. The second dimension of the weight is those
    channels in either case.
    """
    spread = c.elements("input") if c.value("transposed", False) else output_elements
    return 2 * spread * prod(c.shape("weight")[1:])


def _convolution(c: Call) -> int:
    out = c.out_elements()
    return _products(c, out) + (out if c.has("bias") else 0)


def _convolution_backward(c: Call) -> int:
    """The gradients of input and weight take the forward products each; that of the bias is a sum."""
    out = c.elements("grad_output")
    to_input, to_weight, to_bias = c.mask()
    return (to_input + to_weight) * _products(c, out) + (out if to_bias else 0)


def _mm(c: Call) -> int:
    name = "mat1" if "mat1" in c.traits.names else "self"
    return 2 * c.out_elements() * c.shape(name)[-1]


def _addmm(c: Call) -> int:
    return _mm(c) + c.out_elements()


def _bmm(c: Call) -> int:
    name = "batch1" if "batch1" in c.traits.names else "self"
    return 2 * c.out_elements() * c.shape(name)[-1]


def _baddbmm(c: Call) -> int:
    return _bmm(c) + c.out_elements()


def _addbmm(c: Call) -> int:
    """Products summed over the batch, and the addend."""
    batch, _, depth = c.shape("batch1")
    return 2 * batch * depth * c.out_elements() + c.out_elements()


def _matrix_vector(c: Call) -> int:
    name = "mat" if "mat" in c.traits.names else "self"
    added = c.out_elements() if c.traits.kind == "addmv" else 0
    return 2 * c.elements(name) + added


def _outer_added(c: Call) -> int:
    return 2 * c.out_elements()


def _linear(c: Call) -> int:
    out = c.out_elements()
    return 2 * out * c.shape("weight")[-1] + (out if c.has("bias") else 0)


def _trilinear(c: Call) -> int:
    """A sum over all dimensions of a product of three."""
    sizes: list[int] = [max(lengths) for lengths in zip(*_unsqueezed(c), strict=True)]
    return 3 * prod(sizes)


def _unsqueezed(c: Call) -> list[list[int]]:
    shapes: list[list[int]] = []
    for i in (1, 2, 3):
        shape = list(c.shape(f"i{i}"))
        for axis in sorted(c.value(f"expand{i}")):
            shape.insert(int(axis), 1)
        shapes.append(shape)
    return shapes


def _scores(c: Call) -> tuple[int, int, int]:
    """Scores of attention over all positions, masked ones included; widths of keys and of values."""
    *batch, length, depth = c.shape("query")
    return prod(batch) * length * c.shape("key")[-2], depth, c.shape("value")[-1]


def _mask_added(c: Call, scores: int) -> int:
    return scores if any(c.has(name) for name in ("attn_mask", "attn_bias")) else 0


def _attention(c: Call) -> int:
    scores, depth, value_depth = _scores(c)
    return scores * (2 * depth + _SCALE + _SOFTMAX + 2 * value_depth) + _mask_added(c, scores)


def _attention_backward(c: Call) -> int:
    """Scores again, then the gradients of values, probabilities, queries and keys: five products.

    The row sums of gradient times output are a product per element of the output and a sum.
    """
    scores, depth, value_depth = _scores(c)
    products = 2 * (3 * depth + 2 * value_depth)
    sums = 2 * c.elements("out")
    return scores * (products + _SCORE_BACKWARD) + sums + _mask_added(c, scores)


FORMULAS: dict[str, Formula] = {
    "convolution": _convolution,
    "_convolution": _convolution,
    "convolution_overrideable": _convolution,
    "convolution_backward": _convolution_backward,
    "mm": _mm,
    "_int_mm": _mm,
    "addmm": _addmm,
    "bmm": _bmm,
    "baddbmm": _baddbmm,
    "addbmm": _addbmm,
    "mv": _matrix_vector,
    "addmv": _matrix_vector,
    "dot": lambda c: 2 * c.elements("self"),
    "vdot": lambda c: 2 * c.elements("self"),
    "addr": _outer_added,
    "linear": _linear,
    "_trilinear": _trilinear,
    "_scaled_dot_product_flash_attention": _attention,
    "_scaled_dot_product_flash_attention_for_cpu": _attention,
    "_scaled_dot_product_efficient_attention": _attention,
    "_scaled_dot_product_cudnn_attention": _attention,
    "_scaled_dot_product_fused_attention_overrideable": _attention,
    "_scaled_dot_product_flash_attention_backward": _attention_backward,
    "_scaled_dot_product_flash_attention_for_cpu_backward": _attention_backward,
    "_scaled_dot_product_efficient_attention_backward": _attention_backward,
    "_scaled_dot_product_cudnn_attention_backward": _attention_backward,
    "_scaled_dot_product_fused_attention_overrideable_backward": _attention_backward,
}
