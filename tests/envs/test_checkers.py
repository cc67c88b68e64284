"""Both libraries' checkers, and random play, on every combination of decision, observation and picture."""

import warnings
from collections.abc import Iterable
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import opgym.envs
from opgym.datasets import example

from .instances import SHAPES, random_graph

#: Every environment, in every combination of what it decides and what it shows.
COMBINATIONS = [
    *(
        ("GraphPlacement-v0", {"mode": mode, "observation": observation})
        for mode in ("sequential", "one_shot", "refine")
        for observation in ("node", "dict", "graph")
        if (mode, observation) != ("one_shot", "node")
    ),
    *(
        ("OpScheduling-v0", {"action": action, "observation": observation})
        for action in ("slot", "op")
        for observation in ("node", "dict", "graph")
        if (action, observation) != ("op", "node")
    ),
]
CLUSTERS = {"GraphPlacement-v0": ("1xP100", "3xP100")}


def each(combinations: Iterable[tuple[str, dict[str, str]]]) -> pytest.MarkDecorator:
    rows = list(combinations)
    names = ["-".join((environment_id, *options.values())) for environment_id, options in rows]
    return pytest.mark.parametrize(("environment_id", "options"), rows, ids=names)


each_combination = each(COMBINATIONS)


def test_every_environment_is_combined() -> None:
    assert {environment_id for environment_id, _ in COMBINATIONS} == set(opgym.envs.ENTRY_POINTS)


def make(environment_id: str, options: dict[str, str], **more: Any) -> gymnasium.Env[Any, Any]:
    return gymnasium.make(environment_id, **{"graph": example.load("two-branch")} | options | more).unwrapped


@pytest.mark.parametrize("render_mode", [None, "rgb_array", "ansi"])
@each_combination
def test_gymnasium_checker(environment_id: str, options: dict[str, str], render_mode: str | None) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(make(environment_id, options, render_mode=render_mode))


@each(combination for combination in COMBINATIONS if combination[1]["observation"] != "graph")
def test_stable_baselines3_checker(environment_id: str, options: dict[str, str]) -> None:
    checker = pytest.importorskip("stable_baselines3.common.env_checker")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # Matrices are no vectors; a policy for them brings its own extractor.
        warnings.filterwarnings("ignore", message=".*unconventional shape.*")
        checker.check_env(make(environment_id, options))


@pytest.mark.parametrize("shape", SHAPES)
@each_combination
def test_gymnasium_checker_on_odd_graphs(environment_id: str, options: dict[str, str], shape: str) -> None:
    clusters = CLUSTERS.get(environment_id)
    for more in [{"cluster": cluster} for cluster in clusters] if clusters else [{}]:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            check_env(make(environment_id, options, graph=SHAPES[shape](), **more))


@pytest.mark.parametrize("seed", [0, 1])
@each_combination
def test_random_unmasked_actions(environment_id: str, options: dict[str, str], seed: int) -> None:
    more = {"cluster": "1xCPU+2xP100"} if environment_id in CLUSTERS else {}
    env = make(environment_id, options, graph=random_graph(seed), **more)
    env.action_space.seed(seed)
    seen, info = env.reset(seed=seed)
    for step in range(1_000):
        assert info["action_mask"].dtype == np.int8
        assert info["action_mask"].any()
        if (
            options["observation"] != "graph" or step % 25 == 0
        ):  # Gymnasium checks graphs node by node, slowly
            assert env.observation_space.contains(seen)
        seen, reward, terminated, truncated, info = env.step(env.action_space.sample())
        assert np.isfinite(reward)
        assert not truncated
        if terminated:
            seen, info = env.reset()
