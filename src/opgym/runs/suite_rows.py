"""Which rows of a suite a setting asks for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..errors import InvalidProblemError, unknown_id

if TYPE_CHECKING:
    from ..datasets.suites import Row

_EXPECTED = "expected a number, a list of positions or of graphs, or null"


def chosen_rows(left: Sequence[Row], asked: Any, key: str) -> list[Row]:
    """The rows that are asked for, each once, in the order in which they are asked for.

    Args:
        left: Those that may be asked for, at least one.
        asked: How many from the beginning; a position from 0, a graph or a name, or a list of those; ``None``: all.
        key: Name of the setting, for messages.

    Raises:
        UnknownIdError: No such graph, with the nearest ones.
        InvalidProblemError: No such position, none at all, or something else.
    """
    if asked is None:
        return list(left)
    if type(asked) is int:
        if not 1 <= asked <= len(left):
            raise InvalidProblemError(f"{key} = {asked}; expected 1 .. {len(left)}, or a list")
        return list(left[:asked])
    chosen: dict[str, Row] = {}
    for given in asked if isinstance(asked, list | tuple) else [asked]:
        chosen |= {row.name: row for row in _named(left, given, f"{key} = {asked!r:.200}", key)}
    if not chosen:
        raise InvalidProblemError(f"{key} = []; {_EXPECTED}")
    return list(chosen.values())


def _named(left: Sequence[Row], given: Any, shown: str, key: str) -> list[Row]:
    if isinstance(given, str):
        named = [row for row in left if given in (row.graph, row.name)]
        if not named:
            raise unknown_id("graph of the suite", given, [row.graph for row in left])
        return named
    if type(given) is not int:
        raise InvalidProblemError(f"{shown}; {_EXPECTED}")
    if not 0 <= given < len(left):
        raise InvalidProblemError(f"{key} holds {given}; expected 0 .. {len(left) - 1}")
    return [left[given]]
