"""One graph, one ``.npz``: the arrays as they are, names and everything else in a JSON header."""

from __future__ import annotations

import json
import os
import zipfile
from dataclasses import fields
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ImportFailedError, InvalidGraphError
from .atomic import atomic_write
from .graph import DIRECTIONS, ROLES, Graph

FORMAT = "opgym.graph"
VERSION = 1
#: A file that unpacks to more than this is refused before anything is read (a zip bomb, or not a graph);
#: a graph of 100,000 ops unpacks to some 20 MB.
MAX_UNPACKED_BYTES = 2**30

_TEXT_LISTS = ("op_names", "tensor_names")
#: What the header holds beside format and version, and whether each is a list of texts, a text or a flag.
_HEADER: dict[str, type] = {
    "kinds": list,
    "device_classes": list,
    "layers": list,
    "dtypes": list,
    "in_place": bool,
    "level": str,
    "name": str,
}
_DTYPES = {
    "Int32": np.int32,
    "Int64": np.int64,
    "NDArray[np.int8]": np.int8,
    "NDArray[np.bool_]": np.bool_,
    "NDArray[np.uint64]": np.uint64,
}
_ARRAYS: dict[str, np.dtype[Any]] = {
    f.name: np.dtype(_DTYPES[str(f.type)]) for f in fields(Graph) if f.name not in (*_TEXT_LISTS, *_HEADER)
}
_TEXT_ARRAYS = {
    f"{key}_{part}": np.dtype(dtype)
    for key in _TEXT_LISTS
    for part, dtype in (("ptr", np.int64), ("utf8", np.uint8))
}


def save(graph: Graph, path: str | os.PathLike[str]) -> None:
    """Writes a graph atomically; equal graphs with equal names give equal bytes.

    Raises:
        OSError: The folder is missing or not writable, or the disk is full; no file is left half written.
    """
    header = {"format": FORMAT, "version": VERSION, **{key: getattr(graph, key) for key in _HEADER}}
    arrays: dict[str, Any] = {"header": np.frombuffer(json.dumps(header).encode(), np.uint8)}
    arrays |= {key: getattr(graph, key) for key in _ARRAYS}
    for key in _TEXT_LISTS:
        encoded = [name.encode("utf-8", "surrogatepass") for name in getattr(graph, key)]
        arrays[f"{key}_ptr"] = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
        arrays[f"{key}_utf8"] = np.frombuffer(b"".join(encoded), np.uint8)
    with atomic_write(path) as f:
        np.savez_compressed(f, **arrays)


