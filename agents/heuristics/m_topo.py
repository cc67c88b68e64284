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
    proportional to the devices' memory. As bytes are freed on the way, a share may exceed a device's memory, unless
    that turns out not to fit. Devices several times slower than others are left out unless the rest does not
    suffice.
    """

    name: ClassVar[str] = "m-topo"
    summary: ClassVar[str] = "fills devices in topological order, balanced by memory (Baechi)"

    def _search(
        self, problem: PlacementProblem, evaluator: Evaluator[Placement], rng: np.random.Generator
    ) -> Remark:
        chosen = workers(problem)
        attempts = [("", chosen, False), ("never above the capacity", chosen, True)]
        if len(chosen) < len(problem.cluster):
            everywhere = np.arange(len(problem.cluster))
            attempts.append(("slow devices too, as the others lack memory", everywhere, True))
        note = ""
        tried: set[bytes] = set()
        for reason, devices, capped in attempts:
            device = _fill(problem, devices, capped)
            if device.tobytes() in tried:
                continue
            tried.add(device.tobytes())
            note = reason
            if evaluate_device(problem, evaluator, device).ok or evaluator.exhausted:
                break
        return Remark(note)


def _fill(problem: PlacementProblem, chosen: NDArray[np.int64], capped: bool) -> NDArray[np.uint8]:
    """One pass over the units by first op, ``[ops] uint8``; ``capped``: shares never exceed the capacity."""
    unit = colocation_units(problem.graph)
    size = np.bincount(unit, weights=written_bytes(problem.graph))
    allowed = of_units(problem.allowed, unit)
    room = problem.cluster.capacity_bytes[chosen].astype(np.float64)
    limit = size.sum() * room / room.sum() + size.max()
    if capped:
        limit = np.minimum(limit, room)
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
