"""One graph, one ``.npz``: packed columns, and everything else in a JSON header.

Version 2 holds the columns of :mod:`opgym.graphs.packing`, about a tenth of what version 1 took, which had the
graph's arrays as they are; both are read.
"""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ImportFailedError, InvalidGraphError
from .atomic import atomic_write
from .graph import ARRAY_DTYPES, Graph
from .packing import column_names, pack, unpack
from .structure import check_structure

FORMAT = "opgym.graph"
VERSION = 2
#: A file that unpacks to more than this is refused before anything is read (a zip bomb, or not a graph).
MAX_UNPACKED_BYTES = 2**30

#: What the header holds beside format and version, and whether each is a list of texts, a text or a flag.
_HEADER: dict[str, type] = {
    "kinds": list,
    "device_classes": list,
    "dtypes": list,
    "in_place": bool,
    "level": str,
    "name": str,
}
_COLUMN_DTYPES = tuple(np.dtype(code) for code in ("<u1", "<u2", "<u4", "<u8", "<i8"))
#: Version 1 had the layers in the header, and names as bytes with pointers.
_HEADER_1: dict[str, type] = {**_HEADER, "layers": list}
_TEXT_LISTS_1 = ("op_names", "tensor_names")
_PARTS_1: dict[str, np.dtype[Any]] = {
    **ARRAY_DTYPES,
    **{
        f"{key}_{part}": np.dtype(dtype)
        for key in _TEXT_LISTS_1
        for part, dtype in (("ptr", np.int64), ("utf8", np.uint8))
    },
}


def save(graph: Graph, path: str | os.PathLike[str]) -> None:
    """Writes a graph atomically; equal graphs with equal names give equal bytes.

    Raises:
        OSError: The folder is missing or not writable, or the disk is full; no file is left half written.
    """
    with atomic_write(path) as f:
        f.write(to_bytes(graph))


def to_bytes(graph: Graph) -> bytes:
    """The file of a graph."""
    header = {"format": FORMAT, "version": VERSION, **{key: getattr(graph, key) for key in _HEADER}}
    parts = {"header": np.frombuffer(json.dumps(header).encode(), np.uint8), **pack(graph)}
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, array in parts.items():
            entry = zipfile.ZipInfo(f"{name}.npy")  # dated 1980, whenever it is written
            entry.create_system = 3  # the same on every system
            entry.compress_type = zipfile.ZIP_DEFLATED
            content = io.BytesIO()
            little = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
            np.lib.format.write_array(content, little, version=(1, 0))
            archive.writestr(entry, content.getvalue(), compresslevel=9)
    return file.getvalue()


def load(path: str | os.PathLike[str]) -> Graph:
    """Reads a graph; nothing in the file is executed or unpickled, and its structure is checked.

    Raises:
        ImportFailedError: The file is absent, damaged, too large, or of another format or version.
    """
    try:
        with open(path, "rb") as f:
            return _load(f, os.fspath(path))
    except FileNotFoundError:
        raise ImportFailedError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise ImportFailedError(f"{path}: is a folder; expected a graph file (.npz)") from None
    except OSError as error:
        raise ImportFailedError(f"{path}: cannot be read ({error})") from error


def from_bytes(data: bytes, where: str) -> Graph:
    """Reads a graph from the content of its file; see :func:`load`.

    Args:
        data: The content.
        where: Names it in messages.
    """
    return _load(io.BytesIO(data), where)


