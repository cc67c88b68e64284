"""The computation graph: ops, and the tensors (storages) between them; immutable numpy arrays."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Roles of a tensor; ``Graph.tensor_role`` holds positions in this tuple.
ROLES = ("activation", "parameter", "input", "constant")
#: Directions of an op; ``Graph.op_direction`` holds positions in this tuple.
DIRECTIONS = ("forward", "backward", "update")
#: Kind of the op that is the home of a parameter or optimizer state in a training graph.
VARIABLE = "variable"

Int64 = NDArray[np.int64]
Int32 = NDArray[np.int32]


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    array.setflags(write=False)
    return array


@dataclass(frozen=True, eq=False)
class Graph:
    """A bipartite graph of ops and tensors, in topological order of ops.

    Built by :class:`~opgym.graphs.GraphBuilder` (or a reader), never by hand. Ops have the index of the
    lexicographically smallest topological order by file index. Tensors without a producer come first, then
    the others by producer and output slot; so the outputs of op ``v`` are ``output_ptr[v] ..
    output_ptr[v + 1]``. A view is an alias of its storage, not an op. All arrays are read-only. Equality is
    equality of fingerprints.
    """

    # --- ops: arrays of shape [ops] unless stated
    kinds: tuple[str, ...]  # the distinct kinds, sorted
    op_kind: Int32  # position in kinds
    op_flops: Int64  # floating-point operations (a multiply-add is 2)
    op_accessed_bytes: Int64  # bytes read + bytes written
    op_workspace_bytes: Int64  # scratch, held while the op runs
    op_group: Int32  # colocation group, numbered from 0 in order of first op; -1: none
    op_layer: Int32  # position in layers; -1: unknown
    op_direction: NDArray[np.int8]  # position in DIRECTIONS
    op_update_of: Int32  # the variable op whose storage the op's outputs alias; -1: none
    op_elementwise: NDArray[np.bool_]  # may take over an input's buffer if the graph is in_place
    op_unsupported: NDArray[np.uint64]  # bit i: cannot run on device class device_classes[i]
    device_classes: tuple[str, ...]  # names (of profiles or kinds of device) that op_unsupported refers to
    layers: tuple[str, ...]  # names of layers, in order of first op
    # --- tensors: arrays of shape [tensors] unless stated
    tensor_producer: Int32  # op, or -1: a source tensor
    tensor_bytes: Int64
    tensor_dtype: Int32  # position in dtypes
    tensor_role: NDArray[np.int8]  # position in ROLES
    tensor_is_output: NDArray[np.bool_]  # must survive to the end of the run
    dtypes: tuple[str, ...]  # the distinct dtypes, sorted
    shape_ptr: Int64  # [tensors + 1] CSR of shape_dim
    shape_dim: Int64
    # --- edges
    input_ptr: Int32  # [ops + 1] CSR of input_tensor
    input_tensor: Int32  # tensors that an op reads, each once, in order of first position
    output_ptr: Int32  # [ops + 1] tensors that an op writes: a range
    # --- the whole
    in_place: bool  # elementwise ops may take over a dead input's buffer
    level: str  # what an op is: "onnx", "aten-train", "hlo", ...
    name: str
    op_names: tuple[str, ...] = field(repr=False)
    tensor_names: tuple[str, ...] = field(repr=False)

    def __post_init__(self) -> None:
        for f in fields(self):
            value = getattr(self, f.name)
            if isinstance(value, np.ndarray):
                value.setflags(write=False)

    def __getstate__(self) -> dict[str, Any]:  # without what is derived from the fields
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.__post_init__()  # numpy forgets on pickling that an array is read-only

    def __repr__(self) -> str:
        return f"Graph({self.name!r}, level={self.level!r}, ops={self.num_ops}, tensors={self.num_tensors})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Graph) and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    @property
    def num_ops(self) -> int:
        """Number of ops."""
        return len(self.op_kind)

    @property
    def num_tensors(self) -> int:
        """Number of tensors."""
        return len(self.tensor_bytes)

    @property
    def num_groups(self) -> int:
        """Number of colocation groups."""
        return int(self.op_group.max(initial=-1)) + 1

    @cached_property
    def is_variable(self) -> NDArray[np.bool_]:
        """Whether each op is the home of a parameter, ``[ops] bool``."""
        code = self.kinds.index(VARIABLE) if VARIABLE in self.kinds else -1
        return _read_only(self.op_kind == code)

    @cached_property
    def consumer_ptr(self) -> Int32:
        """CSR pointer of :attr:`consumer_op`, ``[tensors + 1] int32``."""
        counts = np.bincount(self.input_tensor, minlength=self.num_tensors)
        return _read_only(np.concatenate([[0], np.cumsum(counts)]).astype(np.int32))

    @cached_property
    def consumer_op(self) -> Int32:
        """Ops that read each tensor, ascending, ``[edges] int32``."""
        reader = np.repeat(np.arange(self.num_ops, dtype=np.int32), np.diff(self.input_ptr))
        return _read_only(reader[np.argsort(self.input_tensor, kind="stable")])

    @cached_property
    def edges(self) -> tuple[Int32, Int32, Int32]:
        """``(producer, consumer, tensor)`` of each read of a produced tensor, each ``[edges] int32``."""
        reader = np.repeat(np.arange(self.num_ops, dtype=np.int32), np.diff(self.input_ptr))
        producer = self.tensor_producer[self.input_tensor]
        produced = producer >= 0
        return (
            _read_only(producer[produced]),
            _read_only(reader[produced]),
            _read_only(self.input_tensor[produced]),
        )

    def kind(self, op: int) -> str:
        """Kind of an op, e.g. ``"Conv"``."""
        return self.kinds[int(self.op_kind[op])]

    def inputs(self, op: int) -> Int32:
        """Tensors that an op reads, each once, ``[inputs] int32``."""
        return self.input_tensor[self.input_ptr[op] : self.input_ptr[op + 1]]

    def outputs(self, op: int) -> range:
        """Tensors that an op writes."""
        return range(self.output_ptr[op], self.output_ptr[op + 1])

    def consumers(self, tensor: int) -> Int32:
        """Ops that read a tensor, ascending, ``[consumers] int32``."""
        return self.consumer_op[self.consumer_ptr[tensor] : self.consumer_ptr[tensor + 1]]

    def shape(self, tensor: int) -> tuple[int, ...]:
        """Shape of a tensor."""
        return tuple(self.shape_dim[self.shape_ptr[tensor] : self.shape_ptr[tensor + 1]].tolist())

    def dtype(self, tensor: int) -> str:
        """Dtype of a tensor, e.g. ``"float32"``."""
        return self.dtypes[int(self.tensor_dtype[tensor])]

    @cached_property
    def fingerprint(self) -> str:
        """sha256 (hex) of the canonical arrays; names of ops, tensors, layers and the graph do not count."""
        digest = hashlib.sha256(b"opgym.graph/1\n")
        for f in sorted(fields(self), key=lambda f: f.name):
            if f.name in ("name", "op_names", "tensor_names", "layers"):
                continue
            value: Any = getattr(self, f.name)
            digest.update(f.name.encode())
            if isinstance(value, np.ndarray):
                digest.update(
                    f"{value.dtype.str}{value.shape}".encode() + np.ascontiguousarray(value).tobytes()
                )
            else:
                digest.update(json.dumps(value).encode())
        return digest.hexdigest()


_DTYPES = {
    "Int32": np.int32,
    "Int64": np.int64,
    "NDArray[np.int8]": np.int8,
    "NDArray[np.bool_]": np.bool_,
    "NDArray[np.uint64]": np.uint64,
}
#: The array fields of :class:`Graph` and their dtypes.
ARRAY_DTYPES: dict[str, np.dtype[Any]] = {
    f.name: np.dtype(_DTYPES[str(f.type)]) for f in fields(Graph) if str(f.type) in _DTYPES
}
