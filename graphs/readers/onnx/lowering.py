"""Walks an ONNX graph in order: constants, views and shape computations vanish, the rest becomes ops."""

from __future__ import annotations

from collections import ChainMap, Counter
from collections.abc import MutableMapping, Sequence
from typing import Any

from onnx import GraphProto, NodeProto

from ....errors import ImportFailedError
from . import constants
from .costs import ELEMENTWISE
from .model import subgraphs
from .order import topological_order
from .steps import Context, Step, fold, view, viewed, work_of
from .types import (
    UNDEFINED,
    LoweredGraph,
    LoweredOp,
    Storage,
    TensorType,
    Value,
    from_proto,
    kind_of,
    label,
    text,
)


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

    def _define(self, name: str, value: Value, what: str | Step) -> None:
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
        listed = {info.name: info for info in self.graph.input}
        for tensor in self.graph.initializer:
            if not tensor.name:
                raise ImportFailedError(f"{self.path or 'the model'} has an initializer without a name")
            value = constants.from_tensor(tensor, text(tensor.name), folder)
            if tensor.name in listed:  # as inputs, as was the rule before IR version 4
                declared = from_proto(listed[tensor.name].type, tensor.name, self.context.dims.size)
                self.context.inference.reconcile(tensor.name, value.type, declared)
            self._define(tensor.name, value, "an initializer")
        for sparse in self.graph.sparse_initializer:
            name = text(sparse.values.name)
            self._define(name, constants.from_sparse(sparse, name), "a sparse initializer")

    # --- the walk

    def run(self) -> LoweredGraph:
        """Lowers all nodes."""
        nodes = self.graph.node
        for index in self._order():
            node = nodes[index]
            step = Step(
                self.path, index, node, kind_of(node), [self._read(name, index) for name in node.input]
            )
            self.context.kinds.add(step.kind)
            self._take(step)
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

    def _read(self, name: str, reader: int) -> Value | None:
        if not name:
            return None
        value = self.lookup(name)
        if value is None:
            where = self.path + label(reader, self.graph.node[reader])
            raise ImportFailedError(
                f"{where} reads tensor {name!r}, which no node writes and which is neither an input nor a "
                "weight"
            )
        return value

    def _take(self, step: Step) -> None:
        """Lowers one node whose inputs are known."""
        node = step.node
        if step.kind == "Constant":
            output = node.output[0] if node.output else ""
            self._define(output, constants.from_constant_node(node, output, self.context.folder), step)
            self.folded[step.kind] += 1
            return
        if subgraphs(node):
            from .bodies import lower_bodies

            lower_bodies(self, step)
            return
        self.context.inference.infer(step, self._declared)
        source = viewed(step, self._read_names)
        if source is not None:
            self._define(node.output[0], view(step, source), step)
            self.folded[step.kind] += 1
            return
        folded = fold(step)
        if folded is not None:
            for name, value in zip(node.output, folded, strict=False):
                self._define(name, value, step)
            self.result.folded_reads.update(v.storage for v in step.inputs if v is not None)
            self.folded[step.kind] += 1
            return
        outputs = self.define_outputs(step)
        flops, accessed = work_of(self.context, step)
        self.result.ops.append(
            LoweredOp(
                node=step.index,
                kind=step.kind,
                name=step.name,
                inputs=[v.storage for v in step.inputs if v is not None],
                outputs=outputs,
                flops=flops,
                accessed_bytes=accessed,
                elementwise=step.kind in ELEMENTWISE,
            )
        )

    def define_outputs(self, step: Step) -> list[Storage]:
        """Gives each output of an op its own storage."""
        storages = []
        for name, (kind, proto) in zip(step.node.output, step.types, strict=True):
            if not name:
                continue
            if kind.element == UNDEFINED and kind.shape is not None:
                raise ImportFailedError(
                    f"the dtype of tensor {name!r} is unknown; give it with its shape, e.g. "
                    f"shapes={{{name!r}: 'float32[{','.join(map(str, kind.shape))}]'}}"
                )
            value = Value(kind, Storage(name, kind), None, proto)
            self._define(name, value, step)
            storages.append(value.storage)
        return storages

    def declared(self, name: str) -> TensorType | None:
        """The type that the file or the caller states for a tensor."""
        return self._declared.get(name)


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
