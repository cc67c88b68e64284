"""What holds for every solver of placements on every kind of problem."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest

from opgym import agents
from opgym.agents.registry import LEARNED, family
from opgym.datasets import load
from opgym.errors import InvalidProblemError
from opgym.graphs import Cluster
from opgym.outcome import Outcome
from opgym.problems import Budget, Objective, Placement, PlacementProblem, Progress, SchedulingProblem

from .edge_cases import EDGE_CASES
from .exhaustive_placement import best_value

OBJECTIVES = [o.value for o in Objective]
DEFAULT = 150  # evaluations of the solvers that would go on
#: Learners take too long for every case; tests/agents/sb3 has theirs.
NAMES = [name for name in agents.names() if family(name) != LEARNED]
#: Their loops, or those of the search they start from, run in the core: they tell of progress, and ask the problem,
#: only between calls to it.
NATIVE = ("brkga", "idrs", "pair-annealing", "cp-sat")
APPLICABLE = [
    (name, objective)
    for name in NAMES
    for objective in OBJECTIVES
    if objective in agents.make(name).objectives
]


@dataclass(frozen=True, eq=False)
class Counted(PlacementProblem):
    """A problem that counts how often it is asked, whoever asks."""

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "asked", [])

    def evaluate(self, solution: Placement) -> Outcome:
        outcome = super().evaluate(solution)
        self.asked.append(outcome)  # type: ignore[attr-defined]
        return outcome


def counted(p: PlacementProblem) -> Counted:
    return Counted(p.graph, p.cluster, p.objective, p.costs, p.pipeline)


@cache
def optimum(case: str, objective: str) -> float:
    return best_value(EDGE_CASES[case](objective))


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("case", EDGE_CASES)
@pytest.mark.parametrize("name", NAMES)
def test_gives_a_legal_placement_no_better_than_the_optimum(name, case, objective):
    p = EDGE_CASES[case](objective)
    solver = agents.make(name)
    if (reason := solver.skip_reason(p)) is not None:
        with pytest.raises(InvalidProblemError, match=f"solver '{name}': "):
            solver.solve(p)
        assert reason
        return
    result = solver.solve(p, Budget(evaluations=DEFAULT))
    assert np.isfinite(result.outcome.value)  # legal: whatever breaks a rule has the value inf
    assert p.evaluate(result.solution) == result.outcome
    if result.outcome.ok:
        assert result.outcome.value >= p.lower_bound().value
        assert result.outcome.value >= optimum(case, objective)
    if result.proven_optimal and name.startswith("annealing"):
        assert result.outcome.value == optimum(case, objective)


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("case", [c for c in EDGE_CASES if c != "memory_nowhere"])
def test_annealing_finds_the_optimum_of_tiny_problems(case, objective):
    """Over device maps; for the simulated objectives with the orders that it tries."""
    p = EDGE_CASES[case](objective)
    result = agents.make("annealing").solve(p, Budget(evaluations=400), np.random.default_rng(1))
    assert result.outcome.ok
    if objective == "peak_memory":  # the best order may be none of those it tries
        assert result.outcome.value <= 1.2 * optimum(case, objective)
    else:
        assert result.outcome.value == optimum(case, objective)


@pytest.mark.parametrize("evaluations", [1, 2, 3, 10, 41])
@pytest.mark.parametrize(("name", "objective"), [a for a in APPLICABLE if a[1] in ("step_time", "max_load")])
def test_counts_every_evaluation_and_never_exceeds_the_budget(name, objective, evaluations):
    p = counted(EDGE_CASES["training_with_little_memory"](objective))
    solver = agents.make(name)
    seen: list[Progress] = []
    result = solver.solve(p, Budget(evaluations=evaluations), progress=seen.append)
    assert result.evaluations <= evaluations
    if solver.anytime and not result.proven_optimal:
        assert result.evaluations == evaluations
    assert result.curve[-1].value == result.outcome.value
    assert [c.evaluations for c in result.curve] == sorted({c.evaluations for c in result.curve})
    if name in NATIVE:
        assert seen[-1].evaluations == result.evaluations
        return
    assert result.evaluations == len(p.asked)
    assert [s.evaluations for s in seen] == list(range(1, result.evaluations + 1))
    best = None
    for outcome, progress in zip(p.asked, seen, strict=True):
        best = outcome if outcome.better_than(best) else best
        assert progress.best == best
    assert result.outcome == best


@pytest.mark.parametrize("name", NAMES)
def test_no_time_still_allows_one_evaluation(name):
    p = EDGE_CASES["disconnected"]("max_load" if name == "dp" else "step_time")
    result = agents.make(name).solve(p, Budget(seconds=0.0))
    assert result.evaluations == 1


@pytest.mark.parametrize("name", NAMES)
def test_no_evaluation_is_refused(name):
    p = EDGE_CASES["disconnected"]("max_load" if name == "dp" else "step_time")
    with pytest.raises(InvalidProblemError, match="evaluated nothing"):
        agents.make(name).solve(p, Budget(evaluations=0))


@pytest.mark.parametrize(("name", "objective"), APPLICABLE)
def test_the_same_seed_gives_the_same_result(name, objective):
    first, second = (
        agents.make(name).solve(
            EDGE_CASES["training"](objective), Budget(evaluations=60), np.random.default_rng(7)
        )
        for _ in range(2)
    )
    assert first.solution.device.tolist() == second.solution.device.tolist()
    assert first.outcome == second.outcome
    assert first.evaluations == second.evaluations
    assert [(c.evaluations, c.value) for c in first.curve] == [(c.evaluations, c.value) for c in second.curve]


@pytest.mark.parametrize(
    "name", [n for n in NAMES if n not in ("random", "annealing", "annealing-metis", *NATIVE)]
)
def test_solvers_without_chance_ignore_the_seed(name):
    p = EDGE_CASES["training"]("max_load" if name == "dp" else "step_time")
    results = [agents.make(name).solve(p, rng=np.random.default_rng(seed)) for seed in range(2)]
    assert results[0].solution.device.tolist() == results[1].solution.device.tolist()


@pytest.mark.parametrize("name", agents.names())
def test_says_what_it_is(name):
    solver = agents.make(name)
    assert solver.name == name
    assert solver.summary
    assert "\n" not in solver.summary
    assert type(solver).__doc__


@pytest.mark.parametrize("name", NAMES)
def test_a_problem_that_memory_allows_is_solved_within_memory(name):
    p = EDGE_CASES["memory_for_half"]("max_load" if name == "dp" else "step_time")
    outcome = agents.make(name).solve(p).outcome
    assert outcome.ok == (name != "single")


@pytest.mark.parametrize("name", sorted({*agents.names(), *agents.names(SchedulingProblem)}))
def test_a_problem_of_another_type_is_skipped(name):
    solver = agents.make(name)
    graph = load("example/rnn-train")
    for problem in (PlacementProblem(graph, Cluster.parse("2xP100")), SchedulingProblem(graph)):
        if not isinstance(problem, solver.problem_types):
            assert solver.skip_reason(problem) == f"does not solve a {type(problem).__name__}"
            with pytest.raises(InvalidProblemError, match="does not solve a"):
                solver.solve(problem)
