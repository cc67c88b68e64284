"""Reads TensorFlow's CostGraphDef in protobuf's text format, the format of REGAL's public graphs.

See ``tensorflow/core/framework/cost_graph.proto``. Absent numbers are 0, as proto3 has it: an input without
``preceding_port`` reads output 0, and an output without ``alias_input_port`` is the storage of input 0 (what is
no alias says -1; in a file that never says anything about aliases there are none).
"""

from __future__ import annotations

import os
import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ...errors import ImportFailedError, InvalidGraphError
from ..builder import GraphBuilder
from ..costs import TableCost
from ..dtypes import BITS
from ..graph import VARIABLE
from .cost_graph_text import FieldError, Message, line_of, parse_nodes
from .ordering import order_of
from .report import Imported, ImportReport
from .scopes import layers_of
from .text_file import read_text

LEVEL = "cost-graph"
#: Kinds of device that the times hold for: the file has one time per node and does not say where.
DEVICE_KINDS = ("accelerator", "cpu", "gpu", "tpu")

_NS_PER_US = 1000
_MAX_TOTAL = 2**62
_NO_ALIAS = -1
_NAMED_KIND = re.compile(r"(.+?)(?:_\d+)?")
#: Names of ``tensorflow.DataType`` by number; types without data of a known width hold bytes.
_DTYPES = {
    1: "float32", 2: "float64", 3: "int32", 4: "uint8", 5: "int16", 6: "int8", 7: "string", 8: "complex64",
    9: "int64", 10: "bool", 11: "int8", 12: "uint8", 13: "int32", 14: "bfloat16", 15: "int16", 16: "uint16",
    17: "uint16", 18: "complex128", 19: "float16", 22: "uint32", 23: "uint64", 24: "float8e5m2",
    25: "float8e4m3fn", 29: "int4", 30: "uint4",
}  # fmt: skip
_DTYPE_NUMBERS = {
    "DT_FLOAT": 1, "DT_DOUBLE": 2, "DT_INT32": 3, "DT_UINT8": 4, "DT_INT16": 5, "DT_INT8": 6, "DT_STRING": 7,
    "DT_COMPLEX64": 8, "DT_INT64": 9, "DT_BOOL": 10, "DT_QINT8": 11, "DT_QUINT8": 12, "DT_QINT32": 13,
    "DT_BFLOAT16": 14, "DT_QINT16": 15, "DT_QUINT16": 16, "DT_UINT16": 17, "DT_COMPLEX128": 18, "DT_HALF": 19,
    "DT_UINT32": 22, "DT_UINT64": 23, "DT_FLOAT8_E5M2": 24, "DT_FLOAT8_E4M3FN": 25, "DT_INT4": 29,
    "DT_UINT4": 30,
}  # fmt: skip
_REF = 100  # added to the number of a type for a reference to it


@dataclass(slots=True)
class _Output:
    """An output port of a node."""

    bytes: int
    alias: int
    dtype: str
    shape: tuple[int, ...]


@dataclass(slots=True)
class _Node:
    """A node of the file."""

    name: str
    id: int
    inputs: list[tuple[int, int]]
    outputs: list[_Output]
    controls: list[int]
    workspace_bytes: int
    persistent_bytes: int
    cost_us: int
    analytical_us: int
    is_final: bool
    at: int


@dataclass(slots=True)
class _Seen:
    """What the file says anywhere."""

    says_alias: bool = False
    unknown_sizes: list[str] = field(default_factory=list)
    inaccurate: int = 0
    devices: set[str] = field(default_factory=set)


