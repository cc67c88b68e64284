"""Neighbours of units, to draw from."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...graphs import Graph


class Neighbours:
    """The units that read from or write for each unit, as often as there are reads between them.

    Args:
        graph: The graph.
        unit: Unit of each op, ``[ops] int32``.
    """

    def __init__(self, graph: Graph, unit: NDArray[np.int32]) -> None:
        producer, consumer, _ = graph.edges
        a, b = unit[producer], unit[consumer]
        apart = a != b
        tail = np.concatenate([a[apart], b[apart]])
        order = np.argsort(tail, kind="stable")
        self._other = np.concatenate([b[apart], a[apart]])[order]
        self._ptr = np.concatenate([[0], np.cumsum(np.bincount(tail, minlength=int(unit.max()) + 1))])

    def draw(self, unit: int, rng: np.random.Generator) -> int:
        """A random neighbour of a unit; the unit itself if it has none."""
        first, last = int(self._ptr[unit]), int(self._ptr[unit + 1])
        return unit if first == last else int(self._other[int(rng.integers(first, last))])
