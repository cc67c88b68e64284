"""Both libraries' checkers, and random play, on every combination of game, observation and picture."""

import warnings
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from opgym.datasets import example

from .instances import SHAPES, random_graph

COMBINATIONS = [
    (mode, observation)
    for mode in ("sequential", "one_shot", "refine")
    for observation in ("node", "dict", "graph")
    if (mode, observation) != ("one_shot", "node")
]


def make(mode: str, observation: str, **options: Any) -> gymnasium.Env[Any, Any]:
    options = {"graph": example.load("two-branch")} | options
    return gymnasium.make("GraphPlacement-v0", mode=mode, observation=observation, **options).unwrapped


@pytest.mark.parametrize("render_mode", [None, "rgb_array", "ansi"])
@pytest.mark.parametrize(("mode", "observation"), COMBINATIONS)
def test_gymnasium_checker(mode: str, observation: str, render_mode: str | None) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(make(mode, observation, render_mode=render_mode))


@pytest.mark.parametrize(("mode", "observation"), [c for c in COMBINATIONS if c[1] != "graph"])
def test_stable_baselines3_checker(mode: str, observation: str) -> None:
    checker = pytest.importorskip("stable_baselines3.common.env_checker")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # Matrices are no vectors; a policy for them brings its own extractor.
        warnings.filterwarnings("ignore", message=".*unconventional shape.*")
        checker.check_env(make(mode, observation))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("mode", "observation"), COMBINATIONS)
def test_gymnasium_checker_on_odd_graphs(mode: str, observation: str, shape: str) -> None:
    for cluster in ("1xP100", "3xP100"):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            check_env(make(mode, observation, graph=SHAPES[shape](), cluster=cluster))


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(("mode", "observation"), COMBINATIONS)
def test_random_unmasked_actions(mode: str, observation: str, seed: int) -> None:
    env = make(mode, observation, graph=random_graph(seed), cluster="1xCPU+2xP100")
    env.action_space.seed(seed)
    seen, info = env.reset(seed=seed)
    for step in range(1_000):
        assert info["action_mask"].dtype == np.int8
        assert info["action_mask"].any()
        if observation != "graph" or step % 25 == 0:  # Gymnasium checks graphs node by node, slowly
            assert env.observation_space.contains(seen)
        seen, reward, terminated, truncated, info = env.step(env.action_space.sample())
        assert np.isfinite(reward)
        assert not truncated
        if terminated:
            seen, info = env.reset()
