"""A graph as few and repetitive columns of small integers, which compress several times better than its arrays.

What repeats is said once: ops that agree in kind, figures and number of inputs and outputs form a class, and so do
tensors that agree in shape, dtype, bytes and role. What follows from something else is left out (pointers, the
producers of tensors, bytes accessed where they are those of inputs and outputs). The input of an op is told by its
distance, so that unrolled steps and repeated layers look alike. Names are templates and numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidGraphError
from .graph import VARIABLE, Graph
from .name_columns import pack_names, unpack_names

Int64 = NDArray[np.int64]
Columns = dict[str, NDArray[Any]]

#: Few bytes can stand for many dimensions: more of them in all are refused.
MAX_DIMENSIONS = 2**26
#: Figures of an op class, in this order; one row of ``op_table`` each.
_OP_FIGURES = (
    "kind", "flops", "extra_accessed_bytes", "workspace_bytes", "direction", "elementwise", "unsupported",
    "inputs", "outputs", "is_update",
)  # fmt: skip
#: Figures of a tensor class; its dimensions follow in ``tensor_table_dims``.
_TENSOR_FIGURES = ("dtype", "role", "is_output", "bytes", "rank")
_NAMES = ("op_names", "tensor_names", "layers")


def pack(graph: Graph) -> Columns:
    """The columns of a graph; what its header holds (kinds, dtypes, level, ...) is not among them."""
    columns: Columns = {}
    inputs, outputs = np.diff(graph.input_ptr), np.diff(graph.output_ptr)
    is_update = graph.op_update_of >= 0
    extra = graph.op_accessed_bytes - _bytes_of_inputs_and_outputs(
        graph.tensor_bytes, graph.input_tensor, inputs, outputs
    )
    op_figures = (
        graph.op_kind, graph.op_flops, extra, graph.op_workspace_bytes, graph.op_direction,
        graph.op_elementwise, graph.op_unsupported.view(np.int64), inputs, outputs, is_update,
    )  # fmt: skip
    table, columns["op_class"] = _classes(np.stack([np.asarray(f, np.int64) for f in op_figures], axis=1))
    columns["op_table"] = table.T.ravel()

    rank = np.diff(graph.shape_ptr)
    dims = np.zeros((graph.num_tensors, int(rank.max(initial=0))), np.int64)
    dims[np.arange(dims.shape[1]) < rank[:, None]] = graph.shape_dim
    tensor_figures = (graph.tensor_dtype, graph.tensor_role, graph.tensor_is_output, graph.tensor_bytes, rank)
    table, columns["tensor_class"] = _classes(
        np.concatenate([np.stack([np.asarray(f, np.int64) for f in tensor_figures], axis=1), dims], axis=1)
    )
    width = len(_TENSOR_FIGURES)
    columns["tensor_table"] = table[:, :width].T.ravel()
    columns["tensor_table_dims"] = table[:, width:][np.arange(dims.shape[1]) < table[:, width - 1 : width]]

    # An input is told by its distance, or, where it is a parameter or comes from outside, by itself.
    reader = np.repeat(np.arange(graph.num_ops), inputs)
    producer = graph.tensor_producer[graph.input_tensor]
    fixed = (producer < 0) | graph.is_variable[producer]
    tensor = graph.input_tensor.astype(np.int64)
    columns["input"] = np.where(fixed, 2 * tensor + 1, 2 * (graph.output_ptr[reader] - tensor))
    columns["op_group"] = _pack_labels(graph.op_group)
    columns["op_layer"] = _pack_labels(graph.op_layer)
    homes = graph.op_update_of[is_update].astype(np.int64)
    columns["update_of"] = zigzag(homes - np.concatenate([[0], homes[:-1]]))
    for key in _NAMES:
        columns |= pack_names(key, getattr(graph, key))
    return {name: _narrow(column) for name, column in columns.items()}


def unpack(columns: Mapping[str, NDArray[Any]], kinds: tuple[str, ...]) -> dict[str, Any]:
    """The fields of the graph that :func:`pack` took apart, but for those of the header.

    Args:
        columns: What :func:`pack` gave; anything may be in them.
        kinds: Of the graph.

    Raises:
        InvalidGraphError: They fit together in no way. What else may be wrong with a graph is not looked for.
    """
    op = _table_rows(columns, "op_table", "op_class", _OP_FIGURES)
    tensor = _table_rows(columns, "tensor_table", "tensor_class", _TENSOR_FIGURES)
    ops, tensors = len(columns["op_class"]), len(columns["tensor_class"])
    inputs, outputs, is_update = op["inputs"], op["outputs"], _flag("op_table: is_update", op["is_update"])
    for name, counts, total in (
        ("input", inputs, len(columns["input"])),
        ("update_of", is_update, len(columns["update_of"])),
    ):
        _expect(
            (counts >= 0).all() and counts.sum(dtype=np.float64) == total, f"{name} does not fit op_table"
        )
    sources = tensors - outputs.sum(dtype=np.float64)
    _expect((outputs >= 0).all() and sources >= 0, "op_table has more outputs than there are tensors")
    output_ptr = _pointer(outputs, start=int(sources))

    code = _int64(columns["input"])
    reader = np.repeat(np.arange(ops), inputs)
    input_tensor = np.where(code & 1, code >> 1, output_ptr[reader] - (code >> 1))
    _expect(
        ((input_tensor >= 0) & (input_tensor < tensors)).all(), "input names a tensor that does not exist"
    )
    variable = kinds.index(VARIABLE) if VARIABLE in kinds else -1
    update_of = np.full(ops, -1, np.int64)
    homes = np.cumsum(unzigzag(columns["update_of"]))
    _expect(((homes >= 0) & (homes < ops)).all(), "update_of names an op that does not exist")
    update_of[is_update] = homes
    _expect((op["kind"][homes] == variable).all(), "update_of names an op that is no variable")

    fields: dict[str, Any] = {
        "op_kind": _cast("op_kind", op["kind"], np.int32),
        "op_flops": op["flops"],
        "op_accessed_bytes": op["extra_accessed_bytes"]
        + _bytes_of_inputs_and_outputs(tensor["bytes"], input_tensor, inputs, outputs),
        "op_workspace_bytes": op["workspace_bytes"],
        "op_group": _unpack_labels("op_group", columns["op_group"], ops),
        "op_layer": _unpack_labels("op_layer", columns["op_layer"], ops),
        "op_direction": _cast("op_direction", op["direction"], np.int8),
        "op_update_of": update_of.astype(np.int32),
        "op_elementwise": _flag("op_table: elementwise", op["elementwise"]),
        "op_unsupported": op["unsupported"].view(np.uint64),
        "tensor_producer": np.concatenate(
            [np.full(int(sources), -1, np.int32), np.repeat(np.arange(ops, dtype=np.int32), outputs)]
        ),
        "tensor_bytes": tensor["bytes"],
        "tensor_dtype": _cast("tensor_dtype", tensor["dtype"], np.int32),
        "tensor_role": _cast("tensor_role", tensor["role"], np.int8),
        "tensor_is_output": _flag("tensor_table: is_output", tensor["is_output"]),
        "input_ptr": _pointer(inputs).astype(np.int32),
        "input_tensor": input_tensor.astype(np.int32),
        "output_ptr": output_ptr.astype(np.int32),
        **_unpack_shapes(columns, tensor["rank"]),
    }
    for key, count in (("op_names", ops), ("tensor_names", tensors), ("layers", None)):
        fields[key] = unpack_names(key, columns, count)
    return fields


def column_names() -> list[str]:
    """Names of all columns."""
    names = [f"{key}_{part}" for key in _NAMES for part in ("template", "number", "text")]
    return [
        "op_class", "op_table", "tensor_class", "tensor_table", "tensor_table_dims", "input", "op_group",
        "op_layer", "update_of", *names,
    ]  # fmt: skip


def zigzag(values: Int64) -> NDArray[np.uint64]:
    """Small whole numbers of either sign as small ones without a sign."""
    return ((values << 1) ^ (values >> 63)).view(np.uint64)


def unzigzag(codes: NDArray[Any]) -> Int64:
    """What :func:`zigzag` was given."""
    wide = codes.astype(np.uint64)
    return (wide >> np.uint64(1)).view(np.int64) ^ -(wide & np.uint64(1)).view(np.int64)


def _classes(rows: Int64) -> tuple[Int64, Int64]:
    """The distinct rows in order of first appearance, and the class of each row."""
    if len(rows) == 0:
        return rows, np.empty(0, np.int64)
    _, first, inverse = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    by_first = np.argsort(first)
    rank = np.empty(len(first), np.int64)
    rank[by_first] = np.arange(len(first))
    return rows[np.sort(first)], rank[inverse.ravel()]


def _table_rows(
    columns: Mapping[str, NDArray[Any]], table: str, class_: str, figures: tuple[str, ...]
) -> dict[str, Int64]:
    """Each figure of a table, of every op or tensor."""
    _expect(len(columns[table]) % len(figures) == 0, f"{table} is no table of {len(figures)} figures")
    rows = _int64(columns[table]).reshape(len(figures), -1)
    index = _int64(columns[class_])
    _expect(((index >= 0) & (index < rows.shape[1])).all(), f"{class_} leaves {table}")
    return {figure: rows[i][index] for i, figure in enumerate(figures)}


def _unpack_shapes(columns: Mapping[str, NDArray[Any]], rank: Int64) -> dict[str, Int64]:
    dims = _int64(columns["tensor_table_dims"])
    class_rank = _int64(columns["tensor_table"]).reshape(len(_TENSOR_FIGURES), -1)[-1]
    fits = (class_rank >= 0).all() and class_rank.sum(dtype=np.float64) == len(dims)
    _expect(fits, "tensor_table_dims does not fit tensor_table")
    _expect(rank.sum(dtype=np.float64) <= MAX_DIMENSIONS, "tensors have more dimensions in all than are read")
    shape_ptr, first = _pointer(rank), _pointer(class_rank)[:-1][_int64(columns["tensor_class"])]
    position = np.arange(shape_ptr[-1]) + np.repeat(first - shape_ptr[:-1], rank)
    return {"shape_ptr": shape_ptr, "shape_dim": dims[position]}


def _bytes_of_inputs_and_outputs(
    tensor_bytes: Int64, input_tensor: NDArray[Any], inputs: NDArray[Any], outputs: NDArray[Any]
) -> Int64:
    """Bytes that an op touches if it reads its inputs and writes its outputs once; modulo 2^64, ``[ops]``."""
    sources = len(tensor_bytes) - int(outputs.sum())
    read = _sums(tensor_bytes[input_tensor], inputs)
    return read + _sums(tensor_bytes[sources:], outputs)


def _sums(values: Int64, lengths: NDArray[Any]) -> Int64:
    """Sums of consecutive runs."""
    total = np.concatenate([[0], np.cumsum(values)])
    return np.diff(total[_pointer(lengths)])


def _pointer(lengths: NDArray[Any], start: int = 0) -> Int64:
    return np.concatenate([[start], start + np.cumsum(lengths, dtype=np.int64)])


def _pack_labels(labels: NDArray[np.int32]) -> Int64:
    """Labels numbered by first use: 0 none, 1 the next new one, 2 the newest, 3 the one before, ..."""
    newest = np.maximum.accumulate(np.concatenate([[-1], labels]))[:-1]
    is_new = labels > newest
    return np.where(labels < 0, 0, np.where(is_new, 1, newest - labels + 2)).astype(np.int64)


def _unpack_labels(name: str, column: NDArray[Any], ops: int) -> NDArray[np.int32]:
    _expect(len(column) == ops, f"{name} has {len(column)} entries; expected {ops}")
    code = _int64(column)
    newest = np.cumsum(code == 1) - 1
    labels = np.where(code == 0, -1, np.where(code == 1, newest, newest - code + 2))
    _expect(((code == 0) | (labels >= 0)).all() and (code >= 0).all(), f"{name} goes back before the first")
    return labels.astype(np.int32)


def _narrow(column: NDArray[Any]) -> NDArray[Any]:
    """The column in the narrowest type that holds it; negative numbers need all 64 bits."""
    if column.dtype == np.uint8 or len(column) == 0:
        return column.astype(np.uint8)
    if column.min() < 0:
        return column.astype(np.int64)
    return column.astype(np.min_scalar_type(int(column.max())))


def _int64(column: NDArray[Any]) -> Int64:
    """A column as ``int64``; what lies above becomes negative, and is refused as that."""
    return column.astype(np.uint64).view(np.int64) if column.dtype.kind == "u" else column.astype(np.int64)


def _flag(name: str, values: Int64) -> NDArray[np.bool_]:
    _expect(((values == 0) | (values == 1)).all(), f"{name} holds a flag that is neither 0 nor 1")
    return values.astype(np.bool_)


def _cast(name: str, values: Int64, dtype: type[np.signedinteger[Any]]) -> NDArray[Any]:
    limits = np.iinfo(dtype)
    _expect(((values >= limits.min) & (values <= limits.max)).all(), f"{name} leaves {dtype.__name__}")
    return values.astype(dtype)


def _expect(condition: Any, message: str) -> None:
    if not condition:
        raise InvalidGraphError(message)