def _load(file: Any, where: str) -> Graph:
    try:
        with zipfile.ZipFile(file) as archive:
            graph = Graph(**_read(archive))
        check_structure(graph)
    except InvalidGraphError as error:
        raise ImportFailedError(f"{where}: {error}") from error
    except Exception as error:  # whatever a damaged archive makes zipfile, zlib, json or numpy say
        raise ImportFailedError(
            f"{where}: not a readable opgym graph ({type(error).__name__}: {error})"
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
    if "header.npy" not in archive.namelist():
        raise InvalidGraphError("a zip archive without a header; expected a graph that opgym saved")
    header = json.loads(_read_array(archive, "header", (np.dtype(np.uint8),)).tobytes())
    what = header if isinstance(header, dict) else {}
    if what.get("format") != FORMAT or what.get("version") not in (1, VERSION):
        raise InvalidGraphError(
            f"format {what.get('format')!r} version {what.get('version')!r}; "
            f"this opgym reads {FORMAT!r} versions 1 to {VERSION}"
        )
    return _read_1(archive, header) if what["version"] == 1 else _read_2(archive, header)


def _read_2(archive: zipfile.ZipFile, header: Mapping[str, Any]) -> dict[str, Any]:
    _expect_parts(archive, header, column_names(), _HEADER)
    values = _header_values(header, _HEADER)
    columns = {name: _read_array(archive, name, _COLUMN_DTYPES) for name in column_names()}
    return {**values, **unpack(columns, values["kinds"])}


def _read_1(archive: zipfile.ZipFile, header: Mapping[str, Any]) -> dict[str, Any]:
    _expect_parts(archive, header, _PARTS_1, _HEADER_1)
    values = _header_values(header, _HEADER_1)
    arrays = {name: _read_array(archive, name, (dtype,)) for name, dtype in _PARTS_1.items()}
    values |= {key: arrays[key] for key in ARRAY_DTYPES}
    for key in _TEXT_LISTS_1:
        values[key] = _split(key, arrays[f"{key}_utf8"].tobytes(), arrays[f"{key}_ptr"])
    return values


def _expect_parts(
    archive: zipfile.ZipFile, header: Mapping[str, Any], parts: Iterable[str], fields: Iterable[str]
) -> None:
    names, expected = sorted(archive.namelist()), sorted(f"{name}.npy" for name in ("header", *parts))
    if names != expected or set(header) != {"format", "version", *fields}:
        odd = sorted({*names} ^ {*expected} | {*header} ^ {"format", "version", *fields})
        raise InvalidGraphError(f"parts missing, unknown or listed twice: {', '.join(odd[:5]) or 'twice'}")


def _header_values(header: Mapping[str, Any], fields: Mapping[str, type]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key, kind in fields.items():
        value: Any = header[key]
        texts = value if isinstance(value, list) else []
        if not isinstance(value, kind) or not all(isinstance(item, str) for item in texts):
            raise InvalidGraphError(
                f"header field {key!r} is no {'list of texts' if kind is list else kind.__name__}"
            )
        values[key] = tuple(texts) if kind is list else value
    return values


def _read_array(archive: zipfile.ZipFile, name: str, dtypes: tuple[np.dtype[Any], ...]) -> NDArray[Any]:
    """A flat array of one of the dtypes; what the file claims is held against the bytes that are there."""
    with archive.open(f"{name}.npy") as f:
        if np.lib.format.read_magic(f) != (1, 0):
            raise InvalidGraphError(f"{name} is stored in an unknown version of numpy's format")
        shape, _, stored = np.lib.format.read_array_header_1_0(f)
        data = f.read()
    if stored not in dtypes or len(shape) != 1 or shape[0] * stored.itemsize != len(data):
        expected = " or ".join(map(str, dtypes))
        raise InvalidGraphError(
            f"{name} is {stored}{shape} in {len(data)} bytes; expected a flat {expected} array"
        )
    if stored == np.bool_ and np.frombuffer(data, np.uint8).max(initial=0) > 1:
        raise InvalidGraphError(f"{name} holds a flag that is neither 0 nor 1")
    return np.frombuffer(data, stored)


def _split(name: str, text: bytes, ptr: NDArray[np.int64]) -> tuple[str, ...]:
    if len(ptr) == 0 or ptr[0] != 0 or ptr[-1] != len(text) or (ptr[1:] < ptr[:-1]).any():
        raise InvalidGraphError(f"{name}_ptr is not a CSR pointer into the text of {name}")
    spans = pairwise(ptr.tolist())
    if text.isascii():  # decoded once, which is much faster
        whole = text.decode("ascii")
        return tuple(whole[a:b] for a, b in spans)
    return tuple(text[a:b].decode("utf-8", "surrogatepass") for a, b in spans)
