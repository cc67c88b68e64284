"""What a batch shows of each slot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from .padding import PaddedGraph


@dataclass(frozen=True)
class Shown:
    """The observation of a slot: a box that the core writes, or a dict of several and the index of the graph.

    Attributes:
        space: Of one slot.
        keys: Of a dict, what the core writes, in its order; empty for a box.
        static: Of a dict, what never changes in an episode, for each graph, ``[graphs, ...]`` by key.
    """

    space: spaces.Space[Any]
    keys: tuple[str, ...] = ()
    static: Mapping[str, NDArray[Any]] = field(default_factory=dict)

    @classmethod
    def of_graphs(cls, graphs: Sequence[PaddedGraph], changing: Mapping[str, spaces.Space[Any]]) -> Shown:
        """A dict about one of several graphs.

        Args:
            graphs: What never changes of each, of one padding.
            changing: What does, in the order in which the core writes it.
        """
        index = spaces.Box(0, max(len(graphs) - 1, 1), (1,), np.int32)
        arrays = [graph.arrays() for graph in graphs]
        static = {key: np.stack([of_one[key] for of_one in arrays]) for key in arrays[0]}
        return cls(spaces.Dict({**changing, "graph": index}), tuple(changing), static)
