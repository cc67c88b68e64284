"""Which families are for training, which for validation, which for the test.

A family is never divided, nor are twins: families whose graphs have, in the mean, the same op kinds in the same shares.
Relatives of the papers' workloads are for the test, since the workloads are; the other groups fill up the shares, large
ones first. Shares are of groups, not of graphs: relatives are one independent sample, however many there are. A
released version's splits stay as they are in the next one.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Mapping
from fractions import Fraction
from math import fsum

from .topology import TWIN_DISTANCE, share_distance

#: Shares of the groups.
SHARES = {"train": Fraction(60, 100), "validation": Fraction(20, 100), "test": Fraction(20, 100)}
SPLITS = tuple(SHARES)


def assign_splits(
    graphs: Mapping[str, int], tested: Collection[str] = (), released: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The split of each group of twins.

    Args:
        graphs: Number of graphs of each group.
        tested: Groups that hold a workload: they are for the test.
        released: Splits that groups have had before; they keep them.

    Returns:
        By group: each of the others, by falling size (equal sizes by a hash of the name), goes where least of the share
        is there.
    """
    splits = {group: "test" for group in graphs if group in tested}
    splits |= {group: split for group, split in (released or {}).items() if group in graphs}
    have = dict.fromkeys(SPLITS, 0)
    for split in splits.values():
        have[split] += 1
    for group in sorted(graphs.keys() - splits.keys(), key=lambda group: (-graphs[group], _draw(group))):
        splits[group] = min(SPLITS, key=lambda split: have[split] / SHARES[split])
        have[splits[group]] += 1
    return splits


def splits_of_groups(split: Mapping[str, str], group: Mapping[str, str]) -> dict[str, str]:
    """Splits of groups whose families have been released: what was ever trained on is never tested, nor validated on.

    Args:
        split: By family, in the released version.
        group: Group of each family now; groups may have grown together since.
    """
    found: dict[str, str] = {}
    for family, old in split.items():
        if family in group:
            found[group[family]] = min(old, found.get(group[family], old), key=SPLITS.index)
    return found


def twin_groups(graphs: Iterable[tuple[str, Hashable, Mapping[str, float]]]) -> dict[str, str]:
    """The group of each family, named by the first of its families; twins of twins are in it, too.

    Args:
        graphs: Family, sort (only graphs of one sort are compared, e.g. training steps at one level), and shares of
            op kinds, of each graph.
    """
    shares: dict[tuple[str, Hashable], list[Mapping[str, float]]] = defaultdict(list)
    for family, sort, kinds in graphs:
        shares[family, sort].append(kinds)
    leader = {family: family for family, _ in shares}

    def find(family: str) -> str:
        while leader[family] != family:
            family = leader[family]
        return family

    means = {key: _mean(rows) for key, rows in shares.items()}
    for (family, sort), mean in means.items():
        for (other, other_sort), other_mean in means.items():
            first, second = sorted((find(family), find(other)))
            comparable = first != second and sort == other_sort
            if comparable and share_distance(mean, other_mean) <= TWIN_DISTANCE:
                leader[second] = first
    return {family: find(family) for family in leader}


def _mean(rows: list[Mapping[str, float]]) -> dict[str, float]:
    # Rounded once, so that it does not depend on the order in which a set is read.
    return {kind: fsum(row.get(kind, 0.0) for row in rows) / len(rows) for kind in set().union(*rows)}


def _draw(group: str) -> bytes:
    return hashlib.sha256(f"opgym.zoo/1/{group}".encode()).digest()
