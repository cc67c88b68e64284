"""The shape of HDP's policy; nothing here needs torch."""

from __future__ import annotations

from dataclasses import dataclass

from ...errors import InvalidProblemError
from ..search.options import at_least, positive, share

#: Groups for each device, and most groups, of the released code.
GROUPS_PER_DEVICE, MOST_GROUPS = 20, 256


@dataclass(frozen=True)
class Shape:
    """The shape of a policy.

    Attributes:
        kinds: Kinds of op that it knows, sorted.
        devices: Most devices that it chooses among.
        groups: Groups that ops are put into.
        kind_width: Numbers of the embedding of a kind of op.
        grouper_width: Hidden numbers of the grouper.
        width: Numbers of a group in the placer; even, half of them for each direction of its encoder.
        temperature: What the placer's preferences are divided by.
        most_logit: Bound of the placer's preferences; 0: there is none.
    """

    kinds: tuple[str, ...]
    devices: int
    groups: int
    kind_width: int
    grouper_width: int
    width: int
    temperature: float
    most_logit: float

    def __post_init__(self) -> None:
        at_least(1, most=256, devices=self.devices)
        at_least(1, most=4096, groups=self.groups)
        at_least(1, most=4096, kind_width=self.kind_width, grouper_width=self.grouper_width)
        at_least(2, most=4096, width=self.width)
        positive(temperature=self.temperature)
        share(most_logit=self.most_logit)
        if self.width % 2:
            raise InvalidProblemError(f"width = {self.width}; expected an even number")


def groups_for(devices: int) -> int:
    """How many groups the released code makes for so many devices."""
    return min(MOST_GROUPS, GROUPS_PER_DEVICE * devices)
