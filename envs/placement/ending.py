"""What an episode came to: the same for a single environment and in a batch."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...outcome import Outcome
from ...problems import Placement, PlacementProblem


def judge_legal(
    problem: PlacementProblem, device: NDArray[np.uint8], priority: NDArray[Any] | None, threads: int
) -> list[Outcome]:
    """What ``problem.evaluate`` says of many placements, without a look at their legality.

    Args:
        problem: What to judge by.
        device: Devices that every op's mask allows, ``[placements, ops] uint8``.
        priority: Of all of them, ``[ops]``; ``None``: by upward rank.
        threads: How many share the work.
    """
    if not problem.objective.simulated:
        return [problem.evaluate(Placement(row, priority)) for row in device]
    return [problem.judge(run) for run in problem.simulator.run_each(device, priority, threads=threads)]


def final_info(problem: PlacementProblem, outcome: Outcome, placement: Placement) -> dict[str, Any]:
    """What is said at the end, beside what is always said.

    Args:
        problem: Graph and cluster.
        outcome: Of the placement.
        placement: The whole one.
    """
    details = outcome.details
    if not problem.objective.simulated:  # the analytic objectives say nothing of the event simulator
        run = problem.simulate(placement)
        details = {"step_time_ns": run.makespan_ns, "peak_bytes": run.peak_bytes}
    return {
        "outcome": outcome,
        "step_time_ns": int(details["step_time_ns"]),
        "peak_bytes": np.array(details["peak_bytes"], np.int64),
        # A tuple, as Gymnasium's vector environments stack arrays, and graphs differ in length.
        "device": tuple(placement.device.tolist()),
    }
