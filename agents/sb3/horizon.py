"""How much of a training is left, for everything that falls while it goes on."""

from __future__ import annotations

from collections.abc import Callable

Schedule = Callable[[float], float]


class Horizon:
    """The share of a training that is left; SB3's own share knows steps, but not a budget of evaluations or seconds.

    Attributes:
        share_left: Says it, 1 .. 0.
    """

    def __init__(self, share_left: Callable[[], float] = lambda: 1.0) -> None:
        self.share_left = share_left

    def constant(self, value: float) -> Schedule:
        """A value that stays."""
        return lambda _: value

    def falling(self, value: float) -> Schedule:
        """A value that falls to 0 in a straight line."""
        return lambda _: value * self.share_left()

    def between(self, first: float, last: float, share: float) -> Schedule:
        """A value that goes from one to another in a straight line over the first share of the training."""

        def now(_: float) -> float:
            spent = 1.0 - self.share_left()
            return last if spent >= share else first + (last - first) * spent / share

        return now
