"""The same seed gives the same bytes in one process, in two, and under 1 or 4 workers (CASES 17)."""

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest

from opgym.datasets import example
from opgym.envs import ENTRY_POINTS

from .instances import random_graph

GAMES = [
    ("GraphPlacement-v0", {"mode": "sequential", "observation": "node", "groups": "metis:20"}),
    (
        "GraphPlacement-v0",
        {"mode": "refine", "observation": "node", "groups": "metis:20", "initial": "random"},
    ),
    ("GraphPlacement-v0", {"mode": "one_shot", "observation": "dict", "groups": "metis:20"}),
    ("OpScheduling-v0", {"action": "slot", "observation": "node"}),
    ("OpScheduling-v0", {"action": "op", "observation": "dict"}),
]

PROGRAM = """
import hashlib, sys
import gymnasium, numpy as np, opgym

def digest_of_play(environment_id, options, seed, episodes=3):
    digest = hashlib.sha256()
    env = gymnasium.make(environment_id, **options)
    env.action_space.seed(seed)
    seen, info = env.reset(seed=seed)
    for _ in range(episodes):
        over, reward = False, 0.0
        while not over:
            for array in seen.values() if isinstance(seen, dict) else [seen]:
                digest.update(array.tobytes())
            digest.update(repr((reward, info["action_mask"].tolist())).encode())
            seen, reward, over, _, info = env.step(env.action_space.sample())
        solution = info["device"] if "device" in info else info["order"]
        digest.update(repr((reward, info["outcome"].value, solution)).encode())
        seen, info = env.reset()
    return digest.hexdigest()
"""

_module: dict[str, Any] = {}
exec(PROGRAM, _module)
digest_of_play = _module["digest_of_play"]


@pytest.mark.parametrize(
    ("environment_id", "options"), GAMES, ids=["-".join((i, *o.values())) for i, o in GAMES]
)
def test_two_processes_play_alike(environment_id: str, options: dict[str, str]) -> None:
    here = digest_of_play(environment_id, options, 7)
    assert here == digest_of_play(environment_id, options, 7)
    assert here != digest_of_play(environment_id, options, 8)
    program = PROGRAM + f"print(digest_of_play({environment_id!r}, {options!r}, 7))"
    for hash_seed in ("0", "12345"):
        environment = os.environ | {"PYTHONHASHSEED": hash_seed}
        there = subprocess.run(
            [sys.executable, "-c", program],
            env=environment,
            check=True,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert there.stdout.strip() == here


#: One game of every environment; where its start can be random, it is.
INSTANCES: dict[str, Callable[[], dict[str, Any]]] = {
    "GraphPlacement-v0": lambda: {"graph": example.load("two-branch"), "mode": "refine", "initial": "random"},
    "OpScheduling-v0": lambda: {"graph": random_graph(0)},
}


def maker(environment_id: str, **options: Any) -> Callable[[], gymnasium.Env[Any, Any]]:
    return lambda: gymnasium.make(environment_id, **options)


def test_every_environment_has_an_instance() -> None:
    assert set(INSTANCES) == {environment_id for environment_id, _ in GAMES} == set(ENTRY_POINTS)


def trajectories(vector: gymnasium.vector.VectorEnv[Any, Any, Any], actions: np.ndarray) -> list[list[bytes]]:
    """What each sub-environment showed and paid, step by step."""
    seen, _ = vector.reset(seed=[10 + i for i in range(vector.num_envs)])
    rows = [[seen[i].tobytes()] for i in range(vector.num_envs)]
    for step in range(actions.shape[1]):
        seen, reward, terminated, truncated, _ = vector.step(actions[: vector.num_envs, step])
        for i, row in enumerate(rows):
            row += [seen[i].tobytes(), reward[i].tobytes(), terminated[i].tobytes(), truncated[i].tobytes()]
    vector.close()
    return rows


@pytest.mark.parametrize("workers", [1, 4])
@pytest.mark.parametrize("environment_id", INSTANCES)
def test_vector_environments_play_alike(environment_id: str, workers: int) -> None:
    make = maker(environment_id, **INSTANCES[environment_id]())
    actions = np.random.default_rng(0).integers(
        2, size=(4, 40)
    )  # past the end of an episode: resets included
    expected = [trajectories(gymnasium.vector.SyncVectorEnv([make]), actions)[0]]
    for kind in (gymnasium.vector.SyncVectorEnv, gymnasium.vector.AsyncVectorEnv):
        rows = trajectories(kind([make] * workers), actions)
        assert rows[0] == expected[0]
        assert len({hashlib.sha256(b"".join(row)).hexdigest() for row in rows}) == workers


@pytest.mark.parametrize("observation", ["dict", "graph"])
@pytest.mark.parametrize("environment_id", INSTANCES)
def test_async_equals_sync_for_whole_graphs(environment_id: str, observation: str) -> None:
    whole = maker(environment_id, graph=example.load("two-branch"), observation=observation)
    shared = {"shared_memory": False} if observation == "graph" else {}
    one = gymnasium.vector.SyncVectorEnv([whole] * 2)
    two = gymnasium.vector.AsyncVectorEnv([whole] * 2, **shared)
    one.reset(seed=0), two.reset(seed=0)
    for _ in range(5):
        action = np.array([0, 1])
        a, b = one.step(action), two.step(action)
        assert np.array_equal(a[1], b[1])
        if observation == "dict":
            assert all(np.array_equal(a[0][key], b[0][key]) for key in a[0])
        else:
            for x, y in zip(a[0], b[0], strict=True):
                assert all(np.array_equal(p, q) for p, q in zip(x, y, strict=True))
    one.close(), two.close()
