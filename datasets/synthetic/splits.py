"""Which seeds are for training, which for validation, which for the test."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ...errors import ImportFailedError

#: Seeds of each split, reserved from version 1 of the generators on. Every seed belongs to one split.
SEEDS: Mapping[str, range] = MappingProxyType(
    {
        "train": range(1_000_000),
        "validation": range(1_000_000, 2_000_000),
        "test": range(2_000_000, 3_000_000),
    }
)
LAST_SEED = SEEDS["test"][-1]


def split_of(seed: int) -> str:
    """The split that a seed belongs to: ``"train"``, ``"validation"`` or ``"test"``.

    An augmented copy of a graph belongs to the split of the graph, whatever the seed of the augmentation.

    Raises:
        ImportFailedError: No such seed.
    """
    for split, seeds in SEEDS.items():
        if seed in seeds:
            return split
    raise ImportFailedError(f"seed {seed!r}; expected a whole number from 0 to {LAST_SEED}")
