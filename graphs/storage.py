"""One graph, one ``.npz``: the arrays as they are, names and everything else in a JSON header."""

from __future__ import annotations

import json
import os
import tempfile
import zipfile
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import ImportFailedError, InvalidGraphError
from .graph import DIRECTIONS, ROLES, Graph

FORMAT = "opgym.graph"
VERSION = 1
#: A file that unpacks to more than this is refused before anything is read (a zip bomb, or not a graph).
MAX_UNPACKED_BYTES = 4 * 2**30

_TEXT_LISTS = ("op_names", "tensor_names")
_HEADER = ("kinds", "device_classes", "layers", "dtypes", "in_place", "level", "name")
_DTYPES = {"Int32": np.int32, "Int64": np.int64} | {
    f"NDArray[np.{dtype.__name__}]": dtype for dtype in (np.int8, np.bool_, np.uint64)
} | {"NDArray[np.bool_]": np.bool_}
_ARRAYS = {
    f.name: np.dtype(_DTYPES[str(f.type)]) for f in fields(Graph) if f.name not in (*_TEXT_LISTS, *_HEADER)
}


def save(graph: Graph, path: str | os.PathLike[str]) -> None:
    """Writes a graph atomically; equal graphs give equal bytes."""
    header = {"format": FORMAT, "version": VERSION, **{key: getattr(graph, key) for key in _HEADER}}
    arrays: dict[str, Any] = {"header": np.frombuffer(json.dumps(header).encode(), np.uint8)}
    arrays |= {key: getattr(graph, key) for key in _ARRAYS}
    for key in _TEXT_LISTS:
        encoded = [name.encode("utf-8", "surrogatepass") for name in getattr(graph, key)]
        arrays[f"{key}_ptr"] = np.concatenate([[0], np.cumsum([len(e) for e in encoded], dtype=np.int64)]).astype(np.int64)
        arrays[f"{key}_utf8"] = np.frombuffer(b"".join(encoded), np.uint8)
    target = Path(path)
    with tempfile.NamedTemporaryFile(dir=target.parent, prefix=target.name, suffix=".tmp", delete=False) as f:
        try:
            np.savez_compressed(f, **arrays)
            f.flush()
            os.chmod(f.name, 0o644)
            os.replace(f.name, target)
        except BaseException:
            os.unlink(f.name)
            raise


