"""The shape of GDP's policy; nothing here needs torch."""

from __future__ import annotations

from dataclasses import dataclass

from ...errors import InvalidProblemError, unknown_id
from ..search.options import at_least, of_type, positive

#: What the superposition gate is fed with: each op's embedding (GDP), the mean of all (GO), or there is no gate.
SUPERPOSITIONS = ("op", "graph", "none")


@dataclass(frozen=True)
class Shape:
    """The shape of a policy.

    Attributes:
        kinds: Kinds of op that it knows, sorted.
        devices: Most devices that it chooses among.
        width: Numbers per op.
        rounds: Layers of the graph neural network.
        layers: Of attention.
        heads: Of attention.
        segment: Ops of a segment.
        attention: Whether ops attend to each other; without, each is placed by what the graph network says.
        superposition: One of ``SUPERPOSITIONS``.
        head_gain: Spread of the untrained preferences among devices.
    """

    kinds: tuple[str, ...]
    devices: int
    width: int
    rounds: int
    layers: int
    heads: int
    segment: int
    attention: bool
    superposition: str
    head_gain: float

    def __post_init__(self) -> None:
        at_least(1, most=256, devices=self.devices)
        at_least(2, most=4096, width=self.width)
        at_least(1, most=64, rounds=self.rounds, layers=self.layers, heads=self.heads)
        at_least(1, most=2**20, segment=self.segment)
        of_type(bool, "true or false", attention=self.attention)
        positive(head_gain=self.head_gain)
        if self.superposition not in SUPERPOSITIONS:
            raise unknown_id("superposition", str(self.superposition), list(SUPERPOSITIONS))
        if self.width % self.heads:
            raise InvalidProblemError(f"width = {self.width} is no multiple of heads = {self.heads}")
