"""Augmentation in the manner of REGAL: copies of a graph with other sizes and costs, and the same structure."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...errors import ImportFailedError, InvalidGraphError
from ...graphs import Graph, TableCost
from ...graphs.readers import Imported
from .random_bits import Int64, Stream, UInt64

#: Part of every stream's name; a change of what a seed gives raises it.
AUGMENTATION_VERSION = 1
LAST_AUGMENTATION_SEED = 999_999_999
_BITS = 30
_HALF = 1 << (_BITS - 1)
_LOW = np.uint64((1 << _BITS) - 1)


def augment(graph: Graph, seed: int) -> Graph:
    """A copy whose sizes and costs are multiplied by factors from U(0.5, 1.5).

    Every tensor has a factor for its bytes, every op one for its flops and accessed bytes (so for its time)
    and one for its workspace. The outputs of an update keep the factor of the variable whose storage they
    are. Where the graph allows ops to run in place, the output of an elementwise op keeps the factor of its
    first input of the same size, so that it still fits there. Results are rounded; what is not 0 stays so.
    Shapes stay as they are and no longer tell the bytes. Paliwal et al. 2020 make 99 copies of each graph.

    Args:
        graph: Any graph.
        seed: 0 to 999,999,999.

    Raises:
        ImportFailedError: No such seed.
        InvalidGraphError: A figure is so large that it would exceed int64.
    """
    streams = _streams(seed)
    by_op, by_workspace = (_factors(streams[key], graph.num_ops) for key in ("ops", "workspaces"))
    return replace(
        graph,
        name=f"{graph.name}#augment={seed}",
        op_flops=_scaled("op_flops", graph.op_flops, by_op),
        op_accessed_bytes=_scaled("op_accessed_bytes", graph.op_accessed_bytes, by_op),
        op_workspace_bytes=_scaled("op_workspace_bytes", graph.op_workspace_bytes, by_workspace),
        tensor_bytes=_scaled("tensor_bytes", graph.tensor_bytes, _tensor_factors(graph, streams["tensors"])),
    )


def augment_imported(imported: Imported, seed: int) -> Imported:
    """The same for a graph with what came with it; given times get the factors of their ops.

    Raises:
        ImportFailedError: No such seed.
        InvalidGraphError: A figure is so large that it would exceed int64.
    """
    graph = augment(imported.graph, seed)
    costs = imported.costs
    if isinstance(costs, TableCost):
        by_op = _factors(_streams(seed)["ops"], graph.num_ops)
        table = {
            key: _scaled(f"time on {key}", np.asarray(column, np.int64), by_op)
            for key, column in costs.table_ns.items()
        }
        costs = replace(costs, table_ns=table)
    note = (
        f"sizes and costs times U(0.5, 1.5), seed {seed}, augmentation version {AUGMENTATION_VERSION}; "
        "shapes are those before"
    )
    report = replace(imported.report, fingerprint=graph.fingerprint, notes=(*imported.report.notes, note))
    return replace(imported, graph=graph, costs=costs, report=report)


def _streams(seed: int) -> dict[str, Stream]:
    if not 0 <= seed <= LAST_AUGMENTATION_SEED:
        raise ImportFailedError(
            f"augmentation seed {seed}; expected a whole number from 0 to {LAST_AUGMENTATION_SEED}"
        )
    prefix = f"opgym.augment/{AUGMENTATION_VERSION}/{seed}"
    return {key: Stream(f"{prefix}/{key}") for key in ("tensors", "ops", "workspaces")}


def _factors(stream: Stream, count: int) -> UInt64:
    """Factors from U(0.5, 1.5) in units of 2^-30, ``[count] uint64``."""
    return (stream.words(count) >> np.uint64(64 - _BITS)) + np.uint64(_HALF)


def _tensor_factors(graph: Graph, stream: Stream) -> UInt64:
    """Factor of each tensor's bytes, ``[tensors] uint64``; equal for tensors that share a storage."""
    factor = _factors(stream, graph.num_tensors)
    for op in range(graph.num_ops) if graph.in_place else ():
        outputs = graph.outputs(op)
        if graph.op_elementwise[op] and len(outputs) == 1:
            alike = [t for t in graph.inputs(op) if graph.tensor_bytes[t] == graph.tensor_bytes[outputs[0]]]
            factor[outputs] = factor[alike[:1] or outputs]
    for update in np.flatnonzero(graph.op_update_of >= 0).tolist():
        home = graph.outputs(int(graph.op_update_of[update]))
        for slot, tensor in enumerate(graph.outputs(update)):
            if home:
                factor[tensor] = factor[home[min(slot, len(home) - 1)]]
    return factor


def _scaled(what: str, figures: Int64, factor: UInt64) -> Int64:
    """Figures times factors, rounded to the nearest, a half up, ``[rows] int64``.

    Raises:
        InvalidGraphError: One exceeds int64.
    """
    figure = figures.astype(np.uint64)
    high, low = figure >> np.uint64(_BITS), figure & _LOW  # a product of 64 bits at once would overflow
    result = high * factor + ((low * factor + np.uint64(_HALF)) >> np.uint64(_BITS))
    if (result > np.uint64(2**63 - 1)).any():
        row = int(np.argmax(result))
        raise InvalidGraphError(f"{what} of row {row} is {figures[row]}; augmented it would exceed 2^63 - 1")
    return result.astype(np.int64)
