"""Learners as solvers: every episode is an evaluation, none more than the budget, and the best one is the result."""

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("stable_baselines3")

import torch

from opgym import agents
from opgym.agents.registry import LEARNED, family
from opgym.agents.sb3.base import SB3Learner
from opgym.errors import InvalidProblemError
from opgym.graphs import Cluster
from opgym.outcome import Outcome, Verdict
from opgym.problems import Budget, Objective, Placement, PlacementProblem, Progress, program_order
from opgym.problems.checker import check

from ...envs.instances import mixed_support
from ..edge_cases import EDGE_CASES
from .problems import placement, scheduling

NAMES = ("ppo", "maskable-ppo", "a2c", "dqn")
#: Small enough for several updates within a budget of a few episodes.
QUICK: dict[str, dict[str, Any]] = {
    "ppo": {"n_steps": 8, "batch_size": 16, "n_epochs": 2, "num_envs": 4, "net_arch": (16,)},
    "maskable-ppo": {"n_steps": 8, "batch_size": 16, "n_epochs": 2, "num_envs": 4, "net_arch": (16,)},
    "a2c": {"n_steps": 4, "num_envs": 4, "net_arch": (16,)},
    "dqn": {"learning_starts": 20, "buffer_size": 200, "batch_size": 16, "num_envs": 4, "net_arch": (16,)},
}
PROBLEMS = {"placement": placement, "scheduling": scheduling}


def quick(name: str, **options: Any) -> Any:
    return agents.make(name, **{**QUICK[name], **options})


def solve(name: str, problem: Any, evaluations: int | None = 30, seed: int = 0, **options: Any) -> Any:
    return quick(name, **options).solve(problem, Budget(evaluations=evaluations), np.random.default_rng(seed))


def test_all_are_known():
    learned = {name for name in agents.names() if family(name) == LEARNED}
    assert {name for name in learned if isinstance(agents.make(name), SB3Learner)} == set(NAMES)


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("name", NAMES)
def test_the_best_episode_is_the_solution_and_every_one_counts(name, problem):
    problem, told = PROBLEMS[problem](), list[Progress]()
    result = quick(name).solve(problem, Budget(evaluations=30), np.random.default_rng(1), told.append)
    assert result.solver == name
    assert result.evaluations == 30
    assert [p.evaluations for p in told] == list(range(1, 31))
    assert problem.evaluate(result.solution) == result.outcome
    assert check(problem, result.solution).value == result.outcome.value
    assert result.curve[-1].value == result.outcome.value
    values = [point.value for point in result.curve]
    assert values == sorted(values, reverse=True)
    assert "updates" in result.note
    assert "in 0 updates" not in result.note


@pytest.mark.parametrize("name", NAMES)
def test_the_same_seed_gives_the_same_result(name):
    results = [solve(name, scheduling(), seed=seed) for seed in (4, 4, 5)]
    curves = [[(point.evaluations, point.value) for point in result.curve] for result in results]
    assert results[0].solution.op.tolist() == results[1].solution.op.tolist()
    assert curves[0] == curves[1]
    assert curves[0] != curves[2]


@pytest.mark.parametrize("evaluations", [1, 2, 3, 5, 9])
def test_a_budget_that_ends_among_episodes_side_by_side(evaluations):
    """With four at a time, some end in the same step as the last that counts."""
    result = solve("maskable-ppo", placement(), evaluations)
    assert result.evaluations == evaluations
    assert result.curve[-1].evaluations <= evaluations


@dataclass(frozen=True, eq=False)
class Noted(PlacementProblem):
    """Notes what single environments judge."""

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "judged", [])

    def evaluate(self, solution: Placement) -> Outcome:
        outcome = super().evaluate(solution)
        self.judged.append((outcome, np.array(solution.device)))  # type: ignore[attr-defined]
        return outcome


@pytest.mark.parametrize("initial", ["single", "random"])
def test_in_refine_every_placement_that_is_judged_counts(initial):
    problem = Noted(placement().graph, placement().cluster)
    told = list[Progress]()
    learner = quick(
        "maskable-ppo", environment={"mode": "refine", "initial": initial, "steps": 5}, num_envs=1
    )
    result = learner.solve(problem, Budget(evaluations=40), np.random.default_rng(0), told.append)
    assert result.evaluations == 40
    best = None
    bests = []
    for outcome, device in problem.judged:  # type: ignore[attr-defined]
        if best is not None and np.array_equal(device, result.solution.device) and outcome == best:
            continue  # a new best is judged once more to be sure, which does not count
        best = outcome if outcome.better_than(best) else best
        bests.append(best.value)
    assert result.outcome.value == best.value
    assert [p.best.value for p in told][-1] == best.value
    # What was judged beyond the count: each new best once more, and the last move of all.
    assert len(problem.judged) - len(result.curve) - 40 in (0, 1)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("policy", "environment"),
    [
        ("dict", {"mode": "one_shot"}), ("dict", {"mode": "refine"}), ("dict", {}),
        ("node", {"groups": "metis:4", "reward": "dense"}), ("node", {"order": "program"}),
    ],
)  # fmt: skip
def test_options_of_the_environment(policy, environment):
    problem = placement()
    result = solve("maskable-ppo", problem, 12, policy=policy, environment=environment, graph_width=8)
    assert result.evaluations == 12
    assert problem.evaluate(result.solution) == result.outcome
    by_program = environment.get("order") == "program"
    expected = program_order(problem.graph) if by_program else None
    assert (
        np.array_equal(result.solution.priority, expected) if by_program else result.solution.priority is None
    )


