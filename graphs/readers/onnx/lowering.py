"""Walks an ONNX graph in order: constants, views and shape computations vanish, the rest becomes ops."""

from __future__ import annotations

from collections import ChainMap, Counter
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import GraphProto, NodeProto

from ....errors import ImportFailedError
from . import constants
from .costs import ELEMENTWISE, FORMULAS, OpView, UnknownShapeError, accessed_bytes
from .dims import Dimensions
from .model import subgraphs
from .options import FlopRule
from .order import topological_order
from .shapes import Inferred, ShapeInference
from .types import (
    UNDEFINED,
    LoweredGraph,
    LoweredOp,
    Storage,
    TensorType,
    Value,
    constant,
    from_proto,
    kind_of,
    label,
    text,
)

#: Kinds whose output may be another view of the first input's storage.
_VIEWS = {
    "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Dropout", "Cast", "CastLike", "Optional",
    "OptionalGetElement",
}  # fmt: skip
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
        policy: What is done with bodies.
        missing_cost: Ops without a formula, by kind.
        unknown_in_bodies: Tensors of bodies whose shape is unknown.
        subgraphs: Ops with bodies and what was done with each.
        notes: Anything else for the report.
    """

    inference: ShapeInference
    dims: Dimensions
    shapes: Mapping[str, TensorType]
    costs: Mapping[str, FlopRule]
    folder: Path | None
    policy: str
    missing_cost: Counter[str] = field(default_factory=Counter)
    unknown_in_bodies: list[str] = field(default_factory=list)
    subgraphs: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    kinds: set[str] = field(default_factory=set)
    tensors: set[str] = field(default_factory=set)


class Lowering:
    """Lowers one graph; bodies are lowered by :mod:`.bodies` in a scope inside this one.

    Args:
        context: What holds for the whole model.
        graph: The graph.
        inputs: Values of its inputs.
        outer: Names of the graphs around it.
        path: Names the graph in messages; empty for the main graph.
    """

    def __init__(
        self,
        context: Context,
        graph: GraphProto,
        inputs: Sequence[Value],
        outer: MutableMapping[str, Value] | None = None,
        path: str = "",
    ) -> None:
        self.context = context
        self.graph = graph
        self.path = path
        self.folded: Counter[str] = Counter()
        self.result = LoweredGraph(inputs=list(inputs))
        self.outer: MutableMapping[str, Value] = {} if outer is None else outer
        self.scope: dict[str, Value] = {}
        self._declared = self._declared_types()
        self._read_names: set[str] = set()
        for info, value in zip(_true_inputs(graph), inputs, strict=True):
            self._define(text(info.name), value, "a graph input")
        self._add_initializers()

    # --- names

    def lookup(self, name: str) -> Value | None:
        """What a name stands for here."""
        value = self.scope.get(name)
        return self.outer.get(name) if value is None else value

    def visible(self) -> MutableMapping[str, Value]:
        """All names that a body may use."""
        return ChainMap(self.scope, self.outer)

    def _define(self, name: str, value: Value, what: str) -> None:
        if not name:
            return
        if name in self.scope:
            raise ImportFailedError(
                f"tensor {name!r} is written twice: {what} writes it again; a tensor has one producer"
            )
        self.scope[name] = value
        self.context.tensors.add(name)

    def _declared_types(self) -> dict[str, TensorType]:
        declared = {
            info.name: from_proto(info.type, info.name, self.context.dims.size)
            for info in (*self.graph.value_info, *self.graph.output)
        }
        return declared | dict(self.context.shapes)

    def _add_initializers(self) -> None:
        folder = self.context.folder
        for tensor in self.graph.initializer:
            if not tensor.name:
                raise ImportFailedError(f"{self.path or 'the model'} has an initializer without a name")
            self._define(
                text(tensor.name), constants.from_tensor(tensor, tensor.name, folder), "an initializer"
            )
        for sparse in self.graph.sparse_initializer:
            name = text(sparse.values.name)
            self._define(name, constants.from_sparse(sparse, name), "a sparse initializer")

    # --- the walk

    def run(self) -> LoweredGraph:
        """Lowers all nodes."""
        nodes = self.graph.node
        for index in self._order():
            node = nodes[index]
            self.context.kinds.add(kind_of(node))
            self._node(index, node, self.path + label(index, node))
        for info in self.graph.output:
            value = self.lookup(info.name)
            if value is None:
                raise ImportFailedError(f"{self.path}graph output {info.name!r} is written by no node")
            self.result.outputs.append(value)
        return self.result

    def _order(self) -> list[int]:
        """A topological order of the nodes, by names."""
        nodes = self.graph.node
        for node in nodes:
            for word in (node.op_type, node.domain, node.name, *node.input, *node.output):
                text(word)

        def name_node(i: int) -> str:
            return label(i, nodes[i])

        producer: dict[str, int] = {}
        for i, node in enumerate(nodes):
            for name in node.output:
                if not name:
                    continue
                if name in producer or name in self.scope:
                    by = name_node(producer[name]) if name in producer else "the graph's inputs or weights"
                    raise ImportFailedError(
                        f"{self.path}tensor {name!r} is written by {by} and again by {name_node(i)}; "
                        "a tensor has one producer"
                    )
                producer[name] = i
        read = [reads(node) for node in nodes]
        self._read_names = {name for names in read for name in names} | {
            info.name for info in self.graph.output
        }
        parents = [[producer[name] for name in used if name in producer] for used in read]
        return topological_order(parents, name_node)

    def _node(self, index: int, node: NodeProto, where: str) -> None:
        inputs = [self._read(name, where) for name in node.input]
        kind = kind_of(node)
        if kind == "Constant":
            output = node.output[0] if node.output else ""
            self._define(output, constants.from_constant_node(node, output, self.context.folder), where)
            self.folded[kind] += 1
            return
        if subgraphs(node):
            from .bodies import lower_bodies

            lower_bodies(self, index, node, inputs, where)
            return
        types = self.context.inference.infer(where, node, inputs, self._declared)
        if self._fold(node, inputs, types, where):
            self.result.folded_reads.update(v.storage for v in inputs if v is not None)
            self.folded[kind] += 1
            return
        if self._view(node, inputs, types, where):
            self.folded[kind] += 1
            return
        self._op(index, node, inputs, types, where)

    def _read(self, name: str, where: str) -> Value | None:
        if not name:
            return None
        value = self.lookup(name)
        if value is None:
            raise ImportFailedError(
                f"{where} reads tensor {name!r}, which no node writes and which is neither an input nor a "
                "weight"
            )
        return value

    # --- what becomes of a node

    def _fold(
        self,
        node: NodeProto,
        inputs: Sequence[Value | None],
        types: Sequence[Inferred],
        where: str,
    ) -> bool:
        """Turns a node into constants, if its contents are known, or if it fills a tensor of known shape."""
        kinds = [kind for kind, _ in types]
        if kind_of(node) in _VIEWS and self._view_input(node, inputs, kinds) is not None:
            return False
        contents = constants.fold(node, inputs, kinds)
        if contents is not None:
            for name, data, kind in zip(node.output, contents, kinds, strict=False):
                self._define(name, constants.from_array(data, name, kind.element), where)
            return True
        shape = inputs[0] if inputs else None
        if (
            kind_of(node) != "ConstantOfShape"
            or shape is None
            or shape.data is None
            or kinds[0].shape is None
        ):
            return False
        self._define(node.output[0], constant(node.output[0], kinds[0]), where)
        return True

    def _view(
        self,
        node: NodeProto,
        inputs: Sequence[Value | None],
        types: Sequence[Inferred],
        where: str,
    ) -> bool:
        """Makes the output of a view another name of its input's storage."""
        kinds = [kind for kind, _ in types]
        source = self._view_input(node, inputs, kinds) if kind_of(node) in _VIEWS else None
        if source is None:
            return False
        kind, proto = types[0]
        before, after = source.type.shape, kind.shape
        if before is not None and after is not None and prod(before) != prod(after):
            raise ImportFailedError(
                f"{where} turns {source.type} into {kind}, which has another number of elements; correct the "
                "file or "
                "the sizes given to its dimensions"
            )
        if kind.element == UNDEFINED and not kind.container:
            kind, proto = TensorType(source.type.element, kind.dims), None
        data = self._viewed_data(node, inputs, source, kind)
        if data is not None and kind.shape is None:
            kind, proto = TensorType(kind.element, data.shape), None
        self._define(node.output[0], Value(kind, source.storage, data, proto), where)
        return True

    def _view_input(
        self, node: NodeProto, inputs: Sequence[Value | None], types: Sequence[TensorType]
    ) -> Value | None:
        """The value that a node is a view of; ``None`` if the node makes something new."""
        source = inputs[0] if inputs else None
        if source is None or not node.output or not node.output[0]:
            return None
        if node.op_type in ("Cast", "CastLike") and (
            types[0].element != source.type.element or source.type.element == UNDEFINED
        ):
            return None
        if node.op_type == "Dropout":
            training = inputs[2] if len(inputs) > 2 else None
            trains = training is not None and (training.data is None or bool(np.any(training.data)))
            mask = len(node.output) > 1 and node.output[1] in self._read_names
            if trains or mask:
                return None
        return source

    @staticmethod
    def _viewed_data(
        node: NodeProto, inputs: Sequence[Value | None], source: Value, kind: TensorType
    ) -> NDArray[Any] | None:
        if source.data is None:
            return None
        if kind.shape is not None:
            return source.data.reshape(kind.shape)
        folded = constants.fold(node, inputs, [kind])
        return None if folded is None else folded[0]

    def _op(
        self,
        index: int,
        node: NodeProto,
        inputs: Sequence[Value | None],
        types: Sequence[Inferred],
        where: str,
    ) -> None:
        outputs = self.define_outputs(node, types, where)
        kind = kind_of(node)
        view = view_of(node, inputs, [t for t, _ in types])
        self.result.ops.append(
            LoweredOp(
                node=index,
                kind=kind,
                name=name_of(node),
                inputs=[v.storage for v in inputs if v is not None],
                outputs=outputs,
                flops=self.flops(view, where),
                accessed_bytes=accessed_bytes(view),
                elementwise=kind in ELEMENTWISE,
            )
        )

    def define_outputs(self, node: NodeProto, types: Sequence[Inferred], where: str) -> list[Storage]:
        """Gives each output of an op its own storage."""
        storages = []
        for name, (kind, proto) in zip(node.output, types, strict=True):
            if not name:
                continue
            if kind.shape is not None and kind.element == UNDEFINED:
                raise ImportFailedError(
                    f"the dtype of tensor {name!r} is unknown; give it with its shape, e.g. "
                    f"shapes={{{name!r}: 'float32[{','.join(map(str, kind.shape))}]'}}"
                )
            value = Value(kind, Storage(name, kind), None, proto)
            self._define(name, value, where)
            storages.append(value.storage)
        return storages

    def declared(self, name: str) -> TensorType | None:
        """The type that the file or the caller states for a tensor."""
        return self._declared.get(name)

    def flops(self, view: OpView, where: str) -> int:
        """Flops of an op; 0 where a shape or a formula is missing, which the report lists."""
        given = self.context.costs.get(view.kind)
        try:
            if callable(given):
                shapes = (
                    [None if t is None else t.shape for t in side] for side in (view.inputs, view.outputs)
                )
                count: int | None = int(given(*shapes))
            elif given is not None:
                count = int(given)
            else:
                formula = FORMULAS.get(view.kind)
                count = None if formula is None else formula(view)
        except UnknownShapeError:
            return 0  # the tensor without a shape is listed in the report
        except (IndexError, KeyError, ValueError, TypeError, ZeroDivisionError, OverflowError) as error:
            raise ImportFailedError(
                f"the flops of {where} cannot be computed ({type(error).__name__}: {error}); its attributes "
                "do not fit "
                "its inputs"
            ) from error
        if count is None:
            self.context.missing_cost[view.kind] += 1
            return 0
        if not 0 <= count <= _INT64_MAX:
            raise ImportFailedError(f"{where} has {count} flops; expected 0 to 2^63 - 1")
        return count


