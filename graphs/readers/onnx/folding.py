"""Ops that shapes are computed with, computed while reading; they follow ONNX's definitions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import NodeProto

from .constants import MAX_FOLLOWED_BYTES, attributes, is_followed
from .types import TensorType, Value, numbers, numpy_dtype

Array = NDArray[Any]


@dataclass(frozen=True)
class _Call:
    """One node with known inputs."""

    inputs: Sequence[Array | None]
    attributes: Mapping[str, Any]
    results: int

    def __getitem__(self, index: int) -> Array:
        value = self.inputs[index]
        if value is None:
            raise IndexError
        return value

    def optional(self, index: int) -> Array | None:
        return self.inputs[index] if index < len(self.inputs) else None

    def ints(self, name: str, index: int) -> list[int] | None:
        """Integers that are an attribute in old opsets and an input in new ones."""
        if name in self.attributes:
            return numbers(self.attributes[name])
        value = self.optional(index)
        return None if value is None else numbers(value.reshape(-1))


def fold(node: NodeProto, inputs: Sequence[Value | None], types: Sequence[TensorType]) -> list[Array] | None:
    """Computes a node whose inputs are known, if it is of a kind that shapes are computed with.

    Args:
        node: The node.
        inputs: Its inputs; ``None`` for one left out.
        types: Inferred types of its outputs.

    Returns:
        Contents of its outputs, or ``None``: not known, too large, or not of such a kind.
    """
    rule = _RULES.get(node.op_type) if node.domain in ("", "ai.onnx") else None
    if rule is None:
        return None
    arrays: list[Array | None] = []
    for value in inputs:
        if value is None:
            arrays.append(None)
        elif node.op_type in ("Shape", "Size"):
            if value.type.shape is None:
                return None
            arrays.append(np.array(value.type.shape, np.int64))
        elif value.data is None:
            return None
        else:
            arrays.append(value.data)
    if any(t.shape is not None and not is_followed(t) for t in types):
        return None  # before computing: how large the result is, is up to the file
    if node.op_type in _NEEDS_SHAPE and any(t.shape is None for t in types):
        return None
    call = _Call(arrays, attributes(node), len(node.output))
    try:
        with np.errstate(all="ignore"):
            result = rule(call)
    except (ValueError, IndexError, KeyError, TypeError, ZeroDivisionError, OverflowError, MemoryError):
        return None
    results = result if isinstance(result, list) else [result]
    if len(results) < len(types):
        return None
    converted = []
    for array, kind in zip(results, types, strict=False):
        dtype = numpy_dtype(kind.element)
        array = np.asarray(array)
        if (
            dtype is None
            or array.nbytes >= MAX_FOLLOWED_BYTES
            or (kind.shape is not None and kind.shape != array.shape)
        ):
            return None
        converted.append(array.astype(dtype))
    return converted


#: Ops whose result may be of any size: computed only if the inferred shape is known to be small.
_NEEDS_SHAPE = {"ConstantOfShape", "Expand", "Range", "Tile"}


def _shape(c: _Call) -> Array:
    start, end = c.attributes.get("start", 0), c.attributes.get("end")
    return c[0][slice(start, end)]


def _divide(c: _Call) -> Array:
    a, b = c[0], c[1]
    if np.issubdtype(a.dtype, np.floating):
        return a / b
    quotient: Array = np.abs(a) // np.abs(b) * (np.sign(a) * np.sign(b))  # integers round towards zero
    if not np.all(b):
        raise ZeroDivisionError
    return quotient


def _modulo(c: _Call) -> Array:
    if not np.issubdtype(c[0].dtype, np.floating) and not np.all(c[1]):
        raise ZeroDivisionError
    return np.fmod(c[0], c[1]) if c.attributes.get("fmod") else np.mod(c[0], c[1])


def _cast(c: _Call) -> Array:
    dtype = numpy_dtype(c.attributes["to"])
    if dtype is None or (np.issubdtype(c[0].dtype, np.floating) and not np.isfinite(c[0]).all()):
        raise TypeError
    return c[0].astype(dtype)


def _slice(c: _Call) -> Array:
    starts, ends = c.ints("starts", 1), c.ints("ends", 2)
    axes, steps = c.ints("axes", 3), c.ints("steps", 4)
    if starts is None or ends is None:
        raise IndexError
    rank = c[0].ndim
    axes = list(range(len(starts))) if axes is None else axes
    steps = [1] * len(starts) if steps is None else steps
    cut = [slice(None)] * rank
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        if not -rank <= axis < rank:
            raise IndexError
        size = c[0].shape[axis]
        if step < 0:  # an end before the first element means: to the beginning
            begin = min(start + size if start < 0 else start, size - 1)
            stop = end + size if end < 0 else end
            cut[axis] = slice(begin, None if stop < 0 else stop, step) if begin >= 0 else slice(0, 0)
        else:
            cut[axis] = slice(start, end, step)
    return c[0][tuple(cut)]


def _squeeze(c: _Call) -> Array:
    axes = c.ints("axes", 1)
    return np.squeeze(c[0], None if axes is None else tuple(axes))


def _reduce(function: Callable[..., Any]) -> Callable[[_Call], Array]:
    def rule(c: _Call) -> Array:
        axes = c.ints("axes", 1)
        if not axes and c.attributes.get("noop_with_empty_axes"):
            return c[0]
        keep = bool(c.attributes.get("keepdims", 1))
        return np.asarray(function(c[0], axis=tuple(axes) if axes else None, keepdims=keep))

    return rule


def _variadic(function: Callable[[Any, Any], Any]) -> Callable[[_Call], Array]:
    def rule(c: _Call) -> Array:
        result = c[0]
        for i in range(1, len(c.inputs)):
            result = function(result, c[i])
        return result

    return rule


def _unary(function: Callable[[Any], Any]) -> Callable[[_Call], Array]:
    return lambda c: np.asarray(function(c[0]))


def _binary(function: Callable[[Any, Any], Any]) -> Callable[[_Call], Array]:
    return lambda c: np.asarray(function(c[0], c[1]))


def _split(c: _Call) -> list[Array]:
    axis, parts = c.attributes.get("axis", 0), c.ints("split", 1)
    if parts is not None:
        if sum(parts) != c[0].shape[axis]:
            raise ValueError
        return list(np.split(c[0], np.cumsum(parts)[:-1], axis))
    size, pieces = c[0].shape[axis], c.attributes.get("num_outputs", c.results)
    chunk = -(-size // pieces)
    return list(np.split(c[0], [min(size, chunk * i) for i in range(1, pieces)], axis))


def _reshape(c: _Call) -> Array:
    target = c.ints("shape", 1)
    if target is None:
        raise IndexError
    if not c.attributes.get("allowzero"):
        target = [c[0].shape[i] if d == 0 else d for i, d in enumerate(target)]
    return c[0].reshape(target)


def _range(c: _Call) -> Array:
    return np.arange(c[0].item(), c[1].item(), c[2].item(), dtype=c[0].dtype)


def _gather(c: _Call) -> Array:
    return np.take(c[0], c[1], axis=c.attributes.get("axis", 0))


def _gather_elements(c: _Call) -> Array:
    axis = c.attributes.get("axis", 0)
    index = np.where(c[1] < 0, c[1] + c[0].shape[axis], c[1])
    return np.take_along_axis(c[0], index, axis)


def _scatter_elements(c: _Call) -> Array:
    if c.attributes.get("reduction", "none") != "none":
        raise ValueError
    axis = c.attributes.get("axis", 0)
    result = c[0].copy()
    np.put_along_axis(result, np.where(c[1] < 0, c[1] + c[0].shape[axis], c[1]), c[2], axis)
    return result


def _scatter_nd(c: _Call) -> Array:
    if c.attributes.get("reduction", "none") != "none":
        raise ValueError
    result, index = c[0].copy(), c[1]
    if index.shape[-1] == 0 or index.shape[-1] > result.ndim:
        raise IndexError
    result[tuple(index[..., i] for i in range(index.shape[-1]))] = c[2]
    return result


def _constant_of_shape(c: _Call) -> Array:
    fill = c.attributes.get("value")
    value = np.float32(0) if fill is None else onnx.numpy_helper.to_array(fill).reshape(-1)[0]
    return np.full(numbers(c[0]), value)


def _unsqueeze(c: _Call) -> Array:
    axes = c.ints("axes", 1)
    if axes is None:
        raise IndexError
    return np.expand_dims(c[0], tuple(axes))


_RULES: dict[str, Callable[[_Call], Array | list[Array]]] = {
    "Abs": _unary(np.abs), "Ceil": _unary(np.ceil), "Floor": _unary(np.floor), "Neg": _unary(np.negative),
    "Not": _unary(np.logical_not), "Round": _unary(np.rint), "Sign": _unary(np.sign), "Sqrt": _unary(np.sqrt),
    "Reciprocal": _unary(np.reciprocal), "Relu": _unary(lambda x: np.maximum(x, 0)),
    "Add": _binary(np.add), "Sub": _binary(np.subtract), "Mul": _binary(np.multiply),
    "Pow": _binary(np.power),
    "And": _binary(np.logical_and), "Or": _binary(np.logical_or), "Xor": _binary(np.logical_xor),
    "Equal": _binary(np.equal), "Less": _binary(np.less), "Greater": _binary(np.greater),
    "LessOrEqual": _binary(np.less_equal), "GreaterOrEqual": _binary(np.greater_equal),
    "Div": _divide, "Mod": _modulo, "Cast": _cast,
    "Max": _variadic(np.maximum), "Min": _variadic(np.minimum), "Sum": _variadic(np.add),
    "ReduceMax": _reduce(np.max), "ReduceMin": _reduce(np.min), "ReduceProd": _reduce(np.prod),
    "ReduceSum": _reduce(np.sum),
    "Shape": _shape, "Size": lambda c: np.array(prod(numbers(c[0])), np.int64),
    "Identity": lambda c: c[0], "Squeeze": _squeeze, "Unsqueeze": _unsqueeze, "Reshape": _reshape,
    "Flatten": lambda c: c[0].reshape(prod(c[0].shape[: c.attributes.get("axis", 1)]), -1),
    "Transpose": lambda c: np.transpose(c[0], c.attributes.get("perm")),
    "Concat": lambda c: np.concatenate([c[i] for i in range(len(c.inputs))], c.attributes["axis"]),
    "Gather": _gather, "GatherElements": _gather_elements, "ScatterElements": _scatter_elements,
    "ScatterND": _scatter_nd, "Slice": _slice, "Split": _split,
    "Where": lambda c: np.where(c[0], c[1], c[2]), "NonZero": lambda c: np.array(np.nonzero(c[0]), np.int64),
    "ConstantOfShape": _constant_of_shape, "Expand": lambda c: c[0] * np.ones(numbers(c[1]), c[0].dtype),
    "Range": _range, "Tile": lambda c: np.tile(c[0], numbers(c[1])),
}  # fmt: skip
