"""Contents of small constants, which may decide shapes.

Only contents of less than 1 KiB are followed: that is what exporters keep inside the file when weights are
stored outside it, so such a model gives the same graph whether its weights are there or not.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import NodeProto, TensorProto

from ....errors import ImportFailedError
from ...dtypes import storage_bytes
from .types import DTYPES, TensorType, Value, constant, element_type, numpy_dtype

#: Contents of this many bytes or more are not followed.
MAX_FOLLOWED_BYTES = 1024

Array = NDArray[Any]


def attributes(node: NodeProto) -> dict[str, Any]:
    """Attributes of a node by name; texts as ``str``, bodies left out."""
    found: dict[str, Any] = {}
    for a in node.attribute:
        if a.type in (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS) or a.ref_attr_name:
            continue
        try:
            value = onnx.helper.get_attribute_value(a)
        except ValueError:  # of undefined type
            continue
        if isinstance(value, bytes):
            value = value.decode("utf-8", "replace")
        found[a.name] = value
    return found


def integer(given: Mapping[str, Any], name: str, default: int = 0) -> int:
    """An integer attribute.

    Raises:
        ImportFailedError: It is of another type.
    """
    value = given.get(name, default)
    if type(value) is not int:
        raise ImportFailedError(f"attribute {name} is {value!r}; expected a whole number")
    return value


def integers(given: Mapping[str, Any], name: str) -> list[int] | None:
    """An attribute that lists integers, ``None`` where absent.

    Raises:
        ImportFailedError: It is of another type.
    """
    value = given.get(name)
    if value is not None and not (isinstance(value, list) and all(type(v) is int for v in value)):
        raise ImportFailedError(f"attribute {name} is {value!r}; expected whole numbers")
    return value


def is_followed(kind: TensorType) -> bool:
    """Whether the contents of a constant of this type are followed."""
    shape = kind.shape
    if shape is None or numpy_dtype(kind.element) is None:
        return False
    return storage_bytes(DTYPES[kind.element], prod(shape)) < MAX_FOLLOWED_BYTES


def from_tensor(tensor: TensorProto, name: str, folder: Path | None = None) -> Value:
    """The value of an initializer or a tensor attribute.

    Args:
        tensor: The tensor; the path of external contents must have been checked.
        name: Name of the value.
        folder: Where small external contents are read, if they are there.

    Raises:
        ImportFailedError: A negative size, an unknown dtype, contents that contradict the shape.
    """
    dims = tuple(tensor.dims)
    if any(d < 0 for d in dims):
        raise ImportFailedError(f"weights {name!r} have a negative size in {dims}")
    if tensor.data_type == 0:
        raise ImportFailedError(f"weights {name!r} have no dtype; nothing is guessed")
    kind = TensorType(element_type(tensor.data_type, name), dims)
    value = constant(name, kind)
    external = tensor.data_location == TensorProto.EXTERNAL
    expected = storage_bytes(DTYPES[kind.element], prod(dims))
    if tensor.HasField("raw_data") and not external and len(tensor.raw_data) not in (0, expected):
        raise ImportFailedError(
            f"weights {name!r} hold {len(tensor.raw_data)} bytes; {kind} needs {expected}: the file is "
            "damaged"
        )
    if not is_followed(kind):
        return value
    if external:
        content = _read_external(tensor, folder, expected)
        if content is None:
            return value
        tensor = TensorProto(dims=tensor.dims, data_type=tensor.data_type, raw_data=content)
    try:
        value.data = onnx.numpy_helper.to_array(tensor)
        value.data_proto = tensor
    except (ValueError, TypeError, OverflowError) as error:
        if expected and _holds_data(tensor):
            raise ImportFailedError(f"weights {name!r} cannot be read as {kind} ({error})") from error
    return value


def _read_external(tensor: TensorProto, folder: Path | None, size: int) -> bytes | None:
    """Reads small external contents; ``None`` where they are absent or too short."""
    entries = {entry.key: entry.value for entry in tensor.external_data}
    offset = entries.get("offset", "0")
    if folder is None or not isinstance(offset, str) or not (offset.isascii() and offset.isdigit()):
        return None
    path = folder / entries["location"]
    try:
        if not path.is_file():
            return None
        with path.open("rb") as f:
            f.seek(int(offset))
            content = f.read(size)
    except (OSError, OverflowError, ValueError):
        return None
    return content if len(content) == size else None


def _holds_data(tensor: TensorProto) -> bool:
    return any(f.name.endswith("_data") and f.name != "external_data" for f, _ in tensor.ListFields())


def from_sparse(sparse: onnx.SparseTensorProto, name: str) -> Value:
    """Sparse weights: of the dense shape, and as large as their values and indices."""
    if any(d < 0 for d in sparse.dims):
        raise ImportFailedError(f"weights {name!r} have a negative size in {tuple(sparse.dims)}")
    parts = [from_tensor(part, name) for part in (sparse.values, sparse.indices)]
    kind = TensorType(parts[0].type.element, tuple(sparse.dims))
    return constant(name, kind, stored=sum(part.storage.bytes for part in parts))


def from_constant_node(node: NodeProto, name: str, folder: Path | None = None) -> Value:
    """The value of a ``Constant`` node.

    Raises:
        ImportFailedError: The node holds no value.
    """
    for a in node.attribute:
        if a.name == "value":
            return from_tensor(a.t, name, folder)
        if a.name == "sparse_value":
            return from_sparse(a.sparse_tensor, name)
        if a.name in ("value_int", "value_ints"):
            return from_array(np.array(a.i if a.name == "value_int" else list(a.ints), np.int64), name)
        if a.name in ("value_float", "value_floats"):
            return from_array(np.array(a.f if a.name == "value_float" else list(a.floats), np.float32), name)
        if a.name in ("value_string", "value_strings"):
            dims = () if a.name == "value_string" else (len(a.strings),)
            return constant(name, TensorType(8, dims))
    raise ImportFailedError(f"Constant node of tensor {name!r} holds no value")


def from_array(data: Array, name: str, element: int | None = None) -> Value:
    """A constant with these contents."""
    if element is None:
        element = next(number for number, dtype in DTYPES.items() if dtype == data.dtype.name)
    kind = TensorType(element, data.shape)
    return constant(name, kind, data if is_followed(kind) else None)


def data_proto(value: Value) -> TensorProto | None:
    """Contents of a value in the form that shape inference wants."""
    if value.data_proto is None and value.data is not None:
        value.data_proto = onnx.numpy_helper.from_array(np.asarray(value.data))
    return value.data_proto
