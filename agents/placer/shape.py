"""The shape of the policy; nothing here needs torch."""

from __future__ import annotations

from dataclasses import dataclass

from ..search.options import at_least


@dataclass(frozen=True)
class Shape:
    """The shape of a policy, which is the same for any number of devices.

    Attributes:
        devices: Most devices that it is used for.
        groups: Most decisions about a graph.
        width: Numbers per group in the network.
        rounds: Of messages between groups.
        heads: Ways in which a group likes to be where others are.
    """

    devices: int
    groups: int
    width: int
    rounds: int
    heads: int

    def __post_init__(self) -> None:
        at_least(1, most=64, devices=self.devices)
        at_least(1, most=4096, groups=self.groups)
        at_least(2, most=4096, width=self.width)
        at_least(0, most=64, rounds=self.rounds)
        at_least(1, most=64, heads=self.heads)
