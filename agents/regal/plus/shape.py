"""The shape of a network that says where ops stand; nothing here needs torch."""

from __future__ import annotations

from dataclasses import dataclass

from ....errors import InvalidProblemError
from ...search.options import at_least, of_type

#: Kinds of attention, each with a quarter of the numbers of an op.
_PARTS = 4


@dataclass(frozen=True)
class Shape:
    """The shape of a network.

    Attributes:
        width: Numbers per op, a multiple of 4.
        layers: Rounds of messages and attention.
        messages: Whether ops hear from their neighbours along edges; else attention is all there is.
    """

    width: int
    layers: int
    messages: bool = True

    def __post_init__(self) -> None:
        at_least(_PARTS, most=4096, width=self.width)
        at_least(1, most=256, layers=self.layers)
        of_type(bool, "true or false", messages=self.messages)
        if self.width % _PARTS:
            raise InvalidProblemError(f"width = {self.width}; expected a multiple of {_PARTS}")
