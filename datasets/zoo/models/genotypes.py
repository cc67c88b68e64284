"""Searched cells, as their papers publish them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

#: An op and the state that it reads: 0 is the output of the cell before the previous one, 1 that of the
#: previous one, 2 and up are the blocks of this cell.
Step = tuple[str, int]


@dataclass(frozen=True)
class Genotype:
    """A searched pair of cells; steps 2i and 2i + 1 are summed into state 2 + i.

    Attributes:
        normal: Steps of the normal cell.
        normal_output: States that it concatenates.
        reduction: Steps of the reduction cell.
        reduction_output: States that it concatenates.
    """

    normal: Sequence[Step]
    normal_output: Sequence[int]
    reduction: Sequence[Step]
    reduction_output: Sequence[int]


NASNET_A = Genotype(
    normal=(
        ("sep5", 1), ("sep3", 0), ("sep5", 0), ("sep3", 0), ("avg3", 1),
        ("skip", 0), ("avg3", 0), ("avg3", 0), ("sep3", 1), ("skip", 1),
    ),
    normal_output=(0, 2, 3, 4, 5, 6),
    reduction=(
        ("sep5", 1), ("sep7", 0), ("max3", 1), ("sep7", 0), ("avg3", 1),
        ("sep5", 0), ("skip", 3), ("avg3", 2), ("sep3", 2), ("max3", 1),
    ),
    reduction_output=(3, 4, 5, 6),
)  # fmt: skip

AMOEBANET_A = Genotype(
    normal=(
        ("avg3", 1), ("max3", 1), ("sep3", 0), ("skip", 0), ("skip", 1),
        ("avg3", 0), ("sep3", 1), ("sep5", 2), ("avg3", 5), ("sep3", 1),
    ),
    normal_output=(0, 3, 4, 6),
    reduction=(
        ("sep3", 0), ("avg3", 1), ("max3", 1), ("sep7", 2), ("max3", 0),
        ("max3", 1), ("sep3", 4), ("conv17", 1), ("avg3", 0), ("sep7", 1),
    ),
    reduction_output=(2, 3, 4, 5, 6),
)  # fmt: skip

PNASNET_5 = Genotype(
    normal=(
        ("sep5", 0), ("max3", 0), ("sep7", 1), ("max3", 1), ("sep5", 1),
        ("sep3", 1), ("sep3", 4), ("max3", 1), ("sep3", 0), ("skip", 1),
    ),
    normal_output=(2, 3, 4, 5, 6),
    reduction=(
        ("sep5", 0), ("max3", 0), ("sep7", 1), ("max3", 1), ("sep5", 1),
        ("sep3", 1), ("sep3", 4), ("max3", 1), ("sep3", 0), ("skip", 1),
    ),
    reduction_output=(2, 3, 4, 5, 6),
)  # fmt: skip

DARTS_V1 = Genotype(
    normal=(
        ("sep3", 1), ("sep3", 0), ("skip", 0), ("sep3", 1),
        ("skip", 0), ("sep3", 1), ("sep3", 0), ("skip", 2),
    ),
    normal_output=(2, 3, 4, 5),
    reduction=(
        ("max3", 0), ("max3", 1), ("skip", 2), ("max3", 0),
        ("max3", 0), ("skip", 2), ("skip", 2), ("avg3", 0),
    ),
    reduction_output=(2, 3, 4, 5),
)  # fmt: skip

DARTS_V2 = Genotype(
    normal=(
        ("sep3", 0), ("sep3", 1), ("sep3", 0), ("sep3", 1),
        ("sep3", 1), ("skip", 0), ("skip", 0), ("dil3", 2),
    ),
    normal_output=(2, 3, 4, 5),
    reduction=(
        ("max3", 0), ("max3", 1), ("skip", 2), ("max3", 1),
        ("max3", 0), ("skip", 2), ("skip", 2), ("max3", 1),
    ),
    reduction_output=(2, 3, 4, 5),
)  # fmt: skip

ENAS = Genotype(
    normal=(
        ("skip", 1), ("sep3", 0), ("skip", 1), ("avg3", 0), ("avg3", 0),
        ("sep3", 1), ("sep3", 1), ("avg3", 0), ("sep5", 0), ("avg3", 1),
    ),
    normal_output=(2, 3, 4, 5, 6),
    reduction=(
        ("sep5", 0), ("avg3", 1), ("sep3", 1), ("avg3", 1), ("sep3", 1),
        ("avg3", 1), ("avg3", 1), ("sep5", 4), ("sep3", 5), ("sep5", 0),
    ),
    reduction_output=(2, 3, 6),
)  # fmt: skip
