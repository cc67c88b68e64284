"""One run of a comparison: an agent on a problem, judged; whatever it does, there is a row."""

from __future__ import annotations

import json
import traceback
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ...agents import Solver
from ...agents.learner import Learner
from ...errors import InvalidProblemError
from ...problems import Budget, Progress
from ..parallel import Died
from .cases import Case
from .contestants import Contestant
from .judging import Posed, feasible_points, judged, posed_case
from .result_tables import FAILED, NOT_APPLICABLE, NOTHING, OTHER_GRAPHS, THIS_GRAPH, UNKNOWN_GRAPHS

#: Raised when what a stored row holds changes its meaning: rows of other versions are measured anew.
ROW_VERSION = 2
_MOST_CHARACTERS = 500


@dataclass(frozen=True)
class Run:
    """One agent on one problem with one seed.

    Attributes:
        case: The problem.
        contestant: The agent.
        seed: Of its generator.
        budget: Most evaluations.
        seconds: Most seconds of wall time; ``None``: no limit, and then the result does not depend on the machine.
    """

    case: Case
    contestant: Contestant
    seed: int
    budget: int
    seconds: float | None

    @property
    def key(self) -> str:
        """What a stored row must share to stand for this run; part and role of a row decide nothing."""
        case = asdict(self.case)
        for what in ("part", "role"):
            del case["row"][what]
        return json.dumps(
            {
                "version": ROW_VERSION,
                "case": case,
                "agent": self.contestant.name,
                "options": self.contestant.digest,
                "seed": self.seed,
                "budget": self.budget,
                "seconds": self.seconds,
            },
            sort_keys=True,
        )

    @property
    def label(self) -> str:
        """What progress bars and messages call it."""
        return f"{self.contestant.name} on {self.case.row.name}, seed {self.seed}"


def measure(run: Run) -> dict[str, Any]:
    """Runs one agent once; whatever it does, there is a row.

    Returns:
        ``{run, result, curve, trace}``: the key of the run, the row of the table of results, the points of its curve
        as lists of evaluations, seconds and value, and the traceback of an error.
    """
    result = _unmeasured(run)
    curve: list[list[float]] = []
    trace = ""
    try:
        posed = posed_case(run.case)
        result |= {"unit": posed.unit, "bound": posed.bound, "reference": posed.reference}
        solver = run.contestant.make()
        result["trained_on"] = _trained_on(solver, posed.problem.graph.fingerprint)
        reason = solver.skip_reason(posed.problem)
        if reason is not None:
            result |= {"verdict": NOT_APPLICABLE, "error": _line(reason), "deterministic": True}
        else:
            _solve(run, solver, posed, result, curve)
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:  # also SystemExit: an agent may be third-party
        result |= _failure(f"{type(error).__name__}: {error}")
        trace = traceback.format_exc()
    return {"run": run.key, "result": result, "curve": curve, "trace": trace}


def _solve(
    run: Run, solver: Solver[Any, Any], posed: Posed, result: dict[str, Any], curve: list[list[float]]
) -> None:
    """Runs the agent, judges what it returns, and fills in its row."""
    rng = np.random.default_rng(run.seed)
    before = _state(rng)
    spent = 0

    def count(progress: Progress) -> None:
        nonlocal spent
        spent = progress.evaluations

    try:
        found = solver.solve(posed.problem, Budget(run.budget, run.seconds), rng, count)
    except InvalidProblemError as error:
        if spent:
            raise  # it did start, so the problem is not what is wrong
        result |= {"verdict": NOT_APPLICABLE, "error": _line(str(error)), "deterministic": True}
        return
    outcome = judged(posed, found, run.budget)
    value = float(outcome.value) if np.isfinite(outcome.value) else None
    peaks = outcome.details.get("peak_bytes")
    result |= {
        "value": value,
        "verdict": outcome.verdict.value,
        "evaluations": found.evaluations,
        "seconds": found.seconds,
        "peak_bytes": None if peaks is None else int(max(peaks)),
        "step_time_ns": outcome.details.get("step_time_ns"),
        "deterministic": _state(rng) == before,
    }
    if outcome.ok:
        for what in ("bound", "best_known", "reference"):
            result[f"ratio_to_{what}"] = _ratio(value, result[what])
    else:
        result["error"] = _line(str(outcome.details.get("reason", "")))
    curve += [[point.evaluations, point.seconds, point.value] for point in feasible_points(found.curve)]


def _trained_on(solver: Solver[Any, Any], fingerprint: str) -> str:
    """What an agent has learned from, seen from a graph."""
    if not isinstance(solver, Learner) or not solver.trained:
        return NOTHING
    if solver.trained_on is None:
        return UNKNOWN_GRAPHS
    return THIS_GRAPH if fingerprint in solver.trained_on else OTHER_GRAPHS


def _unmeasured(run: Run) -> dict[str, Any]:
    """The row of a run as far as it is known without running it."""
    case = run.case
    return {
        "suite": case.suite,
        "row": case.row.name,
        "graph": case.row.graph,
        "family": case.family,
        "twins": case.twins,
        "cluster": case.row.cluster,
        "objective": case.row.objective,
        "agent": run.contestant.name,
        "options": run.contestant.digest,
        "seed": run.seed,
        "budget": run.budget,
        "seconds_limit": None if run.seconds is None else float(run.seconds),
        "value": None,
        "unit": "",
        "verdict": FAILED,
        "bound": case.bound,
        "best_known": case.best_known,
        "reference": None,
        "ratio_to_bound": None,
        "ratio_to_best_known": None,
        "ratio_to_reference": None,
        "evaluations": None,
        "seconds": None,
        "peak_bytes": None,
        "step_time_ns": None,
        "trained_on": NOTHING,
        "deterministic": False,
        "error": "",
    }


def _failure(error: str) -> dict[str, Any]:
    nothing = ("value", "evaluations", "seconds", "peak_bytes", "step_time_ns", "ratio_to_bound",
               "ratio_to_best_known", "ratio_to_reference")  # fmt: skip
    return {
        "verdict": FAILED,
        "error": _line(error),
        "deterministic": False,
        **dict.fromkeys(nothing),
    }


def died(run: Run, how: Died) -> dict[str, Any]:
    """The row of a run whose process ended before it did."""
    result = _unmeasured(run) | _failure(how.reason)
    return {"run": run.key, "result": result, "curve": [], "trace": ""}


def _ratio(value: float | None, of: float | None) -> float | None:
    return value / of if value is not None and of else None


def _state(rng: np.random.Generator) -> str:
    """All that drawing from a generator, or spawning others from it, changes."""
    return f"{rng.bit_generator.state} {getattr(rng.bit_generator.seed_seq, 'n_children_spawned', 0)}"


def _line(text: str) -> str:
    """An error on one line, of a length that a table can show."""
    return " ".join(text.split())[:_MOST_CHARACTERS]
