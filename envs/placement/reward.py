"""Rewards of placements: what a whole one scores, and the figure that it is divided by."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...outcome import Outcome
from ...problems import Objective, Placement, PlacementProblem
from ...problems.grouping import colocation_units

#: What an infeasible end costs beside its overflow: more than any sensible placement's value.
INFEASIBLE_PENALTY = 2.0


def score(outcome: Outcome, reference: float) -> float:
    """What is minimised: value / reference, plus 2 and the overflow share where the end is infeasible.

    Args:
        outcome: Of the whole placement.
        reference: Value of all work on the fastest single device, in the unit of the outcome.

    Returns:
        A finite number: every placement that an environment can reach has a value.
    """
    value = outcome.value / reference
    return value if outcome.ok else value + INFEASIBLE_PENALTY + outcome.overflow_share


def improvement_reward(before: float, after: float, episode_return: float | None) -> float:
    """By how much the step improved the score (Addanki et al. 2019, Placeto, section 3.1)."""
    return before - after


@dataclass(frozen=True)
class Reference:
    """All work on the fastest single device that may run every op, whatever its capacity.

    Where no device may run every op, every colocation unit counts on its fastest allowed device, one after
    the other.

    Attributes:
        device: Device of each op, ``[ops] int64``.
        time_ns: Time of all work there, at least 1.
        value: Value of the objective there, in its unit; positive.
    """

    device: NDArray[np.int64]
    time_ns: int
    value: float


def reference_of(problem: PlacementProblem) -> Reference:
    """The fixed figure that returns are divided by; costs at most one evaluation."""
    total_ns = problem.cost_ns.sum(axis=0)
    able = problem.allowed.all(axis=0)
    if able.any():
        fastest = int(np.argmin(np.where(able, total_ns, np.iinfo(np.int64).max)))
        device = np.full(problem.graph.num_ops, fastest, np.int64)
    else:
        unit = colocation_units(problem.graph)
        cost = np.zeros((int(unit.max()) + 1, len(problem.cluster)))
        np.add.at(cost, unit, np.where(problem.allowed, problem.cost_ns, np.inf))
        device = np.argmin(cost, axis=1)[unit]
    time_ns = int(problem.cost_ns[np.arange(len(device)), device].sum())
    # One device never waits, so its step time is its work and needs no simulation.
    alone = problem.objective is Objective.STEP_TIME
    value = float(time_ns) if alone else problem.evaluate(Placement(device)).value
    return Reference(device, max(time_ns, 1), value if value > 0 else 1.0)
