"""fork() and restore(): independent copies of the state, for tree search."""

import copy
import pickle

import numpy as np
import pytest
from gymnasium.utils.env_checker import data_equivalence

from opgym.datasets import example
from opgym.envs import GraphPlacementEnv
from opgym.errors import InvalidSolutionError

from .instances import random_graph

GAMES = [("sequential", "node"), ("sequential", "dict"), ("refine", "node"), ("one_shot", "dict")]


@pytest.mark.parametrize("reward", ["terminal", "dense"])
@pytest.mark.parametrize(("mode", "observation"), GAMES)
def test_restored_state_replays(mode: str, observation: str, reward: str) -> None:
    def make() -> GraphPlacementEnv:
        return GraphPlacementEnv(
            random_graph(0), cluster="3xP100", mode=mode, observation=observation, reward=reward
        )

    env = make()
    env.action_space.seed(0)
    seen, info = env.reset(seed=0)
    past = [env.action_space.sample() for _ in range(0 if mode == "one_shot" else 10)]
    for action in past:
        seen, _, _, _, info = env.step(action)
    state = env.fork()
    values = set()
    for _ in range(4):  # each time another future, then back
        future = [
            env.action_space.sample() for _ in range(1 if mode == "one_shot" else env.num_groups - len(past))
        ]
        assert data_equivalence(env.restore(state), (seen, info), exact=True)
        steps = [env.step(action) for action in future]
        fresh = make()
        fresh.reset(seed=0)
        expected = [fresh.step(action) for action in (*past, *future)][len(past) :]
        assert steps[-1][2]
        assert data_equivalence(steps, expected, exact=True)
        estimate, other = env.fork().estimate, fresh.fork().estimate
        assert (estimate.live_bytes, estimate.peak_bytes) == (other.live_bytes, other.peak_bytes)
        values.add(steps[-1][4]["outcome"].value)
    assert len(values) > 1


def test_fork_of_the_end() -> None:
    env = GraphPlacementEnv(random_graph(0), mode="refine", steps=1)
    env.reset(seed=0)
    step = env.step(1)
    state = env.fork()
    env.reset(seed=1)
    seen, info = env.restore(state)
    assert data_equivalence((seen, info), (step[0], step[4]), exact=True)
    with pytest.warns(UserWarning, match="after the end"):
        assert env.step(0)[2]


def test_restore_without_reset_in_an_equal_environment() -> None:
    env, other = GraphPlacementEnv(random_graph(0)), GraphPlacementEnv(random_graph(0))
    env.reset()
    env.step(1)
    state = pickle.loads(pickle.dumps(env.fork()))
    other.restore(state)
    assert data_equivalence(env.step(1), other.step(1), exact=True)


def test_state_of_another_problem_is_refused() -> None:
    env, other = GraphPlacementEnv(random_graph(0)), GraphPlacementEnv(example.load("two-branch"))
    env.reset()
    with pytest.raises(
        InvalidSolutionError, match=r"about \d+ groups on 2 devices; this environment has 16 on 2"
    ):
        other.restore(env.fork())


@pytest.mark.parametrize("mode", ["sequential", "one_shot", "refine"])
def test_state_at_the_start_is_of_its_own_problem_and_mode_alone(mode: str) -> None:
    """Before anything is decided, when sizes alone tell nothing apart."""
    graph = random_graph(0)
    env = GraphPlacementEnv(graph, mode=mode)
    env.reset()
    state = env.fork()
    others = [{"cluster": "2xV100"}, {"objective": "peak_memory"}]
    for options in others:
        with pytest.raises(InvalidSolutionError, match="about other groups, costs or devices"):
            GraphPlacementEnv(graph, mode=mode, **options).restore(state)
    for other in {"sequential", "one_shot", "refine"} - {mode}:
        with pytest.raises(
            InvalidSolutionError, match=f"of mode '{mode}'; that of this environment is '{other}'"
        ):
            GraphPlacementEnv(graph, mode=other).restore(state)
    GraphPlacementEnv(random_graph(0), mode=mode).restore(pickle.loads(pickle.dumps(state)))


@pytest.mark.parametrize("state", [None, 3, {"device": []}])
def test_what_is_no_state(state: object) -> None:
    with pytest.raises(InvalidSolutionError, match=r"the state is .*; expected what fork\(\) gives"):
        GraphPlacementEnv(random_graph(0)).restore(state)  # type: ignore[arg-type]


def test_copies_are_independent() -> None:
    env = GraphPlacementEnv(random_graph(0))
    env.reset(seed=0)
    env.step(1)
    twin = copy.deepcopy(env)
    before = env.device
    twin.step(1), twin.step(1)
    assert np.array_equal(env.device, before)
    assert data_equivalence(env.step(0), env_at_step_two(), exact=True)


def env_at_step_two() -> tuple[object, ...]:
    env = GraphPlacementEnv(random_graph(0))
    env.reset(seed=0)
    env.step(1)
    return env.step(0)
