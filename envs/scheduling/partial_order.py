"""The ops that have run, in order, and what that means for memory and for the ops that may run next."""

from __future__ import annotations

from array import array
from bisect import bisect_left, insort
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .layout import (
    FREED,
    LAST_USES,
    NEEDED,
    NEEDED_AGAIN,
    NET,
    NET_AGAIN,
    NUM_FIGURES,
    UNLOCKS,
    WAITED,
    Layout,
)

#: What a node is.
WAITING, READY, DONE = 0, 1, 2


class PartialOrder:
    """A beginning of an order, extended op by op.

    One step costs O(degree) updates of figures. Ready nodes stand in sorted lists, found by bisection; an entry
    that moves shifts 8 bytes for each one behind it.

    The *rank* of ready nodes is by net bytes freed (bytes that are freed when the op ends - bytes of its
    outputs), most first, then by index. An *opener* is a ready node that some other node misses alone: running
    it makes that one ready.

    Attributes:
        order: Nodes that have run, ``[steps]``.
        used_bytes: Memory while each of them ran, ``[steps]``.
        live_bytes: Memory now.
        peak_bytes: The most there has been.
        status: ``WAITING``, ``READY`` or ``DONE`` for each node, ``[nodes]``.
        ready: The ready nodes, ascending.
        figures: Figures of each node, right for those that are ready, ``[nodes, NUM_FIGURES] int64``.
    """

    __slots__ = (
        "_by_rank",
        "_figures",
        "_layout",
        "_num_nodes",
        "_num_parents",
        "_num_readers",
        "_openers",
        "_parents_xor",
        "_readers_xor",
        "figures",
        "live_bytes",
        "order",
        "peak_bytes",
        "ready",
        "status",
        "used_bytes",
    )

    def __init__(self, layout: Layout) -> None:
        self._layout, self._num_nodes = layout, layout.num_nodes
        self._figures = layout.figures[:]
        self._num_parents, self._parents_xor = layout.num_parents[:], layout.parents_xor[:]
        self._num_readers, self._readers_xor = layout.num_readers[:], layout.readers_xor[:]
        self.order, self.used_bytes = array("i"), array("q")
        self.live_bytes = self.peak_bytes = 0
        self.ready = [node for node, parents in enumerate(layout.num_parents) if parents == 0]
        self.status = bytearray(layout.num_nodes)
        for node in self.ready:
            self.status[node] = READY
        self._by_rank = sorted(map(self._key, self.ready))
        self._openers = sorted(map(self._key, filter(self._opens, self.ready)))
        self._view_figures()

    def copy(self) -> PartialOrder:
        """An independent copy: a few flat arrays, O(nodes + held tensors)."""
        twin = PartialOrder.__new__(PartialOrder)
        twin._layout, twin._num_nodes = self._layout, self._num_nodes
        twin._figures = self._figures[:]
        twin._num_parents, twin._parents_xor = self._num_parents[:], self._parents_xor[:]
        twin._num_readers, twin._readers_xor = self._num_readers[:], self._readers_xor[:]
        twin.order, twin.used_bytes = self.order[:], self.used_bytes[:]
        twin.live_bytes, twin.peak_bytes = self.live_bytes, self.peak_bytes
        twin.ready, twin.status = self.ready[:], self.status[:]
        twin._by_rank, twin._openers = self._by_rank[:], self._openers[:]
        twin._view_figures()
        return twin

    def run(self, node: int) -> None:
        """Runs a ready node."""
        layout, figures = self._layout, self._figures
        row = node * NUM_FIGURES
        used = self.live_bytes + figures[row + NEEDED]
        if used > self.peak_bytes:
            self.peak_bytes = used
        self.used_bytes.append(used)
        self.order.append(node)
        self._remove(node)
        self.live_bytes -= figures[row + NET]

        num_readers, readers_xor = self._num_readers, self._readers_xor
        for tensor in layout.reads[node]:
            left = num_readers[tensor] - 1
            num_readers[tensor] = left
            readers_xor[tensor] ^= node
            if left == 1:
                self._leave_to(readers_xor[tensor], tensor)

        num_parents, parents_xor = self._num_parents, self._parents_xor
        for child in layout.children[node]:
            missing = num_parents[child] - 1
            num_parents[child] = missing
            parents_xor[child] ^= node
            if missing == 0:
                figures[child * NUM_FIGURES + WAITED] = -len(self.order)
                self.status[child] = READY
                key = self._key(child)
                insort(self.ready, child)
                insort(self._by_rank, key)
                if self._opens(child):
                    insort(self._openers, key)
            elif missing == 1:
                parent = parents_xor[child]
                if self.status[parent] == READY and not self._opens(parent):
                    insort(self._openers, self._key(parent))
                figures[parent * NUM_FIGURES + UNLOCKS] += 1

    def best(self, count: int) -> list[int]:
        """Up to ``count`` ready nodes in order of rank: all of them, or some of each kind.

        Where more are ready: the best ranked openers (nearly half of ``count``), the nodes of lowest index that
        are not among them (a quarter), and the best ranked of all others. For two or more, the node of best rank
        and the one of lowest index are always there.
        """
        by_rank, nodes = self._by_rank, self._num_nodes
        if len(by_rank) <= count:
            return [key % nodes for key in by_rank]
        figures, left = self._figures, (count + 2) // 4
        chosen = set(self._openers[: max(count - 1, 0) // 2])
        for node in self.ready:
            if not left:
                break
            key = node - figures[node * NUM_FIGURES + NET] * nodes
            if key not in chosen:
                chosen.add(key)
                left -= 1
        left = count - len(chosen)
        for key in by_rank:
            if not left:
                break
            if key not in chosen:
                chosen.add(key)
                left -= 1
        return [key % nodes for key in sorted(chosen)]

    def ranked(self) -> list[int]:
        """All ready nodes in order of rank."""
        return self.best(len(self._by_rank))

    def _key(self, node: int) -> int:
        """Sorts ready nodes by rank; the node itself is its remainder by the number of nodes."""
        return node - self._figures[node * NUM_FIGURES + NET] * self._num_nodes

    def _opens(self, node: int) -> bool:
        return self._figures[node * NUM_FIGURES + UNLOCKS] > 0

    def _remove(self, node: int) -> None:
        self.status[node] = DONE
        key = self._key(node)
        del self.ready[bisect_left(self.ready, node)]
        del self._by_rank[bisect_left(self._by_rank, key)]
        if self._opens(node):
            del self._openers[bisect_left(self._openers, key)]

    def _leave_to(self, node: int, tensor: int) -> None:
        """Makes a node the last reader of a tensor, which it will free."""
        layout, figures = self._layout, self._figures
        row, size = node * NUM_FIGURES, layout.held_bytes[tensor]
        if self.status[node] == READY:
            old = self._key(node)
            new = old - size * self._num_nodes
            _replace(self._by_rank, old, new)
            if figures[row + UNLOCKS]:
                _replace(self._openers, old, new)
        figures[row + NET] += size
        figures[row + NET_AGAIN] += size
        figures[row + FREED] += size
        figures[row + LAST_USES] += 1
        if (
            layout.may_take_over
            and tensor * self._num_nodes + node in layout.may_take_over
            and figures[row + NEEDED] == layout.needed_bytes[node]  # no other input is taken over already
        ):
            figures[row + NEEDED] -= layout.allocated_bytes[node]
            figures[row + NEEDED_AGAIN] -= layout.allocated_bytes[node]

    def _view_figures(self) -> None:
        self.figures: NDArray[np.int64] = np.frombuffer(self._figures, np.int64).reshape(-1, NUM_FIGURES)

    def __getstate__(self) -> dict[str, Any]:  # without the view, which would become another array
        return {name: getattr(self, name) for name in self.__slots__ if name != "figures"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, value)
        self._view_figures()


def _replace(keys: list[int], old: int, new: int) -> None:
    """Replaces a sorted key by a smaller one."""
    position = bisect_left(keys, old)
    del keys[position]
    insort(keys, new, 0, position)
