"""Which families are for training, which for validation, which for the test.

A family is never divided, nor are twins (families with the same op kinds in the same shares).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping

from .topology import TWIN_DISTANCE, Likeness

#: Shares of the families, in hundredths.
_SHARES = {"train": 60, "validation": 20, "test": 20}
SPLITS = tuple(_SHARES)


def split_of(group: str) -> str:
    """The split of a group of twins; it does not depend on which others exist.

    Args:
        group: The first of its families by name.
    """
    draw = int.from_bytes(hashlib.sha256(f"opgym.zoo/1/{group}".encode()).digest()[:8], "big") % 100
    for split, share in _SHARES.items():
        if draw < share:
            return split
        draw -= share
    raise AssertionError("shares are 100 in all")


def twin_groups(graphs: Iterable[tuple[str, bool, Likeness]]) -> Mapping[str, str]:
    """The group of each family, named by the first of its families.

    Args:
        graphs: Family, whether it is a training graph, and what it is like, of each graph.
    """
    rows = list(graphs)
    leader = {family: family for family, _, _ in rows}

    def find(family: str) -> str:
        while leader[family] != family:
            family = leader[family]
        return family

    for i, (family, trains, likeness) in enumerate(rows):
        for other_family, other_trains, other in rows[:i]:
            ours, theirs = find(family), find(other_family)
            if ours != theirs and trains == other_trains and likeness.kind_distance(other) <= TWIN_DISTANCE:
                first, second = sorted((ours, theirs))
                leader[second] = first
    return {family: find(family) for family in leader}
