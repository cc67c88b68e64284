"""What is asked of a graph: the tasks that one policy knows, and those that it does not."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...problems import AnyProblem, Objective, SchedulingProblem

#: Most devices whose affinities a policy proposes, as in the paper.
MOST_DEVICES = 2
#: What is minimised, as the core sees it: the others have no use for priorities.
OBJECTIVES = (Objective.PEAK_MEMORY.value, Objective.STEP_TIME.value)
#: Numbers that tell a policy its task.
FIELDS = 2


@dataclass(frozen=True, order=True)
class Task:
    """What to minimise on how many devices; the policy is told, so that one serves all tasks.

    Attributes:
        objective: One of ``OBJECTIVES``.
        devices: 1 or 2.
    """

    objective: str
    devices: int

    @classmethod
    def of(cls, problem: AnyProblem) -> Task:
        """The task of a problem that :func:`skip_reason` lets pass."""
        if isinstance(problem, SchedulingProblem):
            return cls(Objective.PEAK_MEMORY.value, 1)
        return cls(problem.objective.value, len(problem.cluster))

    @property
    def fields(self) -> NDArray[np.float32]:
        """The task as the policy reads it, ``[2] float32``: whether time counts, and whether there are two devices."""
        return np.array(
            [self.objective == Objective.STEP_TIME.value, self.devices == MOST_DEVICES], np.float32
        )

    def __str__(self) -> str:
        devices = "one device" if self.devices == 1 else f"{self.devices} devices"
        return f"{self.objective} on {devices}"


def skip_reason(problem: AnyProblem) -> str | None:
    """Why no policy has a proposal for a problem of the right type, or ``None``."""
    if isinstance(problem, SchedulingProblem):
        return None
    if problem.objective.value not in OBJECTIVES:
        return f"does not optimise {problem.objective}"
    if len(problem.cluster) > MOST_DEVICES:
        return f"proposes devices of at most {MOST_DEVICES}, and this cluster has {len(problem.cluster)}"
    return None