def load(path: str | os.PathLike[str]) -> Graph:
    """Reads a graph; nothing in the file is executed or unpickled, and its structure is checked.

    Raises:
        ImportFailedError: The file is absent, damaged, too large, or of another format or version.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            unpacked = sum(entry.file_size for entry in archive.infolist())
        if unpacked > MAX_UNPACKED_BYTES:
            raise ImportFailedError(f"{path}: unpacks to {unpacked} bytes; at most {MAX_UNPACKED_BYTES} are read")
        with np.load(path, allow_pickle=False) as stored:
            header = json.loads(stored["header"].tobytes())
            if header.get("format") != FORMAT or header.get("version") != VERSION:
                raise ImportFailedError(
                    f"{path}: format {header.get('format')!r} version {header.get('version')!r}; "
                    f"this opgym reads {FORMAT!r} version {VERSION}"
                )
            values: dict[str, Any] = {key: stored[key] for key in _ARRAYS}
            for key in _HEADER:
                values[key] = tuple(header[key]) if isinstance(header[key], list) else header[key]
            for key in _TEXT_LISTS:
                ends = stored[f"{key}_ptr"].tolist()
                text = stored[f"{key}_utf8"].tobytes()
                values[key] = _split(text, ends)
    except ImportFailedError:
        raise
    except FileNotFoundError:
        raise ImportFailedError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise ImportFailedError(f"{path}: is a folder; expected a graph file (.npz)") from None
    except Exception as error:
        raise ImportFailedError(f"{path}: not a readable opgym graph ({type(error).__name__}: {error})") from error
    graph = Graph(**values)
    try:
        check_structure(graph)
    except InvalidGraphError as error:
        raise ImportFailedError(f"{path}: {error}") from error
    return graph


def _split(text: bytes, ends: Sequence[int]) -> tuple[str, ...]:
    return tuple(text[a:b].decode("utf-8", "surrogatepass") for a, b in zip(ends, ends[1:], strict=False))


def check_structure(graph: Graph) -> None:
    """Checks that the arrays form a legal graph (a file may come from anywhere).

    Raises:
        InvalidGraphError: Naming the first array that is wrong.
    """
    ops, tensors = graph.num_ops, graph.num_tensors

    def expect(condition: Any, message: str) -> None:
        if not condition:
            raise InvalidGraphError(message)

    def expect_ptr(name: str, rows: int, start: int, end: int) -> None:
        ptr = getattr(graph, name)
        expect(len(ptr) == rows + 1, f"{name} has {len(ptr)} entries; expected {rows + 1}")
        expect(ptr[0] == start and ptr[-1] == end and (np.diff(ptr) >= 0).all(), f"{name} is not a CSR pointer")

    def expect_codes(name: str, low: int, high: int) -> None:
        codes = getattr(graph, name)
        expect(codes.ndim == 1 and (codes >= low).all() and (codes < high).all(), f"{name} leaves {low} .. {high - 1}")

    expect(ops > 0, "there are no ops")
    for name, dtype in _ARRAYS.items():
        rows = ops if name.startswith("op_") else tensors if name.startswith("tensor_") else None
        array = getattr(graph, name)
        expect(array.dtype == dtype and array.ndim == 1, f"{name} is {array.dtype}{array.shape}; expected flat {dtype}")
        expect(rows is None or array.shape == (rows,), f"{name} has shape {array.shape}; expected ({rows},)")
    expect(len(graph.op_names) == ops and len(graph.tensor_names) == tensors, "names do not match ops and tensors")
    expect_codes("op_kind", 0, len(graph.kinds))
    expect_codes("op_layer", -1, len(graph.layers))
    expect_codes("op_group", -1, ops)
    expect_codes("op_direction", 0, len(DIRECTIONS))
    expect_codes("op_update_of", -1, ops)
    expect_codes("tensor_producer", -1, ops)
    expect_codes("tensor_dtype", 0, len(graph.dtypes))
    expect_codes("tensor_role", 0, len(ROLES))
    for name in ("op_flops", "op_accessed_bytes", "op_workspace_bytes", "tensor_bytes", "shape_dim"):
        expect((getattr(graph, name) >= 0).all(), f"{name} has a negative entry")
    sources = int((graph.tensor_producer < 0).sum())
    expect_ptr("input_ptr", ops, 0, len(graph.input_tensor))
    expect_ptr("output_ptr", ops, sources, tensors)
    expect_ptr("shape_ptr", tensors, 0, len(graph.shape_dim))
    expect_codes("input_tensor", 0, tensors)
    producer = np.repeat(np.arange(ops), np.diff(graph.output_ptr))
    expect((graph.tensor_producer[:sources] < 0).all() and (graph.tensor_producer[sources:] == producer).all(),
           "tensor_producer contradicts output_ptr")  # fmt: skip
    source_op, reader, _ = graph.edges
    expect((source_op < reader).all(), "ops are not in topological order")
    updates = graph.op_update_of[graph.op_update_of >= 0]
    expect(graph.is_variable[updates].all(), "op_update_of names an op that is no variable")
    expect(not np.diff(graph.input_ptr)[graph.is_variable].any(), "a variable op reads tensors")
    reads = np.repeat(np.arange(ops, dtype=np.int64), np.diff(graph.input_ptr)) * tensors + graph.input_tensor
    expect(len(np.unique(reads)) == len(reads), "an op lists the same input tensor twice")
