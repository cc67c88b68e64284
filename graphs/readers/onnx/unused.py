"""Ops that nothing needs once shapes are computed while reading."""

from __future__ import annotations

from collections import Counter

from .types import LoweredGraph, LoweredOp, Storage


def without_unused(graph: LoweredGraph) -> tuple[list[LoweredOp], Counter[str]]:
    """Leaves out ops whose results were read, but only by nodes that are gone (such as for their shape).

    An op whose result nobody reads in the file itself stays.

    Returns:
        The ops that stay, and the others by kind.
    """
    needed = {value.storage for value in graph.outputs}
    not_needed: set[Storage] = set(graph.folded_reads)
    kept: list[LoweredOp] = []
    unused: Counter[str] = Counter()
    for op in reversed(graph.ops):
        if any(s in needed for s in op.outputs) or not any(s in not_needed for s in op.outputs):
            needed.update(op.inputs)
            kept.append(op)
        else:
            not_needed.update(op.inputs)
            unused[op.kind] += 1
    kept.reverse()
    return kept, unused
