"""m-TOPO: fill devices in topological order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ...problems import Evaluator, Placement, PlacementProblem
from ...problems.grouping import colocation_units, of_units, written_bytes
from ..registry import register
from ..solver import PlacementSolver, Remark, evaluate_device
from .workers import legalised, workers


@register
@dataclass(frozen=True)
class MTopo(PlacementSolver):
    """Fills one device after the other in topological order, each up to its share of all bytes + the largest op.

    Jeon et al. 2020 ("Baechi", section 3.1). Bytes are what ops write and the parameters they bring; shares are
    proportional to the devices' memory. Devices several times slower than others are left out unless the rest does
    not suffice.
    """

    name: ClassVar[str] = "m-topo"
    summary: ClassVar[str] = "fills devices in topological order, balanced by memory (Baechi)"

    def _search(
        self, problem: PlacementProblem, evaluator: Evaluator[Placement], rng: np.random.Generator
    ) -> Remark:
        chosen = workers(problem)
        outcome = evaluate_device(problem, evaluator, _fill(problem, chosen))
        if outcome.ok or len(chosen) == len(problem.cluster) or evaluator.exhausted:
            return Remark()
        evaluate_device(problem, evaluator, _fill(problem, np.arange(len(problem.cluster))))
        return Remark("slow devices too, as the fast ones lack memory")


def _fill(problem: PlacementProblem, chosen: NDArray[np.int64]) -> NDArray[np.uint8]:
    """One pass over the units by first op, ``[ops] uint8``."""
    unit = colocation_units(problem.graph)
    size = np.bincount(unit, weights=written_bytes(problem.graph))
    allowed = of_units(problem.allowed, unit)
    room = problem.cluster.capacity_bytes[chosen].astype(np.float64)
    limit = size.sum() * room / room.sum() + size.max()
    used = np.zeros(len(chosen))
    home = np.zeros(len(size), np.int64)
    current = 0
    for u, bytes_ in enumerate(size.tolist()):
        while used[current] + bytes_ > limit[current] and current + 1 < len(chosen):
            current += 1
        at = current
        if not allowed[u, chosen[at]]:
            able = np.flatnonzero(allowed[u, chosen])
            if len(able) == 0:
                continue  # legalised() finds it a device
            at = int(able[np.argmin(used[able] / limit[able])])
        used[at] += bytes_
        home[u] = chosen[at]
    return legalised(problem, home[unit])
