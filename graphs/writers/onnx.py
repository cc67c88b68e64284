"""Writes a placement or an order back into the ONNX model that the graph was read from.

Nodes are stored in the scheduled order. A node that was folded (a constant, a view, part of a shape
computation) follows what it reads. Weights are as they were, inside the file or outside.

With a placement every node gets ``opgym.device`` (number) and ``opgym.device_name`` as metadata, nodes that are
ops also ``opgym.order`` (place in the schedule) and ``opgym.op`` (index in the graph, by which a reader numbers
the ops as before); a folded node is on the device of what it belongs to. With an order alone nodes are stored in
that order and nothing else changes: a reader numbers the ops by it.
"""

from __future__ import annotations

import filecmp
import os
import shutil
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from google.protobuf.message import EncodeError  # type: ignore[import-untyped]
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto

from ...errors import ImportFailedError, InvalidSolutionError
from ..atomic import atomic_write
from ..graph import Graph
from ..readers import Imported
from ..readers.onnx.emit import OP_KEY
from ..readers.onnx.lowering import reads
from ..readers.onnx.model import LoadedModel, copy_fields, external_locations, load_model
from ..readers.onnx.order import topological_order
from ..readers.onnx.splice import splice_ifs
from ..readers.onnx.types import label

DEVICE_KEY = "opgym.device"
DEVICE_NAME_KEY = "opgym.device_name"
ORDER_KEY = "opgym.order"
_KEYS = {DEVICE_KEY, DEVICE_NAME_KEY, ORDER_KEY, OP_KEY}


def write_onnx(
    path: str | os.PathLike[str],
    imported: Imported,
    device: NDArray[Any],
    *,
    device_names: Sequence[str] | None = None,
    order: NDArray[Any] | None = None,
) -> None:
    """Writes the model with its placement, atomically.

    Local functions, and branches that were inlined on import, stay inlined. External weights are
    copied beside the new file if it is in another folder, as paths in a model may not leave its folder.

    Args:
        path: The file to write.
        imported: What ``opgym.graphs.readers.read`` returned for the model, which must still be there.
        device: Device of each op, ``[ops] int``.
        device_names: Names of the devices; their numbers by default.
        order: Ops in the order in which they run, ``[ops] int``; that of the graph by default. Where it runs
            an op before one that the file needs for a shape, that one is stored earlier.

    Raises:
        ImportFailedError: The graph does not come from an ONNX model, or the model has changed since.
        InvalidSolutionError: Device or order do not fit the graph.
        OSError: The file or the external weights cannot be written.
    """
    graph = imported.graph
    template = _Template.open(imported, path)
    devices = _checked(device, graph.num_ops, "device")
    order = np.arange(graph.num_ops) if order is None else _checked(order, graph.num_ops, "order")
    _refuse_illegal_order(graph, order)
    if device_names is not None and len(devices) and devices.max() >= len(device_names):
        raise InvalidSolutionError(
            f"device names device {devices.max()}; there are {len(device_names)} device names"
        )
    place, op_of = template.places(order), template.op_of
    home_of_op = {node: int(devices[op]) for node, op in op_of.items()}
    sequence, home = _sequence(template.nodes, place, home_of_op)
    metadata = {}
    for index in sequence:
        name = str(home[index]) if device_names is None else device_names[home[index]]
        metadata[index] = {DEVICE_KEY: str(home[index]), DEVICE_NAME_KEY: name}
        if index in op_of:
            metadata[index] |= {ORDER_KEY: str(place[index]), OP_KEY: str(op_of[index])}
    template.write(path, sequence, metadata, _KEYS)


def write_reordered_onnx(
    path: str | os.PathLike[str], imported: Imported, order: NDArray[Any]
) -> NDArray[np.int64]:
    """Writes the model with its nodes in another order, atomically; nothing else changes.

    Read again, the model has that order as its program order. Local functions and branches, and external
    weights, are treated as by :func:`write_onnx`.

    Args:
        path: The file to write.
        imported: What ``opgym.graphs.readers.read`` returned for the model, which must still be there.
        order: Ops in the order in which they run, ``[ops] int``.

    Returns:
        The order in which the file holds the ops, ``[ops] int64``: the wanted one, unless an op gives the shape
        of another (an edge that the file has and the graph has not); then it is stored before that one.

    Raises:
        ImportFailedError: The graph does not come from an ONNX model, or the model has changed since.
        InvalidSolutionError: The order does not fit the graph.
        OSError: The file or the external weights cannot be written.
    """
    template = _Template.open(imported, path)
    wanted = _checked(order, imported.graph.num_ops, "order")
    _refuse_illegal_order(imported.graph, wanted)
    op_of = template.op_of
    sequence, _ = _sequence(template.nodes, template.places(wanted), dict.fromkeys(op_of, 0))
    # A number that an earlier export left on an op would undo the order when the file is read.
    template.write(path, sequence, {}, {ORDER_KEY, OP_KEY})
    return np.array([op_of[index] for index in sequence if index in op_of], np.int64)