def reads(node: NodeProto) -> list[str]:
    """Names that a node reads, those that its bodies take from around them included."""
    names = [name for name in node.input if name]
    for _, body in subgraphs(node):
        names.extend(_captured(body))
    return names


def _captured(graph: GraphProto) -> list[str]:
    """Names that a body uses and does not define."""
    own = {info.name for info in graph.input} | {t.name for t in graph.initializer}
    own |= {t.values.name for t in graph.sparse_initializer}
    own |= {name for node in graph.node for name in node.output}
    used = [name for node in graph.node for name in reads(node)] + [info.name for info in graph.output]
    return [name for name in dict.fromkeys(used) if name not in own]


def _true_inputs(graph: GraphProto) -> list[Any]:
    """Inputs that are no initializers."""
    weights = {t.name for t in graph.initializer} | {t.values.name for t in graph.sparse_initializer}
    return [info for info in graph.input if info.name not in weights]


def view_of(node: NodeProto, inputs: Sequence[Value | None], types: Sequence[TensorType]) -> OpView:
    """What a cost formula sees of a node."""
    return OpView(
        kind_of(node),
        [None if v is None else v.type for v in inputs],
        [kind if name else None for kind, name in zip(types, node.output, strict=True)],
        [None if v is None else v.data for v in inputs],
        partial(constants.attributes, node),
    )


def name_of(node: NodeProto) -> str:
    """A name for people: the node's own or that of its first output."""
    return node.name or next((name for name in node.output if name), "")
