"""What a family of random graphs is, and what it hands over: who reads whom."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...errors import ImportFailedError
from .parameters import Parameter, Values
from .random_bits import Int64, Stream

#: More edges than this are refused before they are drawn; they would take gigabytes.
MAX_EDGES = 20_000_000


@dataclass(frozen=True)
class Topology:
    """The structure of a graph whose every op writes one tensor.

    Attributes:
        num_ops: Number of ops.
        source: Op that writes what an edge carries, ``[edges] int64``.
        target: Op that reads it, ``[edges] int64``, greater than its source; an edge may be listed twice.
        kinds: The kinds of its ops.
        op_kind: Position in ``kinds``, ``[ops] int64``; ``None``: all are the first.
        concatenates: Whether an op's output is as large as its inputs together, ``[ops] bool``; such an op
            reads no other such op. ``None``: none is.
        op_layer: Number of the layer of each op, ``[ops] int64``, ascending from 0; ``None``: there are none.
        layer_name: What a layer is called; its number is put behind.
    """

    num_ops: int
    source: Int64
    target: Int64
    kinds: tuple[str, ...] = ("op",)
    op_kind: Int64 | None = None
    concatenates: NDArray[np.bool_] | None = None
    op_layer: Int64 | None = None
    layer_name: str = ""


@dataclass(frozen=True)
class Family:
    """A family of random graphs.

    Attributes:
        name: Its name in an id.
        meaning: One line for people.
        parameters: Those of its own, after ``n``.
        ops: The least and the largest number of ops.
        draw: Draws a topology: number of ops, values of the parameters, stream of a purpose.
    """

    name: str
    meaning: str
    ops: tuple[int, int]
    parameters: tuple[Parameter, ...]
    draw: Callable[[int, Values, Callable[[str], Stream]], Topology]


def refuse_too_many(expected_edges: float, family: str) -> None:
    """Refuses parameters that ask for more edges than :data:`MAX_EDGES`.

    Raises:
        ImportFailedError: They do.
    """
    if expected_edges > MAX_EDGES:
        raise ImportFailedError(
            f"synthetic/{family} with these parameters has about {expected_edges:.3g} edges; at most "
            f"{MAX_EDGES:.3g} are drawn: lower n or the density"
        )
