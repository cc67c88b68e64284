"""The shape of Placeto's policy; nothing here needs torch."""

from __future__ import annotations

from dataclasses import dataclass

from ...errors import unknown_id
from ..search.options import at_least

#: What is made of what several groups say: their sum, as published, or their mean.
AGGREGATES = ("mean", "sum")


@dataclass(frozen=True)
class Shape:
    """The shape of a policy.

    Attributes:
        devices: Most devices that it chooses among.
        width: Numbers per group and direction.
        rounds: Steps of message passing.
        aggregate: One of ``AGGREGATES``.
    """

    devices: int
    width: int
    rounds: int
    aggregate: str

    def __post_init__(self) -> None:
        at_least(1, most=256, devices=self.devices)
        at_least(2, most=1024, width=self.width)
        at_least(1, most=64, rounds=self.rounds)
        if self.aggregate not in AGGREGATES:
            raise unknown_id("aggregate", str(self.aggregate), list(AGGREGATES))
