"""Proves the best placement of a small problem, or a bound below it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ....graphs import Timeline
from ....problems import Evaluator, Objective, Placement, PlacementProblem
from ...heuristics import CriticalPath
from ...search.keys import PairAnnealing
from ...solver import Remark
from .engine import Engine, leave_one
from .gap import Gap, close_gap
from .placement_model import PlacementModel, horizon_ns, memory_may_bind

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

#: Beyond these hardly anything is proven.
MAX_OPS, MAX_PAIRS = 60, 240
_SCOPE = "the bound holds for any schedule"


def not_modelled(problem: PlacementProblem) -> str | None:
    """Why a problem has no model, or ``None``."""
    ops, devices = problem.graph.num_ops, len(problem.cluster)
    if ops > MAX_OPS or ops * devices > MAX_PAIRS:
        return f"{ops} ops on {devices} devices; at most {MAX_OPS} ops, and {MAX_PAIRS} ops times devices"
    if problem.objective is Objective.PEAK_MEMORY and problem.graph.in_place:
        return "peak memory of placements whose ops write in place is not modelled"
    return None


def prove_placement(
    problem: PlacementProblem,
    evaluator: Evaluator[Placement],
    rng: np.random.Generator,
    *,
    effort: float,
    workers: int,
    start_evaluations: int,
) -> Remark:
    """Searches from the best placement of ``pair-annealing`` down, and from the problem's bound up."""
    if evaluator.exhausted:
        return Remark()
    low = int(problem.lower_bound().value)
    CriticalPath()._search(problem, evaluator, rng)
    if not evaluator.exhausted:
        _anneal(problem, evaluator, rng, start_evaluations)

    by_memory = problem.objective is Objective.PEAK_MEMORY
    with_memory = by_memory or (memory_may_bind(problem) and not problem.graph.in_place)
    longest_ns = horizon_ns(problem)
    worst = int(problem.cluster.capacity_bytes.max()) if by_memory else longest_ns
    near = _near(problem, evaluator)
    outcome = evaluator.best_outcome
    assert outcome is not None
    gap = Gap(low, int(outcome.value) if outcome.ok else worst + 1)
    if gap.closed:
        return Remark("meets the graph's bound", proven_optimal=True)
    if evaluator.exhausted:
        return Remark("nothing was left for CP-SAT", bound=low)

    engine = Engine(evaluator, effort, workers, int(rng.integers(2**31)))
    limit_ns = longest_ns if by_memory else min(longest_ns, gap.high)
    model = PlacementModel(problem, engine.module, with_memory=with_memory, horizon_ns=limit_ns)

    def instance(gap: Gap, target: int, minimise: bool) -> cp_model.CpModel:
        return model.instance(gap.low, target, near, minimise=minimise)

    def see(values: Any) -> None:
        nonlocal near
        outcome = evaluator.evaluate(model.placement(values))
        if outcome.ok and outcome.value < gap.high:
            gap.high = int(outcome.value)
            near = _near(problem, evaluator)

    close_gap(gap, engine, evaluator, instance, see)
    best = evaluator.best_outcome
    if best is None or not best.ok:
        return Remark("proven: nothing fits" if gap.closed else "nothing that fits was found")
    note = (
        _SCOPE if with_memory or not memory_may_bind(problem) else f"{_SCOPE}, and without limits of memory"
    )
    return Remark(note, gap.closed, min(gap.low, gap.high))


def _anneal(
    problem: PlacementProblem, evaluator: Evaluator[Placement], rng: np.random.Generator, evaluations: int
) -> None:
    began = evaluator.seconds
    found = PairAnnealing().solve(problem, leave_one(evaluator, evaluations), rng)
    feasible = found.outcome.ok
    evaluator.account(
        found.evaluations, found.curve[-1:] if feasible else (), found.solution if feasible else None, began
    )


def _near(problem: PlacementProblem, evaluator: Evaluator[Placement]) -> tuple[Placement, Timeline] | None:
    """The best placement that fits, and its run."""
    if evaluator.best is None or evaluator.best_outcome is None or not evaluator.best_outcome.ok:
        return None
    timeline = problem.simulate(evaluator.best, timeline=True).timeline
    assert timeline is not None  # it was asked for
    return evaluator.best, timeline
