"""Layers from the scopes that stand before an op's name, such as ``encoder/block_3/attention/add``."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .layers import shared_depth

#: A module that is one of a row: ``3``, ``layers_11``, ``block.5``, ``Dense_0``.
_NUMBERED = re.compile(r"(.*?)[._]?(\d+)")


def layers_of(paths: Sequence[tuple[str, ...]]) -> list[str | None]:
    """Layers of ops with these scopes.

    What all paths share says nothing and is cut off. The rest ends at its first scope that is one of a row:
    at least two scopes with the same name and different numbers stand at the same place. So the parts of a
    block are one layer, and a single ``Encoder_0`` around all blocks is not.

    Args:
        paths: Scopes around each op, outermost first; empty where unknown.

    Returns:
        For each op the name of its layer, ``None`` where unknown.
    """
    shared = shared_depth(paths)
    rows: dict[tuple[tuple[str, ...], str], set[str]] = {}
    distinct = {path[shared:] for path in paths if path}
    for path in distinct:
        for depth, scope in enumerate(path):
            match = _NUMBERED.fullmatch(scope)
            if match is not None:
                rows.setdefault((path[:depth], match[1]), set()).add(match[2])
    layers = {path: _layer(path, rows) for path in distinct}
    return [layers[path[shared:]] if path else None for path in paths]


def _layer(path: tuple[str, ...], rows: dict[tuple[tuple[str, ...], str], set[str]]) -> str | None:
    for depth, scope in enumerate(path):
        match = _NUMBERED.fullmatch(scope)
        if match is not None and len(rows[path[:depth], match[1]]) > 1:
            return "/".join(path[: depth + 1])
    return "/".join(path) or None
