"""A graph from arrays of edges: :class:`GraphBuilder` for generators that make thousands."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import InvalidGraphError
from .graph import Graph

_MAX_TOTAL_BYTES = 2**62
#: Names are slices of one tuple for graphs up to this size, and of one per power of two beyond.
_FEW = 1024


def graph_from_edges(
    source: ArrayLike,
    target: ArrayLike,
    *,
    tensor_bytes: ArrayLike,
    flops: ArrayLike,
    level: str,
    name: str = "",
    dtype: str = "uint8",
    kinds: Sequence[str] = ("op",),
    op_kind: ArrayLike | None = None,
    layers: Sequence[str] = (),
    op_layer: ArrayLike | None = None,
) -> Graph:
    """The graph in which op ``v`` writes tensor ``v`` and reads those of its predecessors, ascending.

    It equals what a :class:`GraphBuilder` makes of the same ops. Tensors have no shape; an op accesses its
    inputs and its output. Ops must be in topological order already, which then is the order of the graph.

    Args:
        source: Op that writes what an edge carries, ``[edges] int``.
        target: Op that reads it, greater than its source, ``[edges] int``; equal edges count once.
        tensor_bytes: Size of each op's output, ``[ops] int``.
        flops: Work of each op, ``[ops] int``.
        level: What an op is.
        name: Name of the graph, for people.
        dtype: Of all tensors.
        kinds: Names of kinds, all different.
        op_kind: Position in ``kinds``, ``[ops] int``; all ops are of the first kind where absent.
        layers: Names of layers, in order of first op, each used.
        op_layer: Position in ``layers``, ``[ops] int``; -1 where absent.

    Raises:
        InvalidGraphError: Lengths that differ, an op that does not exist, an edge that does not lead to a
            later op, a negative figure, or sizes that add up to more than 2^62.
    """
    size = np.asarray(tensor_bytes, np.int64)
    work = np.asarray(flops, np.int64)
    ops = len(size)
    input_ptr, input_tensor = _inputs(ops, np.asarray(source, np.int64), np.asarray(target, np.int64))
    code = np.zeros(ops, np.int64) if op_kind is None else np.asarray(op_kind, np.int64)
    layer = np.full(ops, -1, np.int64) if op_layer is None else np.asarray(op_layer, np.int64)
    if ops == 0:
        raise InvalidGraphError(f"graph {name!r} has no ops; there is nothing to decide")
    for what, array in (("flops", work), ("op_kind", code), ("op_layer", layer)):
        if array.shape != (ops,):
            raise InvalidGraphError(f"{what} has shape {array.shape}; expected ({ops},), as tensor_bytes")
    for what, array, low, high in (
        ("tensor_bytes", size, 0, 2**62),
        ("flops", work, 0, 2**63 - 1),
        ("op_kind", code, 0, len(kinds) - 1),
        ("op_layer", layer, -1, len(layers) - 1),
    ):
        if array.min() < low or array.max() > high:
            raise InvalidGraphError(
                f"{what} has entries from {array.min()} to {array.max()}; expected {low} to {high}"
            )
    accessed = _accessed_bytes(size, input_ptr, input_tensor)
    used_kinds, kind = _used(kinds, code)
    _check_layers(layers, layer)
    index = np.arange(ops + 1, dtype=np.int32)
    names = _names(ops)
    return Graph(
        kinds=used_kinds,
        op_kind=kind,
        op_flops=work.copy(),
        op_accessed_bytes=accessed,
        op_workspace_bytes=np.zeros(ops, np.int64),
        op_group=np.full(ops, -1, np.int32),
        op_layer=layer.astype(np.int32),
        op_direction=np.zeros(ops, np.int8),
        op_update_of=np.full(ops, -1, np.int32),
        op_elementwise=np.zeros(ops, np.bool_),
        op_unsupported=np.zeros(ops, np.uint64),
        device_classes=(),
        layers=tuple(layers),
        tensor_producer=index[:-1],
        tensor_bytes=size.copy(),
        tensor_dtype=np.zeros(ops, np.int32),
        tensor_role=np.zeros(ops, np.int8),
        tensor_is_output=np.zeros(ops, np.bool_),
        dtypes=(dtype,),
        shape_ptr=np.zeros(ops + 1, np.int64),
        shape_dim=np.zeros(0, np.int64),
        input_ptr=input_ptr,
        input_tensor=input_tensor,
        output_ptr=index,
        in_place=False,
        level=level,
        name=name,
        op_names=names,
        tensor_names=names,
    )


def _inputs(
    ops: int, source: NDArray[np.int64], target: NDArray[np.int64]
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """CSR of what each op reads, each once and ascending."""
    if source.ndim != 1 or source.shape != target.shape:
        raise InvalidGraphError(
            f"source has shape {source.shape} and target {target.shape}; expected one length"
        )
    bad = (source < 0) | (source >= target) | (target >= ops)
    if bad.any():
        edge = int(np.argmax(bad))
        raise InvalidGraphError(
            f"edge {edge} leads from op {source[edge]} to op {target[edge]} of {ops}; expected a later op"
        )
    code = target * ops + source
    code.sort()
    code = code[np.concatenate([[True], code[1:] != code[:-1]])] if len(code) else code
    reader = code // ops if ops else code
    pointer = np.zeros(ops + 1, np.int32)
    np.cumsum(np.bincount(reader, minlength=ops), out=pointer[1:])
    return pointer, (code - reader * ops).astype(np.int32)


def _accessed_bytes(
    size: NDArray[np.int64], input_ptr: NDArray[np.int32], input_tensor: NDArray[np.int32]
) -> NDArray[np.int64]:
    """Bytes of each op's inputs and output, ``[ops] int64``."""
    read = size[input_tensor]
    if float(read.sum(dtype=np.float64)) + float(size.sum(dtype=np.float64)) > _MAX_TOTAL_BYTES:
        raise InvalidGraphError(
            f"reads and writes add up to more than {_MAX_TOTAL_BYTES} bytes; give smaller tensors"
        )
    total = np.zeros(len(read) + 1, np.int64)
    np.cumsum(read, out=total[1:])
    accessed: NDArray[np.int64] = total[input_ptr[1:]] - total[input_ptr[:-1]] + size
    return accessed


