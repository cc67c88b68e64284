"""Checks of the options of searches."""

from __future__ import annotations

import math

from ...errors import InvalidProblemError


def at_least(low: int, **options: int) -> None:
    """Refuses an option below a limit."""
    for name, value in options.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < low:
            raise InvalidProblemError(f"{name} = {value!r}; expected a whole number, {low} or more")


def share(**options: float) -> None:
    """Refuses what is no finite share."""
    for name, value in options.items():
        if not 0 <= value < math.inf:
            raise InvalidProblemError(f"{name} = {value!r}; expected a finite share, 0 or more")
