"""Checks of the options of searches."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...errors import InvalidProblemError

#: Largest whole number: with it, times the ops of any graph, the core can still count.
MOST = 2**44
#: Most threads: each has buffers of its own.
MOST_THREADS = 1024


def at_least(low: int, *, most: int = MOST, **options: int) -> None:
    """Refuses an option below a limit, or above another."""
    for name, value in options.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < low:
            raise InvalidProblemError(f"{name} = {value!r}; expected a whole number, {low} or more")
        if value > most:
            raise InvalidProblemError(f"{name} = {value!r}; expected a whole number, at most {most}")


def share(**options: float) -> None:
    """Refuses what is no finite share."""
    for name, value in options.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
            raise InvalidProblemError(f"{name} = {value!r}; expected a finite share, 0 or more")


def positive(**options: float) -> None:
    """Refuses what is no finite number above 0."""
    share(**options)
    for name, value in options.items():
        if value <= 0:
            raise InvalidProblemError(f"{name} = {value!r}; expected more than 0")


def at_most_one(**options: float) -> None:
    """Refuses what is not in 0 .. 1."""
    share(**options)
    for name, value in options.items():
        if value > 1:
            raise InvalidProblemError(f"{name} = {value!r}; expected 0 to 1")


def of_type(kind: type[object], what: str, **options: object) -> None:
    """Refuses an option of another type."""
    for name, value in options.items():
        if not isinstance(value, kind):
            raise InvalidProblemError(f"{name} = {value!r:.60}; expected {what}")


def solver_names(**options: Sequence[str]) -> None:
    """Refuses what is no list of names of solvers.

    Raises:
        InvalidProblemError: It is no list of texts.
        UnknownIdError: No solver has one of the names.
    """
    from ..registry import solver_class

    for name, value in options.items():
        if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
            raise InvalidProblemError(f"{name} = {value!r:.60}; expected a list of names of solvers")
        for item in value:
            solver_class(item)
