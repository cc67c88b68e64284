"""Arguments that the constructors of several environments take."""

from __future__ import annotations

from collections.abc import Mapping

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
