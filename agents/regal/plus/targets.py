"""What the network is to expect: where a good solution really puts each op."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from ....problems import AnyProblem, Order, Placement, PlacementProblem
from ...search.keys import KeyEncoding


@dataclass(frozen=True, eq=False)
class Target:
    """One solution as positions and devices.

    Attributes:
        position: Of each op in the order of starts, from 0 to 1; one half for variables, ``[ops] float32``.
        device_1: Whether each op is on device 1, ``[ops] bool``.
    """

    position: NDArray[np.float32]
    device_1: NDArray[np.bool_]

    @classmethod
    def of(cls, encoding: KeyEncoding, solution: Placement | Order, anchor: int) -> Self:
        """The target that a solution is.

        Positions are those in which ops start, not the priorities that led there: two good solutions agree far more
        in the former. Where both devices are alike, the solution is mirrored if it has the anchor on device 1.

        Args:
            encoding: Of the problem.
            solution: Of the problem.
            anchor: The op that is on device 0 of two that are alike.
        """
        if isinstance(solution, Placement):
            if np.asarray(solution.device)[anchor] == 1 and devices_are_alike(encoding.problem):
                solution = _mirrored(solution)
            device_1 = np.asarray(solution.device) == 1
        else:
            device_1 = np.zeros(encoding.problem.graph.num_ops, np.bool_)
        position = np.full(len(device_1), 0.5, np.float32)
        position[encoding.ops] = 1 - encoding.encode(solution)[encoding.priorities]
        return cls(position, device_1)


def _mirrored(solution: Placement) -> Placement:
    """The same on the other device each."""
    transfer = solution.transfer_priority
    return Placement(
        1 - np.asarray(solution.device),
        solution.priority,
        None if transfer is None else np.asarray(transfer)[:, ::-1],
    )


def devices_are_alike(problem: AnyProblem) -> bool:
    """Whether a solution that is mirrored is worth the same."""
    if not isinstance(problem, PlacementProblem) or len(problem.cluster) != 2:
        return False
    cluster = problem.cluster
    links = cluster.bytes_per_second, cluster.latency_ns
    return bool(
        (problem.cost_ns[:, 0] == problem.cost_ns[:, 1]).all()
        and (problem.allowed[:, 0] == problem.allowed[:, 1]).all()
        and cluster.capacity_bytes[0] == cluster.capacity_bytes[1]
        and (cluster.channel == "free" or all(link[0, 1] == link[1, 0] for link in links))
    )