def load(path: str | os.PathLike[str]) -> Graph:
    """Reads a graph; nothing in the file is executed or unpickled, and its structure is checked.

    Raises:
        ImportFailedError: The file is absent, damaged, too large, or of another format or version.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            graph = Graph(**_read(archive))
        check_structure(graph)
    except InvalidGraphError as error:
        raise ImportFailedError(f"{path}: {error}") from error
    except FileNotFoundError:
        raise ImportFailedError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise ImportFailedError(f"{path}: is a folder; expected a graph file (.npz)") from None
    except Exception as error:  # whatever a damaged archive makes zipfile, zlib, json or numpy say
        raise ImportFailedError(
            f"{path}: not a readable opgym graph ({type(error).__name__}: {error})"
        ) from error
    return graph


def _read(archive: zipfile.ZipFile) -> dict[str, Any]:
    """The fields of the graph in an archive.

    Raises:
        InvalidGraphError: Too large, another format or version, a part too many, missing or of a wrong type.
    """
    unpacked = sum(entry.file_size for entry in archive.infolist())
    if unpacked > MAX_UNPACKED_BYTES:
        raise InvalidGraphError(f"unpacks to {unpacked} bytes; at most {MAX_UNPACKED_BYTES} are read")
    names = sorted(archive.namelist())
    if "header.npy" not in names:
        raise InvalidGraphError("a zip archive without a header; expected a graph that opgym saved")
    header = json.loads(_read_array(archive, "header", np.dtype(np.uint8)).tobytes())
    if not isinstance(header, dict) or header.get("format") != FORMAT or header.get("version") != VERSION:
        what = header if isinstance(header, dict) else {}
        raise InvalidGraphError(
            f"format {what.get('format')!r} version {what.get('version')!r}; "
            f"this opgym reads {FORMAT!r} version {VERSION}"
        )
    parts = {**_ARRAYS, **_TEXT_ARRAYS}
    expected = sorted(f"{name}.npy" for name in ("header", *parts))
    if names != expected or set(header) != {"format", "version", *_HEADER}:
        odd = sorted({*names} ^ {*expected} | {*header} ^ {"format", "version", *_HEADER})
        raise InvalidGraphError(f"parts missing, unknown or listed twice: {', '.join(odd[:5]) or 'twice'}")
    values: dict[str, Any] = {}
    for key, kind in _HEADER.items():
        value: Any = header[key]
        texts = value if isinstance(value, list) else []
        if not isinstance(value, kind) or not all(isinstance(item, str) for item in texts):
            raise InvalidGraphError(
                f"header field {key!r} is no {'list of texts' if kind is list else kind.__name__}"
            )
        values[key] = tuple(texts) if kind is list else value
    arrays = {name: _read_array(archive, name, dtype) for name, dtype in parts.items()}
    values |= {key: arrays[key] for key in _ARRAYS}
    for key in _TEXT_LISTS:
        values[key] = _split(key, arrays[f"{key}_utf8"].tobytes(), arrays[f"{key}_ptr"])
    return values


def _read_array(archive: zipfile.ZipFile, name: str, dtype: np.dtype[Any]) -> NDArray[Any]:
    """A flat array of exactly that dtype; what the file claims is held against the bytes that are there."""
    with archive.open(f"{name}.npy") as f:
        if np.lib.format.read_magic(f) != (1, 0):
            raise InvalidGraphError(f"{name} is stored in an unknown version of numpy's format")
        shape, _, stored = np.lib.format.read_array_header_1_0(f)
        data = f.read()
    if stored != dtype or len(shape) != 1 or shape[0] * dtype.itemsize != len(data):
        raise InvalidGraphError(
            f"{name} is {stored}{shape} in {len(data)} bytes; expected a flat {dtype} array"
        )
    if dtype == np.bool_ and np.frombuffer(data, np.uint8).max(initial=0) > 1:
        raise InvalidGraphError(f"{name} holds a flag that is neither 0 nor 1")
    return np.frombuffer(data, dtype)


def _split(name: str, text: bytes, ptr: NDArray[np.int64]) -> tuple[str, ...]:
    if len(ptr) == 0 or ptr[0] != 0 or ptr[-1] != len(text) or (ptr[1:] < ptr[:-1]).any():
        raise InvalidGraphError(f"{name}_ptr is not a CSR pointer into the text of {name}")
    spans = pairwise(ptr.tolist())
    if text.isascii():  # decoded once, which is much faster
        whole = text.decode("ascii")
        return tuple(whole[a:b] for a, b in spans)
    return tuple(text[a:b].decode("utf-8", "surrogatepass") for a, b in spans)


def check_structure(graph: Graph) -> None:
    """Checks that the arrays form a legal graph in canonical form (a file may come from anywhere).

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
        ascending = (ptr[1:] >= ptr[:-1]).all()  # no difference: it could overflow
        expect(ptr[0] == start and ptr[-1] == end and ascending, f"{name} is not a CSR pointer")

    def expect_codes(name: str, low: int, high: int) -> None:
        codes = getattr(graph, name)
        expect((codes >= low).all() and (codes < high).all(), f"{name} leaves {low} .. {high - 1}")

    def expect_sorted_names(name: str, used: Any) -> None:
        names = getattr(graph, name)
        expect(
            names == tuple(sorted(set(names))) and len(names) == used,
            f"{name} are not sorted, distinct and used",
        )

    def expect_numbered_by_first_op(name: str, count: int | None = None) -> None:
        codes = getattr(graph, name)
        highest = np.maximum.accumulate(np.concatenate([[-1], codes]))
        expect((codes <= highest[:-1] + 1).all(), f"{name} is not numbered in order of first op")
        expect(count is None or highest[-1] + 1 == count, f"{name} leaves out one of {count} names")

    expect(ops > 0, "there are no ops")
    for name, dtype in _ARRAYS.items():
        rows = ops if name.startswith("op_") else tensors if name.startswith("tensor_") else None
        array = getattr(graph, name)
        flat = array.dtype == dtype and array.ndim == 1
        expect(flat, f"{name} is {array.dtype}{array.shape}; expected a flat {dtype} array")
        expect(rows is None or array.shape == (rows,), f"{name} has shape {array.shape}; expected ({rows},)")
    expect(
        len(graph.op_names) == ops and len(graph.tensor_names) == tensors,
        "names do not match ops and tensors",
    )
    expect_codes("op_kind", 0, len(graph.kinds))
    expect_codes("op_layer", -1, len(graph.layers))
    expect_codes("op_group", -1, ops)
    expect_codes("op_direction", 0, len(DIRECTIONS))
    expect_codes("op_update_of", -1, ops)
    expect_codes("tensor_producer", -1, ops)
    expect_codes("tensor_dtype", 0, len(graph.dtypes))
    expect_codes("tensor_role", 0, len(ROLES))
    expect_sorted_names("kinds", np.count_nonzero(np.bincount(graph.op_kind)))
    expect_sorted_names("dtypes", np.count_nonzero(np.bincount(graph.tensor_dtype)))
    bits = int(np.bitwise_or.reduce(graph.op_unsupported))
    expect_sorted_names("device_classes", bits.bit_count())
    expect(bits < 1 << len(graph.device_classes), "op_unsupported names a device class that does not exist")
    expect(len(set(graph.layers)) == len(graph.layers), "two layers have the same name")
    expect_numbered_by_first_op("op_layer", len(graph.layers))
    expect_numbered_by_first_op("op_group")
    for name in ("op_flops", "op_accessed_bytes", "op_workspace_bytes", "tensor_bytes", "shape_dim"):
        expect((getattr(graph, name) >= 0).all(), f"{name} has a negative entry")
    sources = int((graph.tensor_producer < 0).sum())
    expect_ptr("input_ptr", ops, 0, len(graph.input_tensor))
    expect_ptr("output_ptr", ops, sources, tensors)
    expect_ptr("shape_ptr", tensors, 0, len(graph.shape_dim))
    expect_codes("input_tensor", 0, tensors)
    producer = np.repeat(np.arange(ops), np.diff(graph.output_ptr))
    consistent = (graph.tensor_producer[:sources] < 0).all() and (
        graph.tensor_producer[sources:] == producer
    ).all()
    expect(consistent, "tensor_producer contradicts output_ptr")
    source_op, reader, _ = graph.edges
    expect((source_op < reader).all(), "ops are not in topological order")
    is_update = graph.op_update_of >= 0
    expect(
        graph.is_variable[graph.op_update_of[is_update]].all(), "op_update_of names an op that is no variable"
    )
    expect(not graph.is_variable[is_update].any(), "a variable op updates another")
    expect(not np.diff(graph.input_ptr)[graph.is_variable].any(), "a variable op reads tensors")
    reads = np.repeat(np.arange(ops, dtype=np.int64), np.diff(graph.input_ptr)) * tensors + graph.input_tensor
    reads.sort()
    expect((reads[1:] != reads[:-1]).all(), "an op lists the same input tensor twice")
