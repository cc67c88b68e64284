"""From lowered ops and storages to a :class:`Graph`, numbered so that equal models give equal graphs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from onnx import NodeProto

from ....errors import ImportFailedError, InvalidGraphError
from ...builder import GraphBuilder
from ...graph import Graph
from .layers import layers_of, module_path
from .order import topological_order
from .types import DTYPES, UNKNOWN_DTYPE, LoweredGraph, LoweredOp, Storage, label
from .unused import without_unused

LEVEL = "onnx"
#: Metadata that the writer leaves on a node: the index of its op, which a file in scheduled order would lose.
OP_KEY = "opgym.op"


@dataclass(frozen=True)
class Emitted:
    """A graph and how it relates to the nodes of the file.

    Attributes:
        graph: The graph.
        op_node: Index of each op's node.
        unused: Ops left out as only folded nodes needed them, by kind.
        unknown: Names of tensors whose shape is unknown.
    """

    graph: Graph
    op_node: tuple[int, ...]
    unused: Counter[str]
    unknown: tuple[str, ...]


def emit(lowered: LoweredGraph, nodes: Sequence[NodeProto], name: str) -> Emitted:
    """Builds the graph.

    Raises:
        ImportFailedError: No ops are left, or a figure is too large.
    """
    for value in lowered.outputs:
        value.storage.is_output = True
    ops, unused = without_unused(lowered)
    if not ops:
        raise ImportFailedError("every node is a constant or a view; there is nothing to decide")
    producer = {s: i for i, op in enumerate(ops) for s in op.outputs}
    parents = [[producer[s] for s in op.inputs if s in producer] for op in ops]
    order = topological_order(parents, lambda i: label(ops[i].node, nodes[ops[i].node]), _keys(ops, nodes))
    ops = [ops[i] for i in order]
    layers = layers_of([module_path(nodes[op.node]) for op in ops])

    builder = GraphBuilder(LEVEL, name)
    handles: dict[Storage, int] = {}
    sources = [v.storage for v in lowered.inputs]
    sources += [s for op in ops for s in op.inputs if s not in producer]
    sources += [v.storage for v in lowered.outputs if v.storage not in producer]
    try:
        for storage in (*sources, *(s for op in ops for s in op.outputs)):
            if storage not in handles:
                handles[storage] = _add_tensor(builder, storage)
        for op, layer in zip(ops, layers, strict=True):
            builder.op(
                op.kind,
                inputs=[handles[s] for s in op.inputs],
                outputs=[handles[s] for s in op.outputs],
                flops=op.flops,
                accessed_bytes=op.accessed_bytes,
                workspace_bytes=op.workspace_bytes,
                layer=layer,
                elementwise=op.elementwise,
                name=op.name,
            )
        graph = builder.build()
    except InvalidGraphError as error:
        raise ImportFailedError(str(error)) from error
    unknown = tuple(s.name for s in handles if s.type.shape is None and s.stored_bytes is None)
    return Emitted(graph, tuple(op.node for op in ops), unused, unknown)


def _add_tensor(builder: GraphBuilder, storage: Storage) -> int:
    shape = storage.type.shape
    if shape is None:  # of unknown size: 0 bytes, and in the report
        dims = storage.type.dims if not storage.type.container else None
        shape = (0,) if dims is None else tuple(0 if d is None else d for d in dims)
    return builder.tensor(
        bytes=storage.bytes,
        dtype=DTYPES.get(storage.type.element, UNKNOWN_DTYPE),
        shape=shape,
        role=storage.role,
        is_output=storage.is_output,
        name=storage.name,
    )


def _keys(ops: Sequence[LoweredOp], nodes: Sequence[NodeProto]) -> list[int]:
    """What ops are numbered by: their place in the file, or the number that our own export left on each."""
    places = [op.node for op in ops]
    stated = [next((e.value for e in nodes[i].metadata_props if e.key == OP_KEY), "") for i in places]
    if not all(text.isascii() and text.isdigit() and len(text) < 10 for text in stated):
        return places
    keys = [int(text) for text in stated]
    return keys if len(set(keys)) == len(keys) else places