def read_cost_graph(path: str | os.PathLike[str], *, strict: bool = False) -> Imported:
    """Reads a CostGraphDef; each node becomes an op, and its times come as ``Imported.costs``.

    ``compute_cost`` is in microseconds; where no node has one, the larger of ``compute_time`` and
    ``memory_time`` is taken. The temporary memory of a node is its workspace, its persistent memory a
    parameter that only it reads, a control input a tensor of no bytes. An output that is an alias of an input
    has no bytes of its own: whoever reads it keeps the storage behind it alive. The format has no kinds of
    ops; they are guessed from the last part of a name, layers from what stands before it.

    Args:
        path: The file.
        strict: Refuse sizes that the file calls unknown (negative).

    Raises:
        ImportFailedError: The file is no such graph; the message names the node and its line.
    """
    text = read_text(path, "a CostGraphDef in text format")
    return _Reader(path, text, strict).run()


class _Reader:
    """One conversion."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        text: str,
        strict: bool,
    ) -> None:
        self.path = os.fspath(path)
        self.text = text
        self.unread: Counter[str] = Counter()
        self.strict = strict
        self.seen = _Seen()
        self.nodes = [self._node(message) for message in parse_nodes(text, self.path, self.unread)]
        if self.unread["node.op"] or self.unread["node.attr"]:
            raise ImportFailedError(
                f"{self.path}: its nodes have an 'op' or an 'attr': this is a GraphDef, which has no costs; "
                "expected a CostGraphDef"
            )
        if not self.nodes:
            raise ImportFailedError(
                f"{self.path}: has no node; expected a CostGraphDef with 'node {{ ... }}'"
            )
        self.index: dict[int, int] = {}
        for number, node in enumerate(self.nodes):
            first = self.index.setdefault(node.id, number)
            if first != number:
                raise ImportFailedError(
                    f"{self._name(node)} has the id of {self.nodes[first].name!r}; ids must differ"
                )
        if not self.seen.says_alias:
            for node in self.nodes:
                for output in node.outputs:
                    output.alias = _NO_ALIAS
        self.builder = GraphBuilder(LEVEL, Path(path).stem)

    def run(self) -> Imported:
        self._check_totals()
        for node in self.nodes:
            self._check_references(node)
        storage = self._storages()
        kept = {
            storage[number, port]
            for number, node in enumerate(self.nodes)
            if node.is_final
            for port in range(len(node.outputs))
        }
        tensors: dict[tuple[int, int], int] = {}
        for number, node in enumerate(self.nodes):
            for port, output in enumerate(node.outputs):
                is_alias = storage[number, port] != (number, port)
                tensors[number, port] = self.builder.tensor(
                    bytes=0 if is_alias else output.bytes,
                    dtype=output.dtype,
                    shape=(0,) if is_alias else output.shape,
                    is_output=(number, port) in kept,
                    name=node.name if port == 0 else f"{node.name}:{port}",
                )
        awaited = {self.index[control] for node in self.nodes for control in node.controls}
        ended = {
            number: self.builder.tensor(
                bytes=0, dtype="uint8", shape=(0,), name=f"{self.nodes[number].name}:end"
            )
            for number in sorted(awaited)
        }
        layers = layers_of([tuple(part for part in n.name.split("/")[:-1] if part) for n in self.nodes])
        for number, (node, layer) in enumerate(zip(self.nodes, layers, strict=True)):
            self._add_op(number, node, layer, storage, tensors, ended)
        try:
            graph = self.builder.build()
        except InvalidGraphError as problem:
            raise ImportFailedError(f"{self.path}: {problem}") from None
        needs = [
            [self.index[i] for i, _ in node.inputs] + [self.index[c] for c in node.controls]
            for node in self.nodes
        ]
        costs, from_estimate = self._costs(np.array(order_of(needs), np.int64))
        report = ImportReport(
            source=self.path,
            format="cost-graph",
            level=LEVEL,
            ops=graph.num_ops,
            tensors=graph.num_tensors,
            fingerprint=graph.fingerprint,
            missing_shape=tuple(self.seen.unknown_sizes),
            notes=tuple(self._notes(from_estimate)),
        )
        return Imported(graph, report, costs=costs)

    def _node(self, message: Message) -> _Node:
        try:
            return self._parsed(message)
        except FieldError as problem:
            where = f"{self.path}: node {message.text('name')!r} (line {line_of(self.text, message.at)})"
            raise ImportFailedError(f"{where}: {problem}") from None

    def _parsed(self, message: Message) -> _Node:
        number = message.number
        temporary = number("temporary_memory_size")
        persistent = number("persistent_memory_size")
        outputs = [
            self._output(output, f"{message.text('name')}:{port}")
            for port, output in enumerate(message.parts("output_info"))
        ]
        node = _Node(
            name=message.text("name"),
            id=number("id"),
            inputs=[
                (part.number("preceding_node"), part.number("preceding_port"))
                for part in message.parts("input_info")
            ],
            outputs=outputs,
            controls=message.numbers("control_input"),
            workspace_bytes=temporary or number("host_temp_memory_size") + number("device_temp_memory_size"),
            persistent_bytes=persistent
            or number("host_persistent_memory_size") + number("device_persistent_memory_size"),
            cost_us=number("compute_cost"),
            analytical_us=max(number("compute_time"), number("memory_time")),
            is_final=message.flag("is_final"),
            at=message.at,
        )
        for what, figure in (
            ("memory", min(node.workspace_bytes, node.persistent_bytes)),
            ("time", min(node.cost_us, node.analytical_us)),
        ):
            if figure < 0:
                raise FieldError(f"has a negative {what}: {figure}")
        self.seen.inaccurate += message.flag("inaccurate")
        if device := message.text("device"):
            self.seen.devices.add(device)
        return node

    def _output(self, message: Message, name: str) -> _Output:
        size = message.number("size")
        if size < 0:
            if self.strict:
                raise FieldError(f"the size of output {name} is {size}, which is unknown")
            self.seen.unknown_sizes.append(name)
            size = 0
        self.seen.says_alias |= message.has("alias_input_port")
        dtype = _dtype(message.text("dtype"))
        dims = [dim.number("size") for shape in message.parts("shape") for dim in shape.parts("dim")]
        known = bool(message.parts("shape")) and min(dims, default=0) >= 0 and message.has("dtype")
        known = known and not any(shape.flag("unknown_rank") for shape in message.parts("shape"))
        shape = tuple(dims) if known else (8 * size // BITS[dtype],)
        return _Output(size, message.number("alias_input_port"), dtype, shape)

    def _check_references(self, node: _Node) -> None:
        for place, (source, port) in enumerate(node.inputs):
            if source not in self.index:
                raise ImportFailedError(
                    f"{self._name(node)}: input {place} comes from node {source}; there is no such node"
                )
            outputs = len(self.nodes[self.index[source]].outputs)
            if not 0 <= port < outputs:
                raise ImportFailedError(
                    f"{self._name(node)}: input {place} is output {port} of "
                    f"node {source} {self.nodes[self.index[source]].name!r}, which has {outputs} outputs"
                )
        for control in node.controls:
            if control not in self.index:
                raise ImportFailedError(
                    f"{self._name(node)}: waits for node {control}; there is no such node"
                )
        for port, output in enumerate(node.outputs):
            # An absent 0 at a node without inputs is the default of the format, not a claim.
            if output.alias > 0 and output.alias >= len(node.inputs):
                raise ImportFailedError(
                    f"{self._name(node)}: output {port} is an alias of input {output.alias}; "
                    f"it has {len(node.inputs)} inputs"
                )

    def _storages(self) -> dict[tuple[int, int], tuple[int, int]]:
        """The output that each output is the storage of, itself where it is no alias."""
        found: dict[tuple[int, int], tuple[int, int]] = {}
        for number, node in enumerate(self.nodes):
            for port in range(len(node.outputs)):
                path: list[tuple[int, int]] = []
                at = (number, port)
                on_path = set[tuple[int, int]]()
                while at not in found and at not in on_path:
                    path.append(at)
                    on_path.add(at)
                    owner = self.nodes[at[0]]
                    alias = owner.outputs[at[1]].alias
                    if alias < 0 or not owner.inputs:
                        break
                    source, source_port = owner.inputs[alias]
                    at = (self.index[source], source_port)
                root = found.get(at, at)
                for step in path:
                    found[step] = root
        return found

    def _add_op(
        self,
        number: int,
        node: _Node,
        layer: str | None,
        storage: dict[tuple[int, int], tuple[int, int]],
        tensors: dict[tuple[int, int], int],
        ended: dict[int, int],
    ) -> None:
        inputs: list[int] = []
        if node.persistent_bytes:
            inputs.append(
                self.builder.tensor(
                    bytes=node.persistent_bytes,
                    dtype="uint8",
                    shape=(node.persistent_bytes,),
                    role="parameter",
                    name=f"{node.name}/persistent",
                )
            )
        for source, port in node.inputs:
            output = (self.index[source], port)
            inputs += [tensors[storage[output]], tensors[output]]
        inputs += [ended[self.index[control]] for control in node.controls]
        outputs = [tensors[number, port] for port in range(len(node.outputs))]
        scopes = node.name.split("/")
        kind = _NAMED_KIND.fullmatch(scopes[-1])
        self.builder.op(
            "Variable" if kind and kind[1] == VARIABLE else kind[1] if kind else "node",
            inputs=inputs,
            outputs=[*outputs, ended[number]] if number in ended else outputs,
            workspace_bytes=node.workspace_bytes,
            layer=layer,
            direction="backward" if "gradients" in scopes[:-1] else "forward",
            name=node.name,
        )

    def _name(self, node: _Node) -> str:
        """A node, for messages."""
        return f"{self.path}: node {node.id} {node.name!r} (line {line_of(self.text, node.at)})"

    def _check_totals(self) -> None:
        for what, total in (
            ("sizes", sum(o.bytes for n in self.nodes for o in n.outputs)),
            ("memory", sum(n.workspace_bytes + n.persistent_bytes for n in self.nodes)),
            ("times", _NS_PER_US * sum(max(n.cost_us, n.analytical_us) for n in self.nodes)),
        ):
            if total > _MAX_TOTAL:
                raise ImportFailedError(
                    f"{self.path}: its {what} add up to {total:.3g} bytes or ns; at most {_MAX_TOTAL:.3g}"
                )

    def _costs(self, order: np.ndarray) -> tuple[TableCost, bool]:
        """Times of the ops in the graph's order, and whether they are analytical estimates."""
        measured = np.array([node.cost_us for node in self.nodes], np.int64)
        estimated = np.array([node.analytical_us for node in self.nodes], np.int64)
        from_estimate = not measured.any() and bool(estimated.any())
        column = (estimated if from_estimate else measured)[order] * _NS_PER_US
        return TableCost(dict.fromkeys(DEVICE_KINDS, column)), from_estimate

    def _notes(self, from_estimate: bool) -> list[str]:
        notes = [
            "times come from the file, one per node, and are taken for every kind of device"
            + ("; they are its analytical estimates, as no node has a compute_cost" if from_estimate else ""),
            "kinds of ops are guessed from names; flops are unknown and count 0",
        ]
        if self.seen.devices:
            notes.append(f"the file places its nodes on {len(self.seen.devices)} devices; that is not kept")
        if self.seen.inaccurate:
            notes.append(f"the file calls the costs of {self.seen.inaccurate} nodes inaccurate")
        notes += [f"field {key} is not read ({count} times)" for key, count in sorted(self.unread.items())]
        return notes


def _dtype(text: str) -> str:
    """The dtype of a graph for a ``DataType``, by name or number; bytes for what has no width of its own."""
    name = text.removesuffix("_REF")
    number = (
        int(name) % _REF
        if name.isascii() and name.isdigit() and len(name) < 10
        else _DTYPE_NUMBERS.get(name, 0)
    )
    return _DTYPES.get(number, "uint8")
