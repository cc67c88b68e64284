"""The graph of groups that Placeto walks through; nothing here needs torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...problems import PlacementProblem
from ...problems.grouping import assign, number_by_first_op

#: Most groups: an episode takes a step for each, and each step looks at all of them.
MOST_GROUPS = 2_048


@dataclass(frozen=True, eq=False)
class CoarseGraph:
    """Groups of ops that are placed together, numbered by their first op, which is the order they are visited in.

    Contracted groups may form cycles: what a group reads of a later one is left out.

    Attributes:
        of_op: Group of each op, ``[ops] int32``.
        allowed: Whether all ops of a group may run on a device, ``[groups, devices] bool``; every row has a True.
        single: All on the device that is the fastest of those that may run most groups; what may not run there on its
            fastest, ``[groups] int64``.
        fields: Run time of each group on its fastest device, and bytes that its ops write, as shares of the largest
            of all groups, ``[groups, 2] float32``.
        reads: Whether a group (row) reads what an earlier one (column) writes, ``[groups, groups] bool``.
        reached: Whether a path leads to a group (row) from an earlier one (column), ``[groups, groups] bool``.
    """

    of_op: NDArray[np.int32]
    allowed: NDArray[np.bool_]
    single: NDArray[np.int64]
    fields: NDArray[np.float32]
    reads: NDArray[np.bool_]
    reached: NDArray[np.bool_]

    @classmethod
    def of(cls, problem: PlacementProblem, groups: str) -> CoarseGraph:
        """The groups of a problem.

        Args:
            problem: What is placed.
            groups: As of :func:`opgym.problems.grouping.assign`. A group that no device may run as a whole is split
                into ops that may run on the same devices.
        """
        of_op, allowed = _placeable(problem, assign(problem, groups))
        cost = np.zeros(allowed.shape)
        np.add.at(cost, of_op, problem.cost_ns)
        home = min(range(len(problem.cluster)), key=lambda d: (-int(allowed[:, d].sum()), cost[:, d].sum()))
        able = np.where(allowed, cost, np.inf)
        single = np.where(allowed[:, home], home, able.argmin(axis=1)).astype(np.int64)
        graph = problem.graph
        produced = graph.tensor_producer >= 0
        written = np.bincount(
            of_op[graph.tensor_producer[produced]], graph.tensor_bytes[produced], minlength=len(allowed)
        )
        fields = np.stack([_shares(able.min(axis=1)), _shares(written)], axis=1)
        reads = _reads(problem, of_op, len(allowed))
        return cls(of_op, allowed, single, fields, reads, _reached(reads))

    def __len__(self) -> int:
        return len(self.allowed)

    def device_of_ops(self, device: NDArray[np.integer]) -> NDArray[np.uint8]:
        """Device of each op from that of each group, ``[groups] -> [ops] uint8``."""
        of_ops: NDArray[np.uint8] = device.astype(np.uint8)[self.of_op]
        return of_ops

    def drawn(self, rng: np.random.Generator) -> NDArray[np.int64]:
        """A random allowed device for each group, ``[groups] int64``."""
        nth = np.floor(rng.random(len(self)) * self.allowed.sum(axis=1))
        device: NDArray[np.int64] = (self.allowed.cumsum(axis=1) > nth[:, None]).argmax(axis=1)
        return device


def _placeable(
    problem: PlacementProblem, of_op: NDArray[np.int32]
) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
    """Groups that may run somewhere, ``[ops] int32``, and where, ``[groups, devices] bool``."""
    allowed = _allowed(problem, of_op)
    somewhere = np.asarray(allowed.any(axis=1))
    if not somewhere.all():
        # ops that have to share a device may run on the same ones, so this splits none of their groups
        rows, row = np.unique(problem.allowed, axis=0, return_inverse=True)
        split = np.where(somewhere[of_op], 0, 1 + row.ravel())
        of_op = number_by_first_op(of_op.astype(np.int64) * (1 + len(rows)) + split)
        allowed = _allowed(problem, of_op)
    return of_op, allowed


def _allowed(problem: PlacementProblem, of_op: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Whether all ops of a group may run on a device, ``[groups, devices] bool``."""
    allowed = np.ones((int(of_op.max()) + 1, len(problem.cluster)), np.bool_)
    np.logical_and.at(allowed, of_op, problem.allowed)
    return allowed


def _shares(values: NDArray[Any]) -> NDArray[np.float32]:
    """Values over the largest of them."""
    most = values.max()
    return (values / most if most > 0 else values).astype(np.float32)


def _reads(problem: PlacementProblem, of_op: NDArray[np.int32], groups: int) -> NDArray[np.bool_]:
    writer, reader, _ = problem.graph.edges
    reads = np.zeros((groups, groups), np.bool_)
    reads[of_op[reader], of_op[writer]] = True
    return np.tril(reads, -1)


def _reached(reads: NDArray[np.bool_]) -> NDArray[np.bool_]:
    reached = reads.copy()
    for group, parents in enumerate(reads):
        reached[group] |= reached[parents].any(axis=0)
    return reached
