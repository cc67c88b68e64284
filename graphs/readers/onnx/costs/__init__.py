"""Flops and bytes of ONNX ops, by own formulas; a kind without a formula is reported, not guessed."""

from __future__ import annotations

from . import contractions, elementwise, reductions
from .elementwise import ELEMENTWISE
from .view import Formula, OpView, UnknownShapeError

__all__ = ["ELEMENTWISE", "FORMULAS", "Formula", "OpView", "UnknownShapeError", "accessed_bytes"]

#: Kinds that only move, select or describe data.
_MOVES = (
    "ArrayFeatureExtractor", "CenterCropPad", "Compress", "Concat", "ConcatFromSequence", "Constant",
    "ConstantOfShape", "DepthToSpace", "Expand", "EyeLike", "Flatten", "Gather", "GatherElements",
    "GatherND", "Identity", "MaxUnpool", "OneHot", "Optional", "OptionalGetElement", "OptionalHasElement",
    "Pad", "Reshape", "ReverseSequence", "Scatter", "SequenceAt", "SequenceConstruct", "SequenceEmpty",
    "SequenceErase", "SequenceInsert", "SequenceLength", "Shape", "Size", "Slice", "SpaceToDepth", "Split",
    "SplitToSequence", "Squeeze", "TensorScatter", "Tile", "Transpose", "Trilu", "Unsqueeze",
    "ai.onnx.ml.ArrayFeatureExtractor",
)  # fmt: skip

FORMULAS: dict[str, Formula] = (
    {kind: (lambda v: 0) for kind in _MOVES}
    | elementwise.FORMULAS
    | reductions.FORMULAS
    | contractions.FORMULAS
)


def accessed_bytes(v: OpView) -> int | None:
    """Bytes that an op reads and writes where that is not the size of its inputs and outputs.

    Picking rows reads the rows, not the table; a shape is read without its tensor.

    Returns:
        The bytes, or ``None`` for inputs + outputs.
    """
    try:
        if v.kind in ("Gather", "GatherElements", "GatherND"):
            return 2 * v.output_bytes() + v.bytes(1)
        if v.kind == "Slice":
            return 2 * v.output_bytes() + sum(v.bytes(i) for i in range(1, len(v.inputs)))
        if v.kind in ("Shape", "Size", "SequenceLength", "OptionalHasElement"):
            return v.output_bytes()
    except UnknownShapeError:
        pass
    return None
