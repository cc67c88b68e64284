"""Nested forks and joins: series-parallel graphs, whose cheapest orders can be found exactly."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise

import numpy as np

from .family import Family, Topology
from .parameters import Probability, Values, Whole
from .random_bits import Draws, Stream

_SMALLEST_FORK = 4  # a fork, two branches, a join


class _Pieces:
    """Draws a series-parallel graph, op by op; a stack of what is still to be drawn replaces recursion."""

    def __init__(self, forks: float, branches: int, draws: Draws) -> None:
        self.forks, self.branches, self.draws = forks, branches, draws
        self.source: list[int] = []
        self.target: list[int] = []
        self.ops = 0
        self.last: list[int] = []  # what the next op reads
        self.to_do: list[Callable[[], None]] = []

    def draw(self, size: int) -> None:
        """Draws a piece of ``size`` ops and all that it consists of."""
        self.to_do.append(lambda: self._piece(size))
        while self.to_do:
            self.to_do.pop()()

    def _op(self) -> None:
        self.source += self.last
        self.target += [self.ops] * len(self.last)
        self.last = [self.ops]
        self.ops += 1

    def _piece(self, size: int) -> None:
        """A row of ops if it is small, else a fork or two pieces in a row."""
        if size < _SMALLEST_FORK:
            for _ in range(size):
                self._op()
        elif self.draws.happens(self.forks):
            self._fork(size - 2)
        else:
            first = 1 + self.draws.below(size - 1)
            self.to_do += [lambda: self._piece(size - first), lambda: self._piece(first)]

    def _fork(self, size: int) -> None:
        """An op, branches of ``size`` ops together, and an op that reads the last of each."""
        self._op()
        fork, ends = self.last, list[int]()

        def start(branch: int) -> None:
            self.last = fork
            self._piece(branch)

        def join() -> None:
            self.last = ends
            self._op()

        self.to_do.append(join)
        for branch in self._split(size):
            self.to_do += [lambda: ends.extend(self.last), partial(start, branch)]

    def _split(self, size: int) -> list[int]:
        """Two to ``branches`` positive sizes with that sum; all ways to split are equally likely."""
        count = 2 + self.draws.below(min(self.branches, size) - 1)
        cuts: set[int] = set()
        while len(cuts) < count - 1:
            cuts.add(1 + self.draws.below(size - 1))
        ordered = [0, *sorted(cuts), size]
        return [high - low for low, high in pairwise(ordered)]


def fork_join(num_ops: int, values: Values, stream: Callable[[str], Stream]) -> Topology:
    """A piece is a row of ops, two pieces in a row, or a fork, branches that are pieces, and a join."""
    pieces = _Pieces(values["forks"], values["branches"], stream("edges").halves())
    pieces.draw(num_ops)
    return Topology(num_ops, np.array(pieces.source, np.int64), np.array(pieces.target, np.int64))


FAMILIES = (
    Family(
        "fork-join",
        "nested forks and joins: a series-parallel graph",
        (1, 100_000),
        (
            Probability("forks", "0.7", "probability that a piece of 4 or more ops is a fork"),
            Whole("branches", "4", "most branches of a fork", 2, 64),
        ),
        fork_join,
    ),
)
