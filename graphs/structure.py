"""What makes arrays a legal graph: the check for files, which may come from anywhere."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import InvalidGraphError
from .graph import ARRAY_DTYPES, DIRECTIONS, ROLES, Graph


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
    for name, dtype in ARRAY_DTYPES.items():
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