def _used(kinds: Sequence[str], code: NDArray[np.int64]) -> tuple[tuple[str, ...], NDArray[np.int32]]:
    """The kinds that ops have, sorted, and the position of each op's kind among them."""
    if len(kinds) == 1:
        return tuple(kinds), code.astype(np.int32)
    if len(set(kinds)) < len(kinds):
        raise InvalidGraphError(f"kinds {tuple(kinds)} hold a name twice")
    counts = np.bincount(code, minlength=len(kinds)).tolist()
    used = sorted(kind for kind, count in zip(kinds, counts, strict=True) if count)
    position = np.array([used.index(kind) if kind in used else -1 for kind in kinds], np.int32)
    return tuple(used), position[code]


def _check_layers(layers: Sequence[str], layer: NDArray[np.int64]) -> None:
    """Refuses layers that are not numbered in order of first op, not used, or not distinct."""
    if not layers:
        return
    highest = np.maximum.accumulate(np.concatenate([[-1], layer]))
    if len(set(layers)) < len(layers) or highest[-1] + 1 < len(layers) or (np.diff(highest) > 1).any():
        raise InvalidGraphError("layers are not distinct, used, and numbered in order of first op")


def _names(ops: int) -> tuple[str, ...]:
    return _many_names(max(_FEW, 1 << (ops - 1).bit_length()))[:ops]


@cache
def _many_names(count: int) -> tuple[str, ...]:
    return tuple(f"v{op}" for op in range(count))
