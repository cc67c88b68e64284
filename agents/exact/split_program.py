"""Poses the contiguous-split program of a problem to the core, and reads its answer back as a device map."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ... import _core
from ...problems import PlacementProblem
from .blocks import contract, device_classes
from .reductions import Reduced, reduce_blocks

#: Limit on the bits of all down-sets together, in 64-bit words: 128 MiB.
_MAX_WORDS = 2**24


@dataclass(frozen=True)
class Split:
    """An answer of the program.

    Attributes:
        load_ns: Load of the busiest device; 2^63 - 1 if no split was found.
        device: Device of each op, ``[ops] int64``; ``None`` if no split was found.
        finished: Whether the search was exhaustive, so that no split of this program is better.
    """

    load_ns: int
    device: NDArray[np.int64] | None
    finished: bool


class SplitProgram:
    """All contiguous splits of a problem with objective ``max_load``.

    Args:
        problem: The problem.
        max_down_sets: Enumeration of down-sets stops beyond.
        reduce: Whether to take out blocks that need not be decided.
    """

    def __init__(self, problem: PlacementProblem, max_down_sets: int, *, reduce: bool = True) -> None:
        blocks = contract(problem.graph)
        nothing = np.zeros(problem.graph.num_ops, np.bool_)
        self._reduced = reduce_blocks(problem, blocks) if reduce else Reduced(blocks, nothing)
        self._classes = device_classes(problem)
        left = self._reduced.blocks
        self._sets = _core.DownSets(left.child_ptr, left.child, max_down_sets, _MAX_WORDS)

    @property
    def complete(self) -> bool:
        """Whether all down-sets were found within the limit."""
        return self._sets.complete

    @property
    def down_sets(self) -> int:
        """Number of down-sets found."""
        return self._sets.count

    @property
    def states(self) -> int:
        """Number of states: pairs of a down-set and a number of devices of each class."""
        return self.down_sets * prod(len(devices) + 1 for devices in self._classes)

    @property
    def joined(self) -> NDArray[np.bool_]:
        """Ops that keep memory where a reduction put them, ``[ops] bool``; see :class:`Reduced`."""
        return self._reduced.joined

    def solve(
        self, problem: PlacementProblem, seconds: float, *, weightless: NDArray[np.bool_] | None = None
    ) -> Split:
        """The best split, or the best one found in the time given.

        Args:
            problem: The problem that this is the program of (not kept here: programs are cached by problem).
            seconds: Wall time after which the best split so far is returned.
            weightless: Ops whose memory does not count, ``[ops] bool``.
        """
        load_ns, finished, stage, stage_class = _core.contiguous_split(
            self._sets, **self._costs(problem, weightless), seconds=seconds
        )
        device = self._devices(stage, stage_class) if len(stage_class) else None
        return Split(load_ns, device, finished)

    def _costs(self, problem: PlacementProblem, weightless: NDArray[np.bool_] | None) -> dict[str, Any]:
        """Blocks, tensors and devices, as the core names them."""
        graph = problem.graph
        block, blocks = self._reduced.blocks.block, self._reduced.blocks.count
        example = np.array([devices[0] for devices in self._classes])
        decided = np.flatnonzero(block >= 0)
        block_ns = np.zeros((blocks, len(example)), np.int64)
        np.add.at(block_ns, block[decided], problem.cost_ns[np.ix_(decided, example)])
        allowed = np.ones((blocks, len(example)), np.bool_)
        np.logical_and.at(allowed, block[decided], problem.allowed[np.ix_(decided, example)])
        block_ns[~allowed] = -1

        op = graph.tensor_producer
        source = op < 0
        producer = np.where(source, -1, block[op]).astype(np.int32)
        weighs = np.ones(graph.num_ops, np.bool_) if weightless is None else ~weightless
        homed = ~source & graph.is_variable[op] & weighs[op] & (producer >= 0)
        block_bytes = np.zeros(blocks, np.int64)
        np.add.at(block_bytes, producer[homed], graph.tensor_bytes[homed])

        reader_op = np.repeat(np.arange(graph.num_ops), np.diff(graph.input_ptr))
        reader, tensor = block[reader_op], graph.input_tensor
        counts = (reader >= 0) & (producer[tensor] != reader) & (~source[tensor] | weighs[reader_op])
        pairs = np.unique(np.stack([tensor[counts], reader[counts]], axis=1), axis=0)
        reader_ptr = np.concatenate([[0], np.cumsum(np.bincount(pairs[:, 0], minlength=graph.num_tensors))])
        return {
            "class_count": np.array([len(devices) for devices in self._classes], np.int32),
            "class_capacity": problem.cluster.capacity_bytes[example],
            "block_ns": block_ns,
            "block_bytes": block_bytes,
            "tensor_producer": producer,
            "tensor_bytes": np.where(source, graph.tensor_bytes, 0),  # others are moved, not kept
            "to_device_ns": np.ascontiguousarray(problem.to_device_ns[:, example]),
            "from_device_ns": np.ascontiguousarray(problem.from_device_ns[:, example]),
            "reader_ptr": reader_ptr.astype(np.int32),
            "reader": np.ascontiguousarray(pairs[:, 1]).astype(np.int32),
        }

    def _devices(self, stage: NDArray[np.int32], stage_class: NDArray[np.int32]) -> NDArray[np.int64]:
        """Device of each op: stages take the devices of their class in ascending order."""
        unused = [list(devices) for devices in self._classes]
        device = np.array([unused[c].pop(0) for c in stage_class])
        op_stage = np.append(stage, 0)[self._reduced.blocks.block]
        for ops, parents in self._reduced.free:
            op_stage[ops] = op_stage[parents].max(initial=0)
        placed: NDArray[np.int64] = device[op_stage]
        return placed
