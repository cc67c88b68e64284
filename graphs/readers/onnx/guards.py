"""What must hold before a node is handed to onnx's shape inference, which crashes or never ends without it.

Each rule was found by feeding damaged nodes to onnx 1.23; the standard demands all of them anyway.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from onnx import NodeProto

from .constants import attributes
from .types import TensorType

Types = Sequence[TensorType | None]
Rule = Callable[[Mapping[str, Any], Types, int], str | None]

#: No tensor has more axes.
_MAX_RANK = 1024
#: Terms of letters, each with at most one ellipsis, and perhaps a result.
_TERM = r"[A-Za-z]*(\.\.\.)?[A-Za-z]*"
_EQUATION = re.compile(rf"{_TERM}(,{_TERM})*(->{_TERM})?")


def unsound(node: NodeProto, inputs: Types) -> str | None:
    """Says what is wrong with a node, ``None`` if nothing is.

    Args:
        node: A node of ONNX's own operators.
        inputs: Types of its inputs; ``None`` for one left out.
    """
    rule = _RULES.get(node.op_type) if node.domain in ("", "ai.onnx") else None
    try:
        return None if rule is None else rule(attributes(node), inputs, len(node.output))
    except TypeError:
        return "an attribute has the wrong type"


def _split(given: Mapping[str, Any], inputs: Types, outputs: int) -> str | None:
    parts = given.get("num_outputs", outputs)
    return None if parts == outputs else f"num_outputs is {parts} and there are {outputs} outputs"


def _gather_nd(given: Mapping[str, Any], inputs: Types, outputs: int) -> str | None:
    batch_dims = given.get("batch_dims", 0)
    return None if batch_dims >= 0 else f"batch_dims is {batch_dims}; expected at least 0"


def _layer_normalization(given: Mapping[str, Any], inputs: Types, outputs: int) -> str | None:
    axis, kind = given.get("axis", -1), inputs[0] if inputs else None
    rank = 2**20 if kind is None or kind.dims is None else len(kind.dims)
    return None if -rank <= axis < rank else f"axis is {axis}; the input has {rank} axes"


def _einsum(given: Mapping[str, Any], inputs: Types, outputs: int) -> str | None:
    equation = given.get("equation", "")
    fits = isinstance(equation, str) and _EQUATION.fullmatch(equation.replace(" ", ""))
    return None if fits else f"the equation {equation!r} is malformed"


def _operand_of_rank(index: int) -> Rule:
    """For an op with as many output axes as an input has elements: onnx makes the axes one by one."""

    def rule(given: Mapping[str, Any], inputs: Types, outputs: int) -> str | None:
        kind = inputs[index] if index < len(inputs) else None
        length = kind.dims[0] if kind is not None and kind.dims is not None and len(kind.dims) == 1 else None
        return f"input {index} lists {length} sizes" if length is not None and length > _MAX_RANK else None

    return rule


_RULES: dict[str, Rule] = {
    "Split": _split,
    "GatherND": _gather_nd,
    "LayerNormalization": _layer_normalization,
    "Einsum": _einsum,
    "Expand": _operand_of_rank(1),
    "Reshape": _operand_of_rank(1),
    "Tile": _operand_of_rank(1),
    "Unsqueeze": _operand_of_rank(1),
    "ConstantOfShape": _operand_of_rank(0),
}
