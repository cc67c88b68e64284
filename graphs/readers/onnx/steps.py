"""One node of a walk, and what becomes of it: constants, a view, or an op with its work."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from math import prod
from pathlib import Path

import numpy as np
from onnx import NodeProto

from ....errors import ImportFailedError
from . import constants, folding
from .costs import FORMULAS, OpView, UnknownShapeError, accessed_bytes
from .dims import Dimensions
from .options import FlopRule
from .shapes import Inferred, ShapeInference, Signature
from .types import UNDEFINED, TensorType, Value, constant, label

#: Kinds whose output may be another view of the first input's storage.
VIEWS = frozenset({
    "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Dropout", "Cast", "CastLike", "Optional",
    "OptionalGetElement",
})  # fmt: skip
_INT64_MAX = 2**63 - 1


@dataclass
class Context:
    """What holds for the whole model, and what the report collects on the way.

    Attributes:
        inference: Infers types.
        dims: Sizes of dynamic dimensions.
        shapes: Types that the caller supplies, by tensor.
        costs: Flops that the caller supplies, by kind.
        folder: Where external weights are looked up.
        missing_cost: Ops without a formula, by kind.
        unknown_in_bodies: Tensors of bodies whose shape is unknown.
        subgraphs: Ops with bodies and what was done with each.
        kinds: All kinds of nodes.
        tensors: Names of all tensors.
        work: Flops and accessed bytes of ops seen before.
    """

    inference: ShapeInference
    dims: Dimensions
    shapes: Mapping[str, TensorType]
    costs: Mapping[str, FlopRule]
    folder: Path | None
    missing_cost: Counter[str] = field(default_factory=Counter)
    unknown_in_bodies: list[str] = field(default_factory=list)
    subgraphs: list[str] = field(default_factory=list)
    kinds: set[str] = field(default_factory=set)
    tensors: set[str] = field(default_factory=set)
    work: dict[Signature, tuple[int | None, int | None]] = field(default_factory=dict)


@dataclass(slots=True)
class Step:
    """A node with what is known about its inputs and outputs.

    Attributes:
        path: Names the graph around it in messages; empty for the main graph.
        index: Its index in that graph.
        node: The node.
        kind: Its kind, with the domain if that is not ONNX's own.
        inputs: Values of its inputs; ``None`` for one left out.
        types: Types of its outputs.
        signature: What its types and work follow from; ``None`` if the file or the caller had a say in them.
    """

    path: str
    index: int
    node: NodeProto
    kind: str
    inputs: list[Value | None]
    types: list[Inferred] = field(default_factory=list)
    signature: Signature | None = None

    @property
    def where(self) -> str:
        """Names the node in messages."""
        return self.path + label(self.index, self.node)

    def __str__(self) -> str:
        return self.where

    @property
    def name(self) -> str:
        """A name for people: the node's own or that of its first output."""
        return self.node.name or next((name for name in self.node.output if name), "")

    def view(self) -> OpView:
        """What a cost formula sees."""
        return OpView(
            self.kind,
            [None if v is None else v.type for v in self.inputs],
            [kind if name else None for (kind, _), name in zip(self.types, self.node.output, strict=True)],
            [None if v is None else v.data for v in self.inputs],
            partial(constants.attributes, self.node),
        )


# --- constants


def fold(step: Step) -> list[Value] | None:
    """Values of the outputs if the contents are known, or if the node fills a tensor of known shape."""
    kinds = [kind for kind, _ in step.types]
    contents = folding.fold(step.node, step.inputs, kinds)
    if contents is not None:
        return [
            constants.from_array(data, name, kind.element)
            for name, data, kind in zip(step.node.output, contents, kinds, strict=False)
        ]
    if step.kind != "ConstantOfShape" or kinds[0].shape is None:
        return None
    shape = step.inputs[0]
    return None if shape is None or shape.data is None else [constant(step.node.output[0], kinds[0])]


# --- views


def viewed(step: Step, read_names: Collection[str]) -> Value | None:
    """The value that a node is a view of; ``None`` if the node makes something new."""
    if step.kind not in VIEWS:
        return None
    node, source = step.node, step.inputs[0] if step.inputs else None
    if source is None or not node.output or not node.output[0]:
        return None
    if step.kind in ("Cast", "CastLike"):
        element = source.type.element
        return source if element != UNDEFINED and step.types[0][0].element == element else None
    if step.kind == "Dropout":
        training = step.inputs[2] if len(step.inputs) > 2 else None
        trains = training is not None and (training.data is None or bool(np.any(training.data)))
        mask_is_read = len(node.output) > 1 and node.output[1] in read_names
        return None if trains or mask_is_read else source
    return source


def view(step: Step, source: Value) -> Value:
    """The output of a view: of its own type, in the storage of its source.

    Raises:
        ImportFailedError: The two have different numbers of elements.
    """
    kind, proto = step.types[0]
    before, after = source.type.shape, kind.shape
    if before is not None and after is not None and prod(before) != prod(after):
        raise ImportFailedError(
            f"{step.where} turns {source.type} into {kind}, which has another number of elements; correct "
            "the file or the sizes given to its dimensions"
        )
    if kind.element == UNDEFINED and not kind.container:
        kind, proto = TensorType(source.type.element, kind.dims), None
    data = None
    if source.data is not None and kind.shape is not None:
        data = source.data.reshape(kind.shape)
    return Value(kind, source.storage, data, proto)


# --- work


def work_of(context: Context, step: Step) -> tuple[int, int | None]:
    """Flops of an op, and the bytes that it reads and writes where those are not its inputs and outputs.

    Flops are 0 where a shape or a formula is missing, which the report lists.

    Raises:
        ImportFailedError: The attributes do not fit the inputs, or the figure is too large.
    """
    known = None if step.signature is None else context.work.get(step.signature)
    if known is None:
        op = step.view()
        known = (_flops(context, op, step), accessed_bytes(op))
        if step.signature is not None:
            context.work[step.signature] = known
    flops, accessed = known
    if flops is None:
        context.missing_cost[step.kind] += 1
        return 0, accessed
    return flops, accessed


def _flops(context: Context, op: OpView, step: Step) -> int | None:
    given = context.costs.get(op.kind)
    try:
        if callable(given):
            inputs = [None if t is None else t.shape for t in op.inputs]
            outputs = [None if t is None else t.shape for t in op.outputs]
            count: int | None = int(given(inputs, outputs))
        elif given is not None:
            count = int(given)
        else:
            formula = FORMULAS.get(op.kind)
            count = None if formula is None else formula(op)
    except UnknownShapeError:
        return 0  # the tensor without a shape is listed in the report
    except (IndexError, KeyError, ValueError, TypeError, ZeroDivisionError, OverflowError) as error:
        raise ImportFailedError(
            f"the flops of {step.where} cannot be computed ({type(error).__name__}: {error}); its attributes "
            "do not fit its inputs"
        ) from error
    if count is not None and not 0 <= count <= _INT64_MAX:
        raise ImportFailedError(f"{step.where} has {count} flops; expected 0 to 2^63 - 1")
    return count
