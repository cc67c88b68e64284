"""Makes the block graph smaller without losing the best contiguous split.

Down-sets multiply with blocks that could be anywhere. Two kinds of blocks that cost no time need not be
decided by the dynamic program:

- A *free* block also keeps nothing in memory and moves nothing: its parents are tied to its children, and it
is placed
  afterwards with the last of its parents.
- A block whose only neighbour is ``u`` *joins* ``u``: with ``u`` it saves transfers and adds no time. Only
memory can
  speak against it, so whoever uses this compares with the program that ignores the memory of joined blocks,
  whose value no split beats.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...problems import PlacementProblem
from .blocks import Blocks

#: A free block with more pairs of parents and children stays: tying them would cost more than it saves.
_MAX_TIES = 64


@dataclass(frozen=True, eq=False)
class Reduced:
    """A smaller block graph.

    Attributes:
        blocks: What is left to decide; ops of free blocks have block -1.
        joined: Ops whose block joined another and that keep something in memory, ``[ops] bool``.
        free: Free blocks in topological order: the ops of each, and the ops of its parents.
    """

    blocks: Blocks
    joined: NDArray[np.bool_]
    free: tuple[tuple[NDArray[np.int64], NDArray[np.int64]], ...] = ()


def reduce_blocks(problem: PlacementProblem, blocks: Blocks) -> Reduced:
    """Takes out free blocks and joins blocks with a single neighbour, as long as there are any."""
    graph = problem.graph
    idle = np.ones(blocks.count, np.bool_)
    np.logical_and.at(idle, blocks.block, ((problem.cost_ns == 0) & problem.allowed).all(axis=1))
    if not idle.any():
        return Reduced(blocks, np.zeros(graph.num_ops, np.bool_))

    links = _Links(problem, blocks)
    members = np.split(np.argsort(blocks.block, kind="stable"), np.cumsum(np.bincount(blocks.block))[:-1])
    left = blocks.count
    free: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []
    for v in links.topological_order():
        ties = len(links.parents[v]) * len(links.children[v])
        if left > 1 and idle[v] and not links.partners[v] and not links.keeps_memory[v] and ties <= _MAX_TIES:
            before = [members[u] for u in sorted(links.parents[v])]
            free.append((members[v], np.concatenate([np.zeros(0, np.int64), *before])))
            links.tie_over(v)
            left -= 1

    joined = np.zeros(graph.num_ops, np.bool_)
    into = np.arange(blocks.count)
    waiting = [v for v in range(blocks.count) if idle[v] and not links.gone[v]]
    while waiting:
        v = waiting.pop()
        neighbours = links.neighbours(v)
        if links.gone[v] or len(neighbours) != 1:
            continue
        (u,) = neighbours
        joined |= into[blocks.block] == v
        into[into == v] = u
        links.join(v, u)
        if idle[u]:
            waiting.append(u)

    kept = np.flatnonzero(~links.gone)
    number = np.full(blocks.count, -1, np.int32)
    number[kept] = np.arange(len(kept), dtype=np.int32)
    children = [sorted(number[list(links.children[v])].tolist()) for v in kept]
    child_ptr = np.concatenate([[0], np.cumsum([len(c) for c in children])]).astype(np.int32)
    child = np.array([w for c in children for w in c], np.int32)
    smaller = Blocks(number[into][blocks.block], child_ptr, child)
    return Reduced(smaller, joined & keeps_memory(problem), tuple(free))


class _Links:
    """How blocks depend on one another: order, transfers, memory.

    Attributes:
        parents: Blocks that must come before each block.
        children: Blocks that must come after each block.
        partners: Blocks that share a tensor with each block whose transfer takes time.
        keeps_memory: Whether a block keeps something where it is, ``[blocks] bool``.
        gone: Whether a block was taken out, ``[blocks] bool``.
    """

    def __init__(self, problem: PlacementProblem, blocks: Blocks) -> None:
        graph, count = problem.graph, blocks.count
        self.parents: list[set[int]] = [set() for _ in range(count)]
        self.children: list[set[int]] = [set() for _ in range(count)]
        self.partners: list[set[int]] = [set() for _ in range(count)]
        self.gone = np.zeros(count, np.bool_)
        source = np.repeat(np.arange(count), np.diff(blocks.child_ptr))
        for u, v in zip(source.tolist(), blocks.child.tolist(), strict=True):
            self.children[u].add(v)
            self.parents[v].add(u)
        moves = ((problem.to_device_ns != 0) | (problem.from_device_ns != 0)).any(axis=1)
        producer, consumer, tensor = graph.edges
        writer, reader = blocks.block[producer], blocks.block[consumer]
        shared = moves[tensor] & (writer != reader)
        for u, v in np.unique(np.stack([writer[shared], reader[shared]], axis=1), axis=0).tolist():
            self.partners[u].add(v)
            self.partners[v].add(u)
        self.keeps_memory = np.zeros(count, np.bool_)
        self.keeps_memory[blocks.block[keeps_memory(problem)]] = True

    def topological_order(self) -> list[int]:
        """Every block after its parents."""
        missing = [len(parents) for parents in self.parents]
        order = [v for v, count in enumerate(missing) if count == 0]
        for u in order:  # grows while it is read
            for v in sorted(self.children[u]):
                missing[v] -= 1
                if missing[v] == 0:
                    order.append(v)
        return order

    def neighbours(self, v: int) -> set[int]:
        """Blocks that block ``v`` depends on in any way."""
        return self.parents[v] | self.children[v] | self.partners[v]

    def tie_over(self, v: int) -> None:
        """Takes a block out and keeps the order that it stands for."""
        for u in self.parents[v]:
            self.children[u] = (self.children[u] | self.children[v]) - {v}
        for w in self.children[v]:
            self.parents[w] = (self.parents[w] | self.parents[v]) - {v}
        self.gone[v] = True

    def join(self, v: int, u: int) -> None:
        """Makes a block whose only neighbour is ``u`` part of it."""
        for links in (self.parents, self.children, self.partners):
            links[u].discard(v)
        self.gone[v] = True


def keeps_memory(problem: PlacementProblem) -> NDArray[np.bool_]:
    """Whether bytes stay with an op, as a variable or a reader of source tensors, ``[ops] bool``."""
    graph = problem.graph
    reader = np.repeat(np.arange(graph.num_ops), np.diff(graph.input_ptr))
    sources = (graph.tensor_producer[graph.input_tensor] < 0) & (graph.tensor_bytes[graph.input_tensor] > 0)
    keeps = graph.is_variable.copy()
    keeps[reader[sources]] = True
    return keeps