def weight_files(imported: Imported) -> list[Path]:
    """Files beside the model that hold weights of it, as far as they are there; none for other formats."""
    return [] if imported.origin is None else _weight_files(load_model(imported.origin.source))


def _weight_files(loaded: LoadedModel) -> list[Path]:
    folder = loaded.folder
    if folder is None:
        return []
    files = [folder / location for location in external_locations(loaded.proto, folder, loaded.label)]
    return [file for file in files if file.is_file()]


@dataclass(frozen=True)
class _Template:
    """The model that a graph was read from, and where the graph's ops are in it.

    Attributes:
        model: The model, with functions and branches inlined as the reader did.
        loaded: How it was loaded.
        op_node: Node of each op.
    """

    model: ModelProto
    loaded: LoadedModel
    op_node: tuple[int, ...]

    @classmethod
    def open(cls, imported: Imported, path: str | os.PathLike[str]) -> _Template:
        """Loads the model again.

        Args:
            imported: The graph.
            path: Where the result will be written; must be another file.
        """
        graph = imported.graph
        if imported.origin is None:
            raise ImportFailedError(
                f"{imported.report.source}: was read from {imported.report.format}; only a graph read from "
                "ONNX can be written as ONNX"
            )
        loaded = load_model(imported.origin.source)
        if loaded.folder is not None and Path(path).exists() and Path(path).samefile(loaded.label):
            raise InvalidSolutionError(f"{path} is the model that was read; write the result elsewhere")
        if Path(path).exists() and any(map(Path(path).samefile, _weight_files(loaded))):
            raise InvalidSolutionError(f"{path} holds weights of the model; write the result elsewhere")
        model = loaded.proto
        for taken in imported.origin.spliced:
            model = splice_ifs(model, taken)
        nodes, op_node = model.graph.node, imported.origin.op_node
        kinds_fit = len(op_node) == graph.num_ops and all(
            node < len(nodes) and graph.kind(op).endswith(nodes[node].op_type)
            for op, node in enumerate(op_node)
        )
        if not kinds_fit:
            raise ImportFailedError(f"{loaded.label}: has changed since it was read; read it again")
        return cls(model, loaded, op_node)

    @property
    def nodes(self) -> Sequence[NodeProto]:
        """The nodes as they are stored now."""
        return list(self.model.graph.node)

    @property
    def op_of(self) -> dict[int, int]:
        """The op of each node that is one."""
        return {node: op for op, node in enumerate(self.op_node)}

    def places(self, order: NDArray[np.int64]) -> dict[int, int]:
        """The place in an order of each node that is an op."""
        return {self.op_node[op]: place for place, op in enumerate(order.tolist())}

    def write(
        self,
        path: str | os.PathLike[str],
        sequence: Sequence[int],
        metadata: Mapping[int, dict[str, str]],
        dropped: Set[str],
    ) -> None:
        """Writes the model with its nodes in a sequence.

        Args:
            path: Where to.
            sequence: Nodes by their old index.
            metadata: What some nodes get, by old index.
            dropped: Keys of metadata that are removed before.
        """
        loaded, result, nodes = self.loaded, ModelProto(), self.model.graph.node
        copy_fields(self.model, result, skip=("graph",))
        copy_fields(self.model.graph, result.graph, skip=("node",))
        for index in sequence:
            node = result.graph.node.add()
            node.CopyFrom(nodes[index])
            _annotate(node, metadata.get(index, {}), dropped)
        _carry_weights(
            external_locations(result, loaded.folder, loaded.label), loaded.folder, Path(path).parent
        )
        with atomic_write(path) as f:
            f.write(_serialized(result, loaded.label))


