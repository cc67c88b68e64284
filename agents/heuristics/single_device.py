"""Everything on one device: the yardstick that every placement has to beat."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ...problems import Evaluator, Objective, Placement, PlacementProblem
from ..registry import register
from ..solver import PlacementSolver, Remark, evaluate_device


@register
@dataclass(frozen=True)
class SingleDevice(PlacementSolver):
    """All ops on the fastest device that supports them all.

    Memory plays no part in the choice: the outcome says if it does not suffice. (For ``peak_memory`` every device
    gives the same value, and the one with the most memory is taken; for ``latency`` each kind of device is tried.)
    """

    name: ClassVar[str] = "single"
    summary: ClassVar[str] = "all ops on the fastest single device"

    def skip_reason(self, problem: PlacementProblem) -> str | None:
        """Says if no device supports all ops."""
        reason = super().skip_reason(problem)
        if reason is None and not problem.allowed.all(axis=0).any():
            reason = "no single device supports all ops"
        return reason

    def _search(
        self, problem: PlacementProblem, evaluator: Evaluator[Placement], rng: np.random.Generator
    ) -> Remark:
        capable = np.flatnonzero(problem.allowed.all(axis=0))
        time = problem.cost_ns.sum(axis=0, dtype=np.float64)[capable]
        room = problem.cluster.capacity_bytes[capable]
        # A capable device's ops never transfer anything, so the sum of their times is the value of the other two.
        keys = (time, -room) if problem.objective is Objective.PEAK_MEMORY else (-room, time)
        order = capable[np.lexsort(keys)]
        if problem.objective is Objective.LATENCY:
            classes = problem.cluster.device_class[order]
            order = order[np.sort(np.unique(classes, return_index=True)[1])]
        else:
            order = order[:1]
        for device in order:
            evaluate_device(problem, evaluator, np.full(problem.graph.num_ops, device, np.uint8))
        assert evaluator.best is not None
        return Remark(f"all ops on {problem.cluster.device_names[evaluator.best.device[0]]}")
