"""One run of ``opgym reproduce gdp``: a method on a row with a seed, judged by code that it did not run."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from ....agents import Learner
from ....agents.networks.learner import NetworkLearner
from ....agents.networks.packages import require_packages
from ....problems import Budget, CurvePoint, PlacementProblem
from ...evaluate.judging import judged, posed_case
from ...evaluate.result_tables import NOT_APPLICABLE
from ...parallel import Died, as_they_finish
from .methods import Method
from .store import identity
from .workloads import Workload

_STATUS = Path("/proc/self/status")
_PEAK = re.compile(r"VmHWM:\s+(\d+) kB")


@dataclass(frozen=True)
class Job:
    """A method on a row."""

    workload: Workload
    method: Method
    seed: int

    @property
    def key(self) -> str:
        """What its row is found by."""
        return identity(self.workload, self.method, self.seed)

    @property
    def label(self) -> str:
        """What progress bars and messages call it."""
        return f"{self.method.name} on {self.workload.label}, seed {self.seed}"


def measure(job: Job) -> dict[str, Any] | Died:
    """Runs a method, with a network in a process of its own: memory is that of the run, and of nothing before it.

    Returns:
        The row, see :func:`measured_here`; or that the process died, by lack of memory most likely.
    """
    if not job.method.learned:
        return measured_here(job)
    [(_, row)] = as_they_finish(measured_alone, [job], workers=2)
    return row


def measured_alone(job: Job) -> dict[str, Any]:
    """Runs a method in a process that has run nothing else."""
    return measured_here(job) | {"peak_bytes": peak_bytes()}


def measured_here(job: Job) -> dict[str, Any]:
    """Runs a method.

    Returns:
        ``{key, row, method, seed, ops, evaluations, seconds, peak_bytes, curve, verdict, note, weights, seen}``:
        the curve is a list of evaluations, seconds and nanoseconds of a step, ``None`` where it does not fit; seen
        is whether what comes trained has learned from this graph.

    Raises:
        MisreportedError: What a solver says of its solution is not so.
    """
    assert job.method.contestant is not None
    posed, solver = posed_case(job.workload.case), job.method.contestant.make()
    problem = posed.problem
    assert isinstance(problem, PlacementProblem)
    trained_on = solver.trained_on if isinstance(solver, Learner) and solver.trained else None
    row: dict[str, Any] = {
        "key": job.key,
        "row": job.workload.name,
        "method": job.method.name,
        "seed": job.seed,
        "ops": problem.graph.num_ops,
        "evaluations": 0,
        "seconds": 0.0,
        "peak_bytes": None,
        "curve": [],
        "verdict": NOT_APPLICABLE,
        "note": "",
        "weights": job.method.weights,
        "seen": trained_on is not None and problem.graph.fingerprint in trained_on,
    }
    reason = solver.skip_reason(problem)
    if reason is not None:
        return row | {"note": reason}
    if isinstance(solver, NetworkLearner):
        require_packages(solver.name, solver.packages)
        for package in solver.packages:
            import_module(package)  # what a process does once is on nobody's clock
    budget = Budget(evaluations=job.method.evaluations)
    found = solver.solve(problem, budget, np.random.default_rng(job.seed))
    spent = found.evaluations
    outcome = judged(posed, found, spent if budget.evaluations is None else budget.evaluations)
    return row | {
        "evaluations": spent,
        "seconds": round(found.seconds, 3),
        "curve": _plain(found.curve),
        "verdict": outcome.verdict.value,
        "note": found.note,
    }


def _plain(curve: Sequence[CurvePoint]) -> list[list[float | None]]:
    """A curve as JSON data: of what does not fit the first point alone, as one is no better than another."""
    known = [point for i, point in enumerate(curve) if point.feasible or i == 0]
    return [
        [point.evaluations, round(point.seconds, 3), float(point.value) if point.feasible else None]
        for point in known
    ]


def peak_bytes() -> int:
    """The most memory that this process ever held.

    Where the system tells it by process, that is taken: what ``getrusage`` says may be of the parent, before it started
    this one.
    """
    if _STATUS.is_file() and (found := _PEAK.search(_STATUS.read_text())) is not None:
        return 1024 * int(found[1])
    from resource import RUSAGE_SELF, getrusage

    peak = getrusage(RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak
