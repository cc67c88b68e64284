"""Flops of HLO instructions, by own formulas; a call without a formula is reported, not guessed.

A multiply-add is 2. Element by element every addition, comparison and elementary function is 1, composite
functions count their parts, moving or converting an element is 0. Padding counts as elements do; the zeros
between the elements of a dilated input (the gradient of a strided convolution) do not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import ceil, log2, prod

from .attributes import BadAttributeError, axes, dim_labels, ints, window
from .module import Instruction
from .shapes import ArrayShape, leaves


@dataclass(frozen=True, slots=True)
class CostView:
    """What a formula sees of an instruction.

    Attributes:
        instruction: The instruction.
        operands: The instructions that it reads.
        flops_of: Flops of one run of each computation that it calls, by name.
    """

    instruction: Instruction
    operands: list[Instruction]
    flops_of: Mapping[str, int]

    @property
    def attributes(self) -> Mapping[str, str]:
        """Attributes of the instruction, as text."""
        return self.instruction.attributes

    def array(self, position: int) -> ArrayShape:
        """Shape of an operand that is an array.

        Raises:
            BadAttributeError: There is no such operand, or it is a tuple.
        """
        shape = self.operands[position].shape if position < len(self.operands) else None
        if not isinstance(shape, ArrayShape):
            raise BadAttributeError(f"operand {position} is missing or a tuple; expected an array")
        return shape

    def out(self) -> ArrayShape:
        """The result, or its first array."""
        return next(leaves(self.instruction.shape), ArrayShape("token", ()))

    def applied(self, key: str = "to_apply") -> int:
        """Flops of one run of the computation that an attribute names; 0 where it names none."""
        return self.flops_of.get(self.attributes.get(key, "").lstrip("%"), 0)


#: Flops of an instruction; ``None`` where they are unknown.
Formula = Callable[[CostView], int | None]

_MOVES = (
    "add-dependency", "after-all", "all-gather", "all-to-all", "bitcast", "bitcast-convert", "broadcast",
    "collective-broadcast", "collective-permute", "complex", "concatenate", "constant", "convert", "copy",
    "domain", "dynamic-reshape", "dynamic-slice", "dynamic-update-slice", "gather", "get-dimension-size",
    "get-tuple-element", "imag", "infeed", "iota", "opt-barrier", "outfeed", "pad", "parameter",
    "partition-id", "ragged-all-to-all", "real", "recv", "replica-id", "reshape", "reverse",
    "rng-get-and-update-state", "send", "set-dimension-size", "shuffle", "slice", "transpose", "tuple",
)  # fmt: skip
_ONE_PER_ELEMENT = (
    "abs", "acos", "acosh", "add", "and", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "ceil",
    "compare", "cosine", "cosh", "count-leading-zeros", "divide", "erf", "exponential",
    "exponential-minus-one", "floor", "is-finite", "log", "log-plus-one", "maximum", "minimum", "mulhi",
    "multiply", "negate", "not", "or", "popcnt", "power", "reduce-precision", "remainder",
    "round-nearest-afz", "round-nearest-even", "rsqrt", "select", "shift-left", "shift-right-arithmetic",
    "shift-right-logical", "sign", "sine", "sinh", "sqrt", "stochastic-convert", "subtract", "tan", "tanh",
    "xor",
)  # fmt: skip
_PER_ELEMENT = dict.fromkeys(_ONE_PER_ELEMENT, 1) | {
    "clamp": 2,
    "logistic": 4,  # negate, exp, add, divide
}
#: What the parts of a complex number cost.
_COMPLEX = {"add": 2, "subtract": 2, "negate": 2, "multiply": 6, "divide": 11}
#: Instructions that give each element from the elements at the same place.
ELEMENTWISE = frozenset(_PER_ELEMENT) | {"convert", "complex", "real", "imag"}
#: max, subtract, exp, sum, divide.
_SOFTMAX = 5
#: mean, squared deviation (3), scale, and the affine map (2).
_NORMALISE = 7
#: Sum of the gradient (1), normalised input (2), its product with the gradient and the sum of that (2), and
#: the gradient of the input from these (4).
_NORMALISE_GRADIENT = 9


def _per_element(count: int, opcode: str) -> Formula:
    complex_count = _COMPLEX.get(opcode, count)
    return lambda v: (complex_count if v.out().is_complex else count) * v.out().elements


def multiply_add(shape: ArrayShape) -> int:
    """Flops of one product and one sum of such elements."""
    return 8 if shape.is_complex else 2


def _dot(v: CostView) -> int:
    left = v.array(0)
    contracted = axes(v.attributes, "lhs_contracting_dims", len(left.dims))
    return multiply_add(left) * v.out().elements * prod(left.dims[axis] for axis in contracted)


def _ragged_dot(v: CostView) -> int:
    """Each row meets the matrix of its group only."""
    left = v.array(0)
    return multiply_add(left) * v.out().elements * left.dims[-1]


def _convolution(v: CostView) -> int:
    """Each output is a product over the input channels of its group and the taps of the window."""
    _, kernel_labels, out_labels = dim_labels(v.attributes)
    kernel, out = v.array(1), v.out()
    moved = window(v.attributes)
    spatial = sorted(label for label in out_labels if label.isdigit())
    if len(kernel.dims) != len(kernel_labels) or len(out.dims) != len(out_labels):
        raise BadAttributeError(f"dim_labels={v.attributes['dim_labels']!r} do not fit {kernel} and {out}")
    if spatial and len(moved.size) != len(spatial):
        raise BadAttributeError(f"a window of {len(moved.size)} axes over {len(spatial)} spatial ones")
    products = kernel.dims[kernel_labels.index("i")]
    for axis, label in enumerate(spatial):
        products *= moved.taps(axis, out.dims[out_labels.index(label)])
    rest = prod(out.dims[out_labels.index(label)] for label in "bf")
    return multiply_add(kernel) * rest * products


def _reduce(v: CostView) -> int:
    return v.array(0).elements * v.applied()


def _reduce_window(v: CostView) -> int:
    return v.out().elements * prod(window(v.attributes).size) * v.applied()


def _scatter(v: CostView) -> int:
    """Each update is combined once; the operands are inputs, indices, updates."""
    return v.array(len(v.operands) - 1).elements * v.applied()


def _select_and_scatter(v: CostView) -> int:
    """For each element of the source the window is searched, then one element is added."""
    taps = prod(window(v.attributes).size)
    return v.array(1).elements * (taps * v.applied("select") + v.applied("scatter"))


def _map(v: CostView) -> int:
    return v.out().elements * v.applied()


def _sort(v: CostView) -> int:
    shape = v.array(0)
    axis = axes(v.attributes, "dimensions", len(shape.dims)) or (len(shape.dims) - 1,)
    length = shape.dims[axis[0]] if shape.dims else 1
    return shape.elements * max(1, ceil(log2(max(2, length)))) * max(1, v.applied())


def _top_k(v: CostView) -> int:
    """A heap of k values: log2(k) comparisons per element."""
    kept = v.out().dims[-1] if v.out().dims else 1
    return v.array(0).elements * max(1, ceil(log2(max(2, kept))))


def _fft(v: CostView) -> int:
    """5 n log2(n) per complex signal, half of it per real one."""
    n = prod(ints(v.attributes, "fft_length"))
    signals = max(v.array(0).elements, v.out().elements) // max(1, n)
    full = 5 * n * ceil(log2(max(2, n))) * signals
    return full // 2 if v.attributes.get("fft_type") in ("RFFT", "IRFFT") else full


def _cholesky(v: CostView) -> int:
    """n^3 / 3 per matrix."""
    shape = v.array(0)
    return shape.elements * (shape.dims[-1] if shape.dims else 1) // 3


def _triangular_solve(v: CostView) -> int:
    """n^2 per right-hand side: one multiply-add per element of the triangle."""
    matrix = v.array(0)
    return v.out().elements * (matrix.dims[-1] if matrix.dims else 1)


def _collective(v: CostView) -> int:
    """One combination per element; how many devices take part is not the graph's matter."""
    elements = sum(v.array(position).elements for position in range(len(v.operands)))
    return elements * max(1, v.applied())


def _per_input(count: int) -> Formula:
    return lambda v: count * v.array(0).elements


def _per_output(count: int) -> Formula:
    return lambda v: count * v.out().elements


def _matmul_call(v: CostView) -> int:
    """A matrix product by a library: the last axis of the left side is summed over, or the one before."""
    left = v.array(0)
    if not left.dims:
        raise BadAttributeError("the left side of a matrix product is a scalar")
    configuration = v.attributes.get("backend_config", "")
    named = re.search(
        r'"lhs_contracting_dimensions":\[((?:"?\d{1,9}"?,?)*)\]', configuration.replace("\\", "")
    )
    if named is not None:
        summed = [int(axis) for axis in re.findall(r"\d+", named[1])]
        if any(axis >= len(left.dims) for axis in summed):
            raise BadAttributeError(f"contracts axis {max(summed)} of {left}")
        return multiply_add(left) * v.out().elements * prod(left.dims[axis] for axis in summed)
    transposed = re.search(r'"transpose_a":\s*true', configuration.replace("\\", "")) is not None
    return multiply_add(left) * v.out().elements * left.dims[-2 if transposed and len(left.dims) > 1 else -1]


def _no_flops(v: CostView) -> int:
    return 0


#: Flops of calls into libraries, by target.
CALLS: dict[str, Formula] = {
    "__onednn$matmul": _matmul_call,
    "__onednn$matmul_reorder": _no_flops,
    "__onednn$convolution": _convolution,
    "__onednn$softmax": _per_input(_SOFTMAX),
    "__onednn$layernorm": _per_input(_NORMALISE),
    "__cublas$gemm": _matmul_call,
    "__cublas$lt$matmul": _matmul_call,
    "__cublas$lt$matmul$f8": _matmul_call,
    "__cudnn$convForward": _convolution,
    "__cudnn$convBackwardInput": _convolution,
    "__cudnn$convBackwardFilter": _convolution,
    "__cudnn$convBiasActivationForward": _convolution,
    "TopK": _top_k,
    "ApproxTopK": _top_k,
    "__gpu$TopK": _top_k,
    "AllocateBuffer": _no_flops,
    "AssumeGatherIndicesInBound": _no_flops,
    "LayoutConstraint": _no_flops,
    "MoveToDevice": _no_flops,
    "MoveToHost": _no_flops,
    "Sharding": _no_flops,
    "SPMDFullToShardShape": _no_flops,
    "SPMDShardToFullShape": _no_flops,
    "annotate_device_placement": _no_flops,
    "lapack_spotrf_ffi": _cholesky,
    "lapack_dpotrf_ffi": _cholesky,
    "blas_strsm": _triangular_solve,
    "blas_dtrsm": _triangular_solve,
    "lapack_strsm_ffi": _triangular_solve,
    "lapack_dtrsm_ffi": _triangular_solve,
}


