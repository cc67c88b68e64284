"""Operators that move, select or create data: no flops, and often not all bytes of their inputs."""

from __future__ import annotations

from .call import Call, Formula

#: Kinds without arithmetic.
_MOVES = (
    "_cudnn_init_dropout_state", "_to_copy", "arange", "block_diag", "cat", "channel_shuffle", "clone",
    "complex", "constant_pad_nd", "copy", "diag_embed", "diagonal_backward", "diagonal_scatter", "empty",
    "empty_like", "empty_permuted", "empty_strided", "eye", "fill", "flip", "full", "full_like", "gather",
    "index", "index_fill", "index_select", "_unsafe_index", "masked_fill", "masked_scatter", "masked_select",
    "new_empty", "new_empty_strided", "new_full", "new_ones", "new_zeros", "nonzero", "ones", "ones_like",
    "pixel_shuffle", "pixel_unshuffle", "reflection_pad1d", "reflection_pad2d", "reflection_pad3d", "repeat",
    "repeat_interleave", "replication_pad1d", "replication_pad2d", "replication_pad3d", "roll", "rot90",
    "scalar_tensor", "scatter", "select_backward", "select_scatter", "slice_backward", "slice_scatter",
    "split_copy", "split_with_sizes_copy", "stack", "as_strided_scatter", "expand_copy", "permute_copy",
    "unfold_backward", "tril", "triu", "tril_indices", "triu_indices", "view_copy", "zero", "zeros",
    "zeros_like", "embedding", "one_hot", "resize", "upsample_nearest1d", "upsample_nearest2d",
    "upsample_nearest3d", "_upsample_nearest_exact1d", "_upsample_nearest_exact2d",
    "_upsample_nearest_exact3d", "max_unpool2d", "max_unpool3d", "polar",
)  # fmt: skip

#: Kinds that pick elements by an index: what is picked is read, not the whole source.
_PICKS = {
    "embedding": ("indices",),
    "gather": ("index",),
    "index_select": ("index",),
    "max_unpool2d": (),
}
#: In-place kinds that touch only as much as they write: the argument with the new elements, and others read.
_PUTS = {
    "index_put": ("values",),
    "_index_put_impl": ("values",),
    "_unsafe_index_put": ("values",),
    "index_add": ("source", "index"),
    "index_copy": ("source", "index"),
    "scatter": ("src", "index"),
    "scatter_add": ("src", "index"),
    "scatter_reduce": ("src", "index"),
    "index_reduce": ("source", "index"),
}
_CREATES = frozenset(
    {"empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided"}
)

FORMULAS: dict[str, Formula] = {kind: (lambda c: 0) for kind in _MOVES}


def accessed_bytes(c: Call) -> int | None:
    """Bytes that a call reads and writes where that is not all of its inputs and outputs.

    Returns:
        The bytes, or ``None`` for inputs (as they are seen through their views) + outputs.
    """
    kind = c.traits.kind
    if kind in _CREATES:
        return 0
    if kind in _PICKS:
        return 2 * c.out_bytes() + sum(c.bytes(name) for name in _PICKS[kind])
    if kind in ("index", "_unsafe_index"):
        return 2 * c.out_bytes() + _index_bytes(c)
    if kind in _PUTS and c.traits.written:
        values, *indices = _PUTS[kind]
        new = c.bytes(values) if c.has(values) else c.bytes("index")
        added = 1 + (kind not in ("index_copy", "scatter") and not _replaces(c))
        extra = _index_bytes(c) if "indices" in c.traits.names else 0
        return new + added * new + sum(c.bytes(name) for name in indices) + extra
    return None


def _index_bytes(c: Call) -> int:
    return sum(i.numel() * i.element_size() for i in c.value("indices") if i is not None)


def _replaces(c: Call) -> bool:
    """Whether an ``index_put`` replaces elements instead of adding to them."""
    return "accumulate" in c.traits.names and not c.value("accumulate", False)
