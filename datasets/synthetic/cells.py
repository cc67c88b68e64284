"""Chains of irregular cells, as networks found by architecture search or wired at random have them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .family import Family, Topology
from .parameters import Values, Whole, Word
from .random_bits import Draws, Stream
from .regal import small_world

_KINDS = ("op", "add", "concat")
_SMALLEST_CELL = 8
#: Xie et al. 2019 wire with WS(4, 0.75).
_NEIGHBOURS = 4
_REWIRED = 0.75


class _Chain:
    """Adds ops one after another."""

    def __init__(self, draws: Draws) -> None:
        self.draws = draws
        self.kind: list[int] = []
        self.layer: list[int] = []
        self.source: list[int] = []
        self.target: list[int] = []
        self.cell = 0

    def add(self, kind: str, *reads: int) -> int:
        """Adds an op that reads the outputs of earlier ops, and returns it."""
        op = len(self.kind)
        self.kind.append(_KINDS.index(kind))
        self.layer.append(self.cell)
        self.source += reads
        self.target += [op] * len(reads)
        return op

    def add_random_cell(self, size: int, entry: int) -> int:
        """Adds a randomly wired cell and returns its last op.

        A Watts-Strogatz graph, oriented by index; nodes without a predecessor read the entry, and the mean of
        the nodes without a successor is the cell's output (Xie et al. 2019, "Exploring randomly wired neural
        networks for image recognition", section 3).
        """
        inner = size - 1
        first = len(self.kind)
        reads: list[list[int]] = [[] for _ in range(inner)]
        for one, other in small_world(inner, _NEIGHBOURS, _REWIRED, self.draws):
            reads[max(one, other)].append(min(one, other))
        read = {node for nodes in reads for node in nodes}
        for nodes in reads:
            self.add("op", *(first + node for node in sorted(nodes)) if nodes else (entry,))
        return self.add("add", *(first + node for node in range(inner) if node not in read))

    def add_searched_cell(self, size: int, entries: tuple[int, int]) -> int:
        """Adds a cell of blocks and returns its last op.

        Each block adds up two ops that read two different states: the two entries, which an op each adapts,
        and the blocks before. The states that nobody read are concatenated (Zoph et al. 2018, "Learning
        transferable architectures for scalable image recognition", section 3.2). Ops that make no whole block
        follow in a row.
        """
        states = [self.add("op", entry) for entry in entries]
        unread = set(states)
        blocks, rest = divmod(size - 3, 3)
        for _ in range(blocks):
            one = self.draws.below(len(states))
            other = self.draws.below(len(states) - 1)
            pair = (states[one], states[other + (other >= one)])
            unread.difference_update(pair)
            states.append(self.add("add", self.add("op", pair[0]), self.add("op", pair[1])))
            unread.add(states[-1])
        end = self.add("concat", *sorted(unread))
        for _ in range(rest):
            end = self.add("op", end)
        return end


def cells(num_ops: int, values: Values, stream: Callable[[str], Stream]) -> Topology:
    """A stem, then a chain of cells, as equal in size as possible, each with a wiring of its own."""
    chain = _Chain(stream("edges").halves())
    count = max(1, (num_ops - 1) // values["nodes"])
    ends = [chain.add("op")]
    for cell in range(count):
        chain.cell = cell + 1
        size = (num_ops - 1) // count + (cell < (num_ops - 1) % count)
        if values["wiring"] == "random":
            ends.append(chain.add_random_cell(size, ends[-1]))
        else:
            ends.append(chain.add_searched_cell(size, (ends[max(0, len(ends) - 2)], ends[-1])))
    kind = np.array(chain.kind, np.int64)
    return Topology(
        num_ops,
        np.array(chain.source, np.int64),
        np.array(chain.target, np.int64),
        _KINDS,
        kind,
        kind == _KINDS.index("concat"),
        np.array(chain.layer, np.int64),
        "cell",
    )


FAMILIES = (
    Family(
        "cells",
        "a chain of irregular cells, as in RandWire, NASNet and DARTS networks",
        (_SMALLEST_CELL + 1, 100_000),
        (
            Word(
                "wiring",
                "random",
                "random: as in RandWire; searched: blocks of two ops, as in NASNet and DARTS",
                ("random", "searched"),
            ),
            Whole("nodes", "16", "ops of a cell, at least", _SMALLEST_CELL, 1000),
        ),
        cells,
    ),
)
