"""METIS: balanced parts that cut few bytes, one per device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ...problems import Evaluator, Objective, Placement, PlacementProblem
from ...problems.grouping import metis_parts
from ..registry import register
from ..solver import PlacementSolver, Remark, evaluate_device
from .workers import legalised, relative_time, workers

#: METIS is not asked for parts more unequal than this; it leaves some empty then.
_MOST_UNEQUAL = 4.0
#: Weights of bytes against time that are tried one after the other where memory does not suffice.
MEMORY_WEIGHTS = (0.0, 0.5, 1.0)


@register
@dataclass(frozen=True)
class Metis(PlacementSolver):
    """Splits the graph into one part per device by time, cutting few bytes.

    Karypis and Kumar 1998 ("A fast and high quality multilevel scheme for partitioning irregular graphs").
    Ours: colocation groups are contracted; a device's share is proportional to its speed, and devices several
    times slower than others get none; where the parts do not fit, or memory is the objective, bytes are balanced
    beside or instead of time.

    Attributes:
        seed: METIS's own; the result does not depend on the solver's generator.
    """

    seed: int = 1

    name: ClassVar[str] = "metis"
    summary: ClassVar[str] = "graph partitioning: balanced time, few bytes cut"

    def _search(
        self, problem: PlacementProblem, evaluator: Evaluator[Placement], rng: np.random.Generator
    ) -> Remark:
        memory_is_the_aim = problem.objective is Objective.PEAK_MEMORY
        for memory_weight in MEMORY_WEIGHTS:
            device = partition(problem, memory_weight, self.seed)
            outcome = evaluate_device(problem, evaluator, device)
            if (outcome.ok and not memory_is_the_aim) or evaluator.exhausted:
                break
        return Remark("balanced by time and bytes" if memory_weight else "")


def partition(problem: PlacementProblem, memory_weight: float, seed: int) -> NDArray[np.uint8]:
    """One part per device that shares the work, by METIS, ``[ops] uint8``.

    Args:
        problem: Whose graph is split.
        memory_weight: Weight of bytes against time, 0 to 1; parts are as large as devices are fast, or, where bytes
            alone count, as they have memory.
        seed: Of METIS.
    """
    chosen = workers(problem)
    speed = 1.0 / relative_time(problem)[chosen]
    room = problem.cluster.capacity_bytes[chosen].astype(np.float64)
    share = room if memory_weight == 1.0 else speed
    share = np.maximum(share, share.max() / _MOST_UNEQUAL)
    equal = bool((share == share[0]).all())
    part = metis_parts(
        problem,
        len(chosen),
        seed=seed,
        shares=None if equal else share / share.sum(),
        memory_weight=memory_weight,
    )
    return legalised(problem, chosen[part])