def call_target(instruction: Instruction) -> str:
    """What a ``custom-call`` calls."""
    return instruction.attributes.get("custom_call_target", "").strip('"')


def _custom_call(v: CostView) -> int | None:
    formula = CALLS.get(call_target(v.instruction))
    if formula is None and "called_computations" in v.attributes:
        return sum(v.flops_of.get(name, 0) for name in v.instruction.callees)
    return None if formula is None else formula(v)


def _called(v: CostView) -> int:
    """All computations that it runs, once each."""
    return sum(v.flops_of[name] for name in v.instruction.callees)


def _conditional(v: CostView) -> int:
    return max((v.flops_of[name] for name in v.instruction.callees), default=0)


def _while(v: CostView) -> int:
    """The body and its condition for each turn; one turn where their number is unknown."""
    turns = v.instruction.turns
    return (1 if turns is None else turns) * (v.applied("body") + v.applied("condition"))


FORMULAS: dict[str, Formula] = (
    dict.fromkeys(_MOVES, _no_flops)
    | {opcode: _per_element(count, opcode) for opcode, count in _PER_ELEMENT.items()}
    | {
        "all-reduce": _collective,
        "reduce-scatter": _collective,
        "collective-reduce": _collective,
        "batch-norm-grad": _per_input(_NORMALISE_GRADIENT),
        "batch-norm-inference": _per_input(2),
        "batch-norm-training": _per_input(_NORMALISE),
        "call": _called,
        "cholesky": _cholesky,
        "conditional": _conditional,
        "convolution": _convolution,
        "custom-call": _custom_call,
        "dot": _dot,
        "fft": _fft,
        "fusion": _called,
        "map": _map,
        "ragged-dot": _ragged_dot,
        "reduce": _reduce,
        "reduce-window": _reduce_window,
        "rng": _per_output(1),
        "rng-bit-generator": lambda v: sum(leaf.elements for leaf in leaves(v.instruction.shape)),
        "scaled-dot": _dot,
        "scan": lambda v: None,
        "scatter": _scatter,
        "select-and-scatter": _select_and_scatter,
        "sort": _sort,
        "topk": _top_k,
        "triangular-solve": _triangular_solve,
        "while": _while,
    }
)
