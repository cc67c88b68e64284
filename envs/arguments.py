"""Arguments that the constructors of several environments take."""

from __future__ import annotations

import os
from collections.abc import Mapping

import numpy as np

from ..errors import InvalidProblemError, unknown_id
from ..graphs import Graph

#: What names a graph, or is one.
GRAPHS = (Graph, str, os.PathLike)

#: What a graph has at most, and with it an observation's padding.
MOST_NODES, MOST_EDGES = 2**24, 2**26


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


def of_type(name: str, given: object, kinds: tuple[type, ...], expected: str) -> None:
    """Checks what kind of thing an argument is.

    Args:
        name: Of the argument.
        given: ``None`` counts as not given.
        kinds: What it may be.
        expected: The same in words.

    Raises:
        InvalidProblemError: It is something else.
    """
    if given is not None and not isinstance(given, kinds):
        raise InvalidProblemError(f"{name}={shortened(given)}; expected {expected}")


def shortened(given: object) -> str:
    """What a message says of a value: its beginning, on one line."""
    text = " ".join(repr(given).split())
    return text if len(text) <= 80 else f"{text[:77]}..."


def positive_integer(name: str, given: object, meaning: str, most: int) -> int:
    """Checks a count.

    Raises:
        InvalidProblemError: It is no integer, less than 1, or more than ``most``.
    """
    if not isinstance(given, (int, np.integer)) or isinstance(given, bool) or given < 1:
        raise InvalidProblemError(f"{name}={shortened(given)}; expected a positive integer, {meaning}")
    if given > most:
        raise InvalidProblemError(f"{name}={given}; expected at most {most:,}, {meaning}")
    return int(given)


def read_padding(pad_to: tuple[int, int] | None, observation: str) -> tuple[int, int] | None:
    """Nodes and edges to pad observations to; ``None``: as many as there are.

    Raises:
        InvalidProblemError: The observation is not padded, or they are no two positive integers.
    """
    if pad_to is None:
        return None
    if observation != "dict":
        raise InvalidProblemError(
            f"pad_to={shortened(pad_to)} needs observation='dict'; {observation!r} is not padded"
        )
    if not isinstance(pad_to, (tuple, list, np.ndarray)) or len(pad_to) != 2:
        raise InvalidProblemError(f"pad_to={shortened(pad_to)}; expected (nodes, edges)")
    nodes, edges = pad_to
    return (
        positive_integer("pad_to", nodes, "the nodes of an observation", MOST_NODES),
        positive_integer("pad_to", edges, "the edges of an observation", MOST_EDGES),
    )
