"""Graphs of a suite that a rule names: families of random graphs, and a range of seeds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from typing import Any

from ...errors import InvalidDatasetError
from ...graphs.closed_json import Row
from ..synthetic import FAMILIES, PREFIX, SEEDS
from ..synthetic.costs import COSTS


@dataclass(frozen=True)
class Generated:
    """Ids by rule: for each seed in turn, one of each family.

    Attributes:
        part: ``"train"``, ``"validation"`` or ``"test"``, whose seeds these are.
        families: Of random graphs.
        costs: Rules of costs; seeds take them in turn, from seed 0 on.
        first_seed: The first seed.
        last_seed: The last one.
    """

    part: str
    families: tuple[str, ...]
    costs: tuple[str, ...]
    first_seed: int
    last_seed: int

    def __len__(self) -> int:
        return (self.last_seed - self.first_seed + 1) * len(self.families)

    def __getitem__(self, index: int) -> str:
        """The id of a graph.

        Raises:
            IndexError: No such graph.
        """
        if not -len(self) <= index < len(self):
            raise IndexError(f"graph {index} of {len(self)}")
        offset, family = divmod(index % len(self), len(self.families))
        seed = self.first_seed + offset
        return f"{PREFIX}{self.families[family]}?costs={self.costs[seed % len(self.costs)]}&seed={seed}"

    def __iter__(self) -> Iterator[str]:
        return (self[index] for index in range(len(self)))

    def to_json(self) -> dict[str, Any]:
        """As JSON data."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: Any, where: str) -> Generated:
        """A rule from JSON data.

        Raises:
            InvalidDatasetError: It is none, or its seeds are those of another part.
        """
        row = Row(value, where, InvalidDatasetError, [field.name for field in fields(cls)])
        part = row.text("part")
        if part not in SEEDS:
            row.refuse(f"has part = {part!r:.40}; expected {', '.join(SEEDS)}")
        words = {}
        for key, known in (("families", tuple(FAMILIES)), ("costs", COSTS.words)):
            given = row.rows(key, len(known))
            if not given or not all(isinstance(word, str) and word in known for word in given):
                row.refuse(f"has {key} = {given!r:.60}; expected some of {', '.join(known)}")
            words[key] = tuple(given)
        seeds = SEEDS[part]
        first = row.integer("first_seed", seeds[0], seeds[-1])
        return cls(part, words["families"], words["costs"], first, row.integer("last_seed", first, seeds[-1]))
