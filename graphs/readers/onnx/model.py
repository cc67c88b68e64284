"""From a file to a model that is safe to walk: parsing, versions, external weights, local functions."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

import onnx
import onnx.inliner
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto

from ....errors import ImportFailedError
from .types import text

Source = str | os.PathLike[str] | ModelProto

#: A protobuf message cannot be larger.
_MAX_FILE_BYTES = 2**31 - 1
#: Attributes without weights.
_PLAIN_ATTRIBUTES = {
    AttributeProto.FLOAT, AttributeProto.INT, AttributeProto.STRING,
    AttributeProto.FLOATS, AttributeProto.INTS, AttributeProto.STRINGS,
}  # fmt: skip
#: A model whose functions expand to more nodes than this is refused (a chain of doublings is a few lines
#: long).
MAX_EXPANDED_NODES = 5_000_000


@dataclass(frozen=True)
class LoadedModel:
    """A parsed model and where it came from.

    Attributes:
        proto: The model, without local functions.
        label: Names the source in messages.
        name: Name of the graph.
        folder: Where external weights are looked up; ``None`` for a model in memory.
        notes: What was done to it.
    """

    proto: ModelProto
    label: str
    name: str
    folder: Path | None
    notes: tuple[str, ...] = ()


def load_model(source: Source) -> LoadedModel:
    """Parses a model and checks what must hold before its graph can be walked; weights are not followed.

    Raises:
        ImportFailedError: The file is absent, damaged or no ONNX model, its IR or opset is too new, its
            functions call each other in a circle.
    """
    if isinstance(source, ModelProto):
        proto, label, folder = source, f"model {source.graph.name!r}", None
    else:
        label, folder = os.fspath(source), Path(source).parent
        proto = _parse(Path(source), label)
    _check_versions(proto, label)
    name = text(proto.graph.name) if folder is None else Path(label).stem
    notes = [f"IR version {proto.ir_version}, opset {_opset(proto)}"]
    if proto.training_info:
        notes.append("the file's training_info is ignored: only the inference graph is read")
    if proto.functions:
        before = len(proto.functions)
        proto = inline_functions(proto, label)
        notes.append(f"{before - len(proto.functions)} local functions were inlined")
        if proto.functions:
            notes.append(f"{len(proto.functions)} local functions of other opsets stay ops")
    if not proto.graph.node:
        raise ImportFailedError(f"{label}: the model has no nodes; there is nothing to decide")
    return LoadedModel(proto, label, name, folder, tuple(notes))


def _parse(path: Path, label: str) -> ModelProto:
    try:
        if path.is_dir():
            raise ImportFailedError(f"{label}: is a folder; expected an ONNX file in it")
        size = path.stat().st_size
        if size > _MAX_FILE_BYTES:
            raise ImportFailedError(
                f"{label}: has {size} bytes and a protobuf message at most {_MAX_FILE_BYTES}; "
                "save the model with external data"
            )
        content = path.read_bytes()
    except FileNotFoundError:
        raise ImportFailedError(f"{label}: no such file") from None
    except OSError as error:
        raise ImportFailedError(f"{label}: cannot be read ({error.strerror})") from error
    if not content:
        raise ImportFailedError(f"{label}: is empty; expected an ONNX model")
    proto = ModelProto()
    try:
        proto.ParseFromString(content)
    except DecodeError:
        raise ImportFailedError(
            f"{label}: not an ONNX model, or damaged or truncated (protobuf cannot parse it)"
        ) from None
    return proto


def _check_versions(proto: ModelProto, label: str) -> None:
    """Refuses what is no model, and versions that the installed onnx does not know."""
    if not proto.HasField("graph"):
        raise ImportFailedError(f"{label}: not an ONNX model: it has no graph")
    if proto.ir_version <= 0:
        raise ImportFailedError(f"{label}: not an ONNX model: it states no IR version")
    if proto.ir_version > onnx.IR_VERSION:
        raise ImportFailedError(
            f"{label}: IR version {proto.ir_version} is too new: the installed onnx {onnx.__version__} knows "
            "IR "
            f"versions up to {onnx.IR_VERSION}; upgrade onnx or export with an older IR version"
        )
    if not proto.opset_import and proto.ir_version >= 3:
        raise ImportFailedError(f"{label}: states no opset version; a model of IR version 3 or later must")
    newest = {"": onnx.defs.onnx_opset_version(), "ai.onnx": onnx.defs.onnx_opset_version()}
    newest |= {domain: version for domain, version in _newest_opsets().items() if domain}
    for opset in proto.opset_import:
        if not 0 < opset.version < 2**31:
            raise ImportFailedError(
                f"{label}: states opset {opset.version} of {opset.domain or 'ai.onnx'}; the file is damaged"
            )
        if opset.version > newest.get(opset.domain, opset.version):
            raise ImportFailedError(
                f"{label}: opset {opset.version} of {opset.domain or 'ai.onnx'} is too new: the installed "
                "onnx "
                f"{onnx.__version__} knows opsets up to {newest[opset.domain]}; upgrade onnx or export with "
                "an older opset"
            )


@cache
def _newest_opsets() -> dict[str, int]:
    newest: Counter[str] = Counter()
    for schema in onnx.defs.get_all_schemas():
        newest[schema.domain] = max(newest[schema.domain], schema.since_version)
    # A domain's newest version may have changed no operator; its operators' versions are only a floor.
    newest["ai.onnx.ml"] = max(newest["ai.onnx.ml"], onnx.helper.VERSION_TABLE[-1][3])
    return dict(newest)


def _opset(proto: ModelProto) -> int:
    return next((o.version for o in proto.opset_import if o.domain in ("", "ai.onnx")), 1)


# --- subgraphs of nodes


def subgraphs(node: NodeProto) -> list[tuple[str, GraphProto]]:
    """The bodies of a node with the names of their attributes, in the order of the file."""
    found: list[tuple[str, GraphProto]] = []
    for attribute in node.attribute:
        if attribute.type == AttributeProto.GRAPH or (not attribute.type and attribute.HasField("g")):
            found.append((attribute.name, attribute.g))
        elif attribute.type == AttributeProto.GRAPHS:
            found.extend((f"{attribute.name}[{i}]", g) for i, g in enumerate(attribute.graphs))
    return found


def nodes_of(graph: GraphProto | Iterable[NodeProto]) -> Iterator[NodeProto]:
    """All nodes, those of bodies included (protobuf limits how deep bodies nest)."""
    for node in graph.node if isinstance(graph, GraphProto) else graph:
        yield node
        for _, body in subgraphs(node):
            yield from nodes_of(body)


# --- external weights


def check_external_path(tensor: TensorProto, folder: Path | None, label: str) -> str:
    """Returns where a tensor's data lie, relative to the model's folder; the data may be absent.

    Raises:
        ImportFailedError: The path is absent, absolute, or leaves the folder, be it through a link.
    """
    location = next((entry.value for entry in tensor.external_data if entry.key == "location"), "")
    name = f"{label}: weights of {tensor.name!r}"
    if not isinstance(location, str) or not location or "\0" in location:
        raise ImportFailedError(
            f"{name} are said to be external, without a path; expected a path beside the model"
        )
    windows = PureWindowsPath(location)
    absolute = PurePosixPath(location).is_absolute() or windows.drive or windows.root
    if absolute or ".." in windows.parts:
        raise ImportFailedError(
            f"{name} are at {location!r}, which leaves the model's folder; put them beside the model and "
            "save the "
            "path relative to it"
        )
    if folder is not None:
        home = folder.resolve()
        try:
            target = (home / location).resolve()
        except (OSError, RuntimeError, ValueError) as error:
            raise ImportFailedError(f"{name}: the path {location!r} cannot be followed ({error})") from error
        if not target.is_relative_to(home):
            raise ImportFailedError(
                f"{name} are at {location!r}, a link that leaves the model's folder; copy the file into the "
                "folder"
            )
    return location


def tensors_of(graph: GraphProto) -> Iterator[TensorProto]:
    """All weights stored in a graph: initializers and tensor attributes, those of bodies included."""
    yield from graph.initializer
    for sparse in graph.sparse_initializer:
        yield from (sparse.values, sparse.indices)
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type in _PLAIN_ATTRIBUTES:
                continue
            if attribute.HasField("t"):
                yield attribute.t
            yield from attribute.tensors
            for sparse in (attribute.sparse_tensor, *attribute.sparse_tensors):
                yield from (sparse.values, sparse.indices)
        for _, body in subgraphs(node):
            yield from tensors_of(body)


def external_locations(proto: ModelProto, folder: Path | None, label: str) -> list[str]:
    """Checks the paths of all external weights and returns each once, in the order of the file."""
    external = (t for t in tensors_of(proto.graph) if t.data_location == TensorProto.EXTERNAL)
    return list(dict.fromkeys(check_external_path(t, folder, label) for t in external))


# --- local functions


def inline_functions(proto: ModelProto, label: str) -> ModelProto:
    """Replaces calls of local functions by their nodes; the nodes of equal models are numbered alike.

    The weights are kept out of the way of onnx's inliner, which serialises the model (2 GB at most).
    """
    _check_functions(proto, label)
    shell = ModelProto()
    copy_fields(proto, shell, skip=("graph",))
    copy_fields(proto.graph, shell.graph, skip=("initializer",))
    try:
        inlined = onnx.inliner.inline_local_functions(shell)
    except Exception as error:  # the binding raises whatever C++ threw
        raise ImportFailedError(f"{label}: its local functions cannot be inlined ({error})") from error
    inlined.graph.initializer.extend(proto.graph.initializer)
    return inlined


def _check_functions(proto: ModelProto, label: str) -> None:
    """Refuses functions that call each other in a circle or grow without measure."""
    functions = {(f.domain, f.name, getattr(f, "overload", "")): f for f in proto.functions}

    def calls(nodes: Iterable[NodeProto]) -> Counter[tuple[str, str, str]]:
        keys = ((n.domain, n.op_type, getattr(n, "overload", "")) for n in nodes_of(nodes))
        return Counter(key for key in keys if key in functions)

    callees = {key: calls(f.node) for key, f in functions.items()}
    size: dict[tuple[str, str, str], int] = {}
    while len(size) < len(functions):
        ready = [key for key, inner in callees.items() if key not in size and all(c in size for c in inner)]
        if not ready:
            stuck = sorted(key[1] for key in functions if key not in size)
            raise ImportFailedError(
                f"{label}: local functions call each other in a circle: {', '.join(stuck[:10])}"
            )
        for key in ready:
            own = sum(1 for _ in nodes_of(functions[key].node))
            size[key] = own + sum(count * size[c] for c, count in callees[key].items())
    total = sum(count * size[key] for key, count in calls(proto.graph.node).items())
    if total > MAX_EXPANDED_NODES:
        raise ImportFailedError(
            f"{label}: local functions expand to {total} nodes; at most {MAX_EXPANDED_NODES} are read"
        )


def copy_fields(source: Any, target: Any, skip: tuple[str, ...]) -> None:
    """Copies the fields of a message one by one, as copying the whole would serialise it."""
    for descriptor, value in source.ListFields():
        if descriptor.name in skip:
            continue
        if hasattr(value, "extend"):
            getattr(target, descriptor.name).extend(value)
        elif hasattr(value, "CopyFrom"):
            getattr(target, descriptor.name).CopyFrom(value)
        else:
            setattr(target, descriptor.name, value)
