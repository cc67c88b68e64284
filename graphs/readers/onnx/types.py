"""Types of ONNX values, and the in-between form of a graph while it is read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import NodeProto, TensorProto, TypeProto

from ....errors import ImportFailedError
from ...dtypes import BITS, storage_bytes

#: Our names of ONNX's element types (``TensorProto.DataType``), by number: an older onnx lacks the newest.
DTYPES = dict(
    enumerate(
        (
            "float32", "uint8", "int8", "uint16", "int16", "int32", "int64", "string", "bool", "float16",
            "float64", "uint32", "uint64", "complex64", "complex128", "bfloat16", "float8e4m3fn",
            "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz", "uint4", "int4", "float4e2m1", "float8e8m0",
            "uint2", "int2", "float6e2m3", "float6e3m2",
        ),
        start=1,
    )
)  # fmt: skip
UNDEFINED = 0
INT64 = 7
BOOL = 9
#: Dtype of a tensor about which the file says nothing; it is listed in the report and has 0 bytes.
UNKNOWN_DTYPE = "unknown"
#: Dtypes of index and flag tensors: constants of these are no weights.
_INDEX_ELEMENTS = {INT64, 6, 8, BOOL}

Dims = tuple[int | None, ...]
#: The size of one dimension in a file: an int, or None where it is unknown.
DimSize = Callable[[Any], int | None]


def element_type(number: int, tensor: str) -> int:
    """Checks an element type.

    Raises:
        ImportFailedError: The number names no dtype that this version knows; nothing is guessed.
    """
    if number != UNDEFINED and DTYPES.get(number) not in BITS:
        raise ImportFailedError(
            f"tensor {tensor!r} has element type {number}, whose size is unknown; "
            f"known: {', '.join(f'{k} ({v})' for k, v in DTYPES.items())}"
        )
    return number


@dataclass(frozen=True, slots=True)
class TensorType:
    """Element type and shape of a value, each as far as it is known.

    Attributes:
        element: ONNX's element type, 0 where unknown.
        dims: Sizes, ``None`` for an unknown one; ``None`` for an unknown rank.
        container: The type as the file writes it, for a sequence, an optional or a map; empty for a tensor.
    """

    element: int = UNDEFINED
    dims: Dims | None = None
    container: bytes = b""

    @property
    def shape(self) -> tuple[int, ...] | None:
        """The shape if every size is known."""
        if self.dims is None or self.container or None in self.dims:
            return None
        return self.dims  # type: ignore[return-value]

    def __str__(self) -> str:
        if self.container:
            return str(TypeProto.FromString(self.container).WhichOneof("value"))
        dims = "unknown rank"
        if self.dims is not None:
            dims = ",".join("?" if d is None else str(d) for d in self.dims)
        return f"{DTYPES.get(self.element, UNKNOWN_DTYPE)}[{dims}]"


UNKNOWN = TensorType()


def from_proto(proto: TypeProto, tensor: str, size: DimSize) -> TensorType:
    """Reads a type; an unset, negative or unbound dimension is unknown, an explicit 0 is 0."""
    which = proto.WhichOneof("value")
    if which is None:
        return UNKNOWN
    if which != "tensor_type":
        return TensorType(container=proto.SerializeToString())
    body = proto.tensor_type
    dims = tuple(size(d) for d in body.shape.dim) if body.HasField("shape") else None
    return TensorType(element_type(body.elem_type, tensor), dims)


def literal_size(dim: Any) -> int | None:
    """Size of a dimension that is written as a number."""
    if dim.WhichOneof("value") != "dim_value" or dim.dim_value < 0:
        return None
    return int(dim.dim_value)


def to_proto(kind: TensorType) -> TypeProto:
    """Writes a type."""
    if kind.container:
        container: TypeProto = TypeProto.FromString(kind.container)
        return container
    proto = TypeProto()
    proto.tensor_type.elem_type = kind.element
    if kind.dims is not None:
        proto.tensor_type.shape.SetInParent()
        for d in kind.dims:
            dim = proto.tensor_type.shape.dim.add()
            if d is not None:
                dim.dim_value = d
    return proto


@dataclass(eq=False, slots=True)
class Storage:
    """A tensor of the graph to be: what one or more ONNX values (views) are kept in."""

    name: str
    type: TensorType
    role: str = "activation"
    is_output: bool = False
    stored_bytes: int | None = None  # where the size does not follow from the type (sparse weights)

    @property
    def bytes(self) -> int:
        """Size; 0 where the shape or the dtype is unknown."""
        if self.stored_bytes is not None:
            return self.stored_bytes
        shape = self.type.shape
        if shape is None or self.type.element == UNDEFINED:
            return 0
        return storage_bytes(DTYPES[self.type.element], prod(shape))


@dataclass(eq=False, slots=True)
class Value:
    """What a name in the file stands for.

    ``data`` are the contents of a small constant, which may decide shapes; ``proto`` and ``data_proto`` are
    kept in the form that shape inference wants.
    """

    type: TensorType
    storage: Storage
    data: NDArray[Any] | None = None
    proto: TypeProto | None = None
    data_proto: TensorProto | None = None

    def type_proto(self) -> TypeProto:
        """The type as a protobuf message."""
        if self.proto is None:
            self.proto = to_proto(self.type)
        return self.proto


def constant(
    name: str, kind: TensorType, data: NDArray[Any] | None = None, stored: int | None = None
) -> Value:
    """A value that is known before the run, with its own storage.

    Indices, flags and scalars are constants, all other tensors parameters, whichever way the file writes
    them: so weights as initializers and weights as ``Constant`` nodes give the same graph.
    """
    scalar = kind.shape is not None and prod(kind.shape) <= 1
    role = "constant" if scalar or kind.element in _INDEX_ELEMENTS else "parameter"
    return Value(kind, Storage(name, kind, role, stored_bytes=stored), data)


@dataclass(eq=False, slots=True)
class LoweredOp:
    """An op of the graph to be."""

    node: int  # index of the node in its graph's list
    kind: str
    name: str
    inputs: list[Storage]
    outputs: list[Storage]
    flops: int = 0
    accessed_bytes: int | None = None
    workspace_bytes: int = 0
    elementwise: bool = False

    @property
    def moved_bytes(self) -> int:
        """Bytes read and written."""
        if self.accessed_bytes is not None:
            return self.accessed_bytes
        return sum(s.bytes for s in {*self.inputs, *self.outputs})


@dataclass(eq=False)
class LoweredGraph:
    """One ONNX graph (the main one or a body) as ops and storages."""

    ops: list[LoweredOp] = field(default_factory=list)
    inputs: list[Value] = field(default_factory=list)
    outputs: list[Value] = field(default_factory=list)
    constant_ifs: dict[int, str] = field(default_factory=dict)  # node -> the branch that is always taken
    folded_reads: set[Storage] = field(default_factory=set)  # read by nodes that were folded


def kind_of(node: NodeProto) -> str:
    """Kind of a node: its type, with the domain if that is not ONNX's own."""
    return node.op_type if node.domain in ("", "ai.onnx") else f"{node.domain}.{node.op_type}"


def label(index: int, node: NodeProto) -> str:
    """Names a node in a message."""
    return f"node {index} {kind_of(node)}" + (f" {node.name!r}" if node.name else "")


def text(word: str) -> str:
    """Checks a name (protobuf hands over bytes that are no UTF-8 as they are).

    Raises:
        ImportFailedError: It is no text.
    """
    if not isinstance(word, str):
        raise ImportFailedError(f"the name {word!r} is no UTF-8 text: the file is damaged")
    return word


def numbers(values: Iterable[Any]) -> list[int]:
    """Python ints of an array or list."""
    return [int(v) for v in values]


def numpy_dtype(element: int) -> np.dtype[Any] | None:
    """The numpy dtype of an element type that numpy itself has."""
    name = DTYPES.get(element, "")
    plain: Sequence[str] = ("float16", "float32", "float64", "bool", "int8", "int16", "int32", "int64",
                            "uint8", "uint16", "uint32", "uint64")  # fmt: skip
    return np.dtype(name) if name in plain else None
