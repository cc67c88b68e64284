"""Arguments that the constructors of several environments take."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..errors import InvalidProblemError, unknown_id


def one_of(what: str, given: str, known: tuple[str, ...]) -> str:
    """Checks a choice.

    Raises:
        UnknownIdError: It is none of the known ones.
    """
    if given not in known:
        raise unknown_id(what, str(given), list(known))
    return given


def refuse_parts_of_a_problem(parts: Mapping[str, object]) -> None:
    """Refuses what a problem, which is given as well, brings itself.

    Args:
        parts: Arguments that pose a problem, by name; ``None``: not given.

    Raises:
        InvalidProblemError: One is given.
    """
    given = [name for name, value in parts.items() if value is not None]
    if given:
        raise InvalidProblemError(
            f"problem= and {given[0]}= are both given; a problem brings its own {given[0]}"
        )


def positive_integer(name: str, given: object, meaning: str) -> int:
    """Checks a count.

    Raises:
        InvalidProblemError: It is no integer, or less than 1.
    """
    if not isinstance(given, (int, np.integer)) or isinstance(given, bool) or given < 1:
        raise InvalidProblemError(f"{name}={given!r}; expected a positive integer, {meaning}")
    return int(given)


def refuse_needless_padding(pad_to: tuple[int, int] | None, observation: str) -> None:
    """Refuses ``pad_to`` for an observation that is not padded.

    Raises:
        InvalidProblemError: It is.
    """
    if pad_to is not None and observation != "dict":
        raise InvalidProblemError(f"pad_to={pad_to} needs observation='dict'; {observation!r} is not padded")