@pytest.mark.parametrize("objective", Objective)
def test_every_objective(objective):
    problem = PlacementProblem(placement().graph, placement().cluster, objective)
    result = solve("ppo", problem, 10)
    assert problem.evaluate(result.solution) == result.outcome
    assert result.outcome.unit == objective.unit


def test_a_placement_that_fits_is_better_than_any_that_does_not():
    problem = EDGE_CASES["memory_for_half"]("step_time")
    assert not agents.make("single").solve(problem).outcome.ok
    told = list[Progress]()
    result = quick("maskable-ppo").solve(problem, Budget(evaluations=40), progress=told.append)
    assert problem.evaluate(result.solution) == result.outcome
    assert result.outcome.ok
    keys = [p.best.sort_key for p in told]
    assert keys == sorted(keys, reverse=True)


def test_where_nothing_fits_the_least_overflow_wins():
    problem = EDGE_CASES["memory_nowhere"]("step_time")
    result = solve("maskable-ppo", problem, 12)
    assert result.outcome.verdict is Verdict.OUT_OF_MEMORY
    assert problem.evaluate(result.solution) == result.outcome


def test_time_ends_the_search_but_for_the_first_episode():
    result = quick("ppo").solve(placement(), Budget(seconds=0.0))
    assert result.evaluations == 1


def test_time_ends_the_search_when_the_clock_says_so(monkeypatch):
    """A clock that goes on by a second with each episode: no episode starts when the last second is over."""
    told = list[Progress]()
    monkeypatch.setattr("opgym.problems.budget.time", SimpleNamespace(perf_counter=lambda: float(len(told))))
    result = quick("ppo").solve(placement(), Budget(evaluations=50, seconds=13.0), progress=told.append)
    assert result.evaluations == len(told) == 13


def test_no_evaluation_is_refused():
    with pytest.raises(InvalidProblemError, match="evaluated nothing"):
        solve("ppo", placement(), 0)


def test_without_a_budget_it_has_its_own():
    assert quick("a2c", evaluations=7).solve(placement()).evaluations == 7


class Illegal:
    """Sums what is logged of illegal actions."""

    latest = None

    def __init__(self) -> None:
        self.actions = 0.0

    def log(self, steps, metrics):
        self.actions += metrics["charts/illegal_actions"]

    def checkpoint(self, steps, write, *, last=False):
        pass


@pytest.mark.parametrize("name", NAMES)
def test_only_masked_learners_never_act_illegally(name):
    problem = PlacementProblem(mixed_support(), Cluster.parse("1xCPU+1xP100"))
    monitor = Illegal()
    quick(name).fit([problem], steps=400, monitor=monitor)
    assert (monitor.actions == 0) == (name == "maskable-ppo")


@pytest.mark.parametrize("name", NAMES)
def test_trained_it_plays_the_likely_then_the_sampled(name):
    problem = placement()
    trained = quick(name, samples=6).fit([problem], steps=200, seed=1)
    assert trained.trained
    results = [trained.solve(problem, Budget(evaluations=n), np.random.default_rng(s)) for n, s in
               ((1, 0), (1, 1), (9, 0), (9, 0))]  # fmt: skip
    assert [r.evaluations for r in results] == [1, 1, 9, 9]
    assert (
        results[0].solution.device.tolist() == results[1].solution.device.tolist()
    )  # no chance in the first
    assert results[2].curve[0].value == results[0].outcome.value
    assert [p.value for p in results[2].curve] == [p.value for p in results[3].curve]
    assert all(problem.evaluate(r.solution) == r.outcome for r in results)
    assert trained.solve(problem).evaluations == 6
    assert trained.solve(problem, Budget(seconds=0.0)).evaluations == 1


def test_sampled_episodes_differ():
    problem = placement()
    for name in NAMES:
        told = list[Progress]()
        trained = quick(name).fit([problem], steps=40)
        trained.solve(problem, Budget(evaluations=40), progress=told.append)
        assert len({p.best.value for p in told}) > 1, name


def test_solving_leaves_the_process_as_it_was():
    threads = torch.get_num_threads()
    torch.manual_seed(3)
    np.random.seed(3)  # noqa: NPY002
    expected = torch.rand(1), np.random.rand()  # noqa: NPY002
    torch.manual_seed(3)
    np.random.seed(3)  # noqa: NPY002
    trained = quick("ppo").fit([placement()], steps=64)
    trained.solve(placement(), Budget(evaluations=3))
    solve("dqn", placement(), 5)
    assert (torch.rand(1), np.random.rand()) == expected  # noqa: NPY002
    assert torch.get_num_threads() == threads
    assert not torch.are_deterministic_algorithms_enabled()


@pytest.mark.parametrize(
    ("name", "steps", "options"),
    [
        ("ppo", 3_000, {"n_steps": 32, "batch_size": 64, "n_epochs": 6}),
        ("maskable-ppo", 3_000, {"n_steps": 32, "batch_size": 64, "n_epochs": 6}),
        ("a2c", 6_000, {"n_steps": 16}),
        ("dqn", 4_000, {"learning_starts": 500, "buffer_size": 4_000, "batch_size": 32, "target_update_interval": 200}),
    ],
)  # fmt: skip
def test_learns(name, steps, options):
    """The most likely actions of a trained policy are better than 19 of 20 random placements."""
    problem = placement()
    learner = agents.make(name, learning_rate=3e-3, net_arch=(32,), num_envs=8, **options)
    trained = learner.fit([problem], steps=steps, seed=0)
    learned = trained.solve(problem, Budget(evaluations=1)).outcome.value
    rng = np.random.default_rng(0)
    ops = problem.graph.num_ops
    random = [problem.evaluate(Placement(rng.integers(2, size=ops))).value for _ in range(400)]
    assert learned < np.quantile(random, 0.05)
