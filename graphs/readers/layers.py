"""Layers from the module paths of ops."""

from __future__ import annotations

import re
from collections.abc import Sequence

#: A module that is one of a numbered row: ``3``, ``layer1.0``, ``layer_11``, ``h.5``.
_NUMBERED = re.compile(r"(.*[._])?\d+")


def shared_depth(paths: Sequence[tuple[str, ...]]) -> int:
    """How many outermost modules all known paths share."""
    known = [p for p in paths if p]
    shared = 0
    if known:
        first, last = min(known), max(known)
        while shared < min(len(first), len(last)) and first[shared] == last[shared]:
            shared += 1
    return shared


def named_depth(paths: Sequence[tuple[str, ...]]) -> list[int]:
    """How much of each module path names the layer.

    A layer ends at its first numbered module, so that the parts of a block are one layer
    (``encoder/layer.3/attention/self`` is in ``encoder/layer.3``); a number among what all paths share says
    nothing.

    Args:
        paths: Module path of each op; empty where unknown.

    Returns:
        For each path the number of modules that name its layer; 0 for an empty path.
    """
    shared = shared_depth(paths)
    return [_depth(path, shared) for path in paths]


def _depth(path: tuple[str, ...], shared: int) -> int:
    for i in range(shared, len(path)):
        if _NUMBERED.fullmatch(path[i]):
            return i + 1
    return len(path)