def _serialized(model: ModelProto, label: str) -> bytes:
    try:
        return bytes(model.SerializeToString())
    except (ValueError, EncodeError) as error:
        raise ImportFailedError(
            f"{label}: is larger than a protobuf message may be ({error}); save it with external data first"
        ) from error


def _checked(values: NDArray[Any], ops: int, what: str) -> NDArray[np.int64]:
    array = np.asarray(values)
    if array.shape != (ops,) or not np.issubdtype(array.dtype, np.integer) or (array < 0).any():
        raise InvalidSolutionError(
            f"{what} is {array.dtype}{array.shape}; expected ({ops},) whole numbers of at least 0"
        )
    return array.astype(np.int64)


def _refuse_illegal_order(graph: Graph, order: NDArray[np.int64]) -> None:
    if not np.array_equal(np.sort(order), np.arange(graph.num_ops)):
        raise InvalidSolutionError("order does not hold every op once")
    place = np.empty(graph.num_ops, np.int64)
    place[order] = np.arange(graph.num_ops)
    producer, consumer, _ = graph.edges
    wrong = np.flatnonzero(place[producer] > place[consumer])
    if len(wrong):
        early, late = int(consumer[wrong[0]]), int(producer[wrong[0]])
        raise InvalidSolutionError(
            f"order runs op {early} {graph.op_names[early]!r} before op {late} {graph.op_names[late]!r}, "
            "whose output it reads"
        )


def _sequence(
    nodes: Sequence[NodeProto], place: Mapping[int, int], op_device: Mapping[int, int]
) -> tuple[list[int], list[int]]:
    """The order in which nodes are stored, and the device of each.

    The order is that of the schedule. A folded node comes right after what it reads, a constant right before
    the first op that needs it, and an op that another needs only through a folded shape no later than that
    one.
    """
    producer = {name: i for i, node in enumerate(nodes) for name in node.output if name}
    parents = [[producer[name] for name in reads(node) if name in producer] for node in nodes]

    def name_node(i: int) -> str:
        return label(i, nodes[i])

    file_order = topological_order(parents, name_node)
    never = 2 * len(nodes)
    home = [op_device.get(i, -1) for i in range(len(nodes))]
    for i in file_order:
        if home[i] < 0:  # a view, or part of a shape computation, is where the op is that it is made from
            home[i] = next((home[p] for p in parents[i] if home[p] >= 0), -1)
    constant = [h < 0 for h in home]
    keys = [2 * place[i] if i in place else never for i in range(len(nodes))]
    for i in reversed(file_order):  # nothing comes later than what needs it
        for p in parents[i]:
            keys[p] = min(keys[p], keys[i])
            if constant[p]:  # a constant is where it is used first
                home[p] = home[i]
    for i in file_order:
        if i not in place and not constant[i]:
            keys[i] = max(keys[p] | 1 for p in parents[i] if not constant[p])  # odd: right after an op
    for i in reversed(file_order):
        for p in parents[i]:
            if constant[p]:
                keys[p] = min(keys[p], keys[i])
    ranked = sorted(range(len(nodes)), key=lambda i: (keys[i], i))
    rank = {node: r for r, node in enumerate(ranked)}
    sequence = topological_order(parents, name_node, [rank[i] for i in range(len(nodes))])
    return sequence, [max(h, 0) for h in home]


def _annotate(node: NodeProto, metadata: Mapping[str, str], dropped: Set[str]) -> None:
    kept = [entry for entry in node.metadata_props if entry.key not in dropped]
    pairs = [(entry.key, entry.value) for entry in kept] + list(metadata.items())
    del node.metadata_props[:]
    for key, value in pairs:
        node.metadata_props.add(key=key, value=value)


def _carry_weights(locations: Sequence[str], source: Path | None, target: Path) -> None:
    """Puts external weights that are on disk beside the new model."""
    if source is None or not locations or source.resolve() == target.resolve():
        return
    for location in locations:
        old, new = source / location, target / location
        if not old.is_file():
            continue
        if new.exists():
            if not new.samefile(old) and not filecmp.cmp(old, new, shallow=False):
                raise InvalidSolutionError(
                    f"{new} exists and is not the model's weights ({old}); write elsewhere"
                )
            continue
        new.parent.mkdir(parents=True, exist_ok=True)
        with old.open("rb") as content, atomic_write(new) as f:  # onnx refuses links as an attack
            shutil.copyfileobj(content, f, 2**20)
