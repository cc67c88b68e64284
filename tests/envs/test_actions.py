"""Any action at any time: never an exception, never a corrupt state (CASES 14 and 15)."""

from typing import Any

import numpy as np
import pytest
from gymnasium.utils.env_checker import data_equivalence

from opgym.envs import GraphPlacementEnv
from opgym.envs.actions import read_choice, read_choices

from .instances import mixed_support, play, random_graph

#: What a number of devices, n = 2, makes legal, and what it does not.
LEGAL = [0, 1, np.int64(1), np.uint8(0), np.array(1), np.array([1]), np.array([[0]])]
ILLEGAL = [
    -1, 2, 2.0, 1.0, np.float32(1), np.int64(7), None, "1", True, np.array([3]), np.array([0, 1]), [1], 2**70,
    float("nan"), np.array([]),
]  # fmt: skip


@pytest.mark.parametrize("mode", ["sequential", "refine"])
@pytest.mark.parametrize("action", ILLEGAL, ids=repr)
def test_illegal_action_takes_the_lowest_allowed_device(mode: str, action: Any) -> None:
    env, twin = (GraphPlacementEnv(random_graph(0), mode=mode) for _ in range(2))
    env.reset(seed=0), twin.reset(seed=0)
    observation, reward, terminated, truncated, info = env.step(action)
    expected = twin.step(0)
    assert info["illegal_actions"] == 1
    assert expected[4]["illegal_actions"] == 0
    assert data_equivalence(observation, expected[0], exact=True)
    assert (reward, terminated, truncated) == (expected[1], False, False)
    assert np.array_equal(env.device, twin.device)


@pytest.mark.parametrize("action", LEGAL, ids=repr)
def test_integers_of_any_kind_are_legal(action: Any) -> None:
    env = GraphPlacementEnv(random_graph(0))
    env.reset()
    info = env.step(action)[4]
    assert info["illegal_actions"] == 0
    assert env.device[env.groups == 0].tolist() == [int(np.ravel(action)[0])] * int((env.groups == 0).sum())


def test_masked_device_is_replaced() -> None:
    # devices: CPU, P100; op 1 may not run on a CPU, op 3 not on a GPU
    env = GraphPlacementEnv(mixed_support(), cluster="1xCPU+1xP100")
    _, info = play(env, lambda observation, info: 0)
    assert list(info["device"]) == [0, 1, 0, 0, 0]
    assert info["illegal_actions"] == 1
    assert info["outcome"].ok


def test_illegal_entries_of_a_vector_count_one_by_one() -> None:
    env = GraphPlacementEnv(mixed_support(), cluster="1xCPU+1xP100", mode="one_shot")
    env.reset()
    info = env.step([1, 0, None, 1, 5])[4]
    assert list(info["device"]) == [1, 1, 0, 0, 0]
    assert info["illegal_actions"] == 4


NO_VECTORS = [-1, 2.0, None, np.int64(1), np.array([3]), [0], np.zeros((5, 1), int), "abcde"]


@pytest.mark.parametrize("action", NO_VECTORS, ids=repr)
def test_vector_of_another_kind_is_illegal_throughout(action: Any) -> None:
    env = GraphPlacementEnv(mixed_support(), cluster="1xCPU+1xP100", mode="one_shot")
    env.reset()
    _, _, terminated, _, info = env.step(action)
    assert terminated
    assert list(info["device"]) == [0, 1, 0, 0, 0]
    assert info["illegal_actions"] == 5


@pytest.mark.parametrize("mode", ["sequential", "one_shot", "refine"])
@pytest.mark.parametrize("action", [-1, 2, 2.0, np.int64(0), np.array([3]), None, [0, 1]], ids=repr)
def test_step_after_the_end_changes_nothing(mode: str, action: Any) -> None:
    env = GraphPlacementEnv(random_graph(1, ops=6), mode=mode)
    last = env.reset(seed=0)[0]
    terminated = False
    while not terminated:
        last, _, terminated, _, info = env.step(env.action_space.sample())
    with pytest.warns(UserWarning, match="after the end"):
        observation, reward, terminated, truncated, again = env.step(action)
    assert (reward, terminated, truncated) == (0.0, True, False)
    assert data_equivalence(observation, last, exact=True)
    assert data_equivalence(again, info, exact=True)
    assert env.reset(seed=0)[1]["illegal_actions"] == 0


@pytest.mark.parametrize("mode", ["sequential", "one_shot", "refine"])
def test_masks_describe_the_current_state(mode: str) -> None:
    env = GraphPlacementEnv(mixed_support(), cluster="1xCPU+1xP100", mode=mode)
    by_group = [[1, 1], [0, 1], [1, 1], [1, 0], [1, 1]]
    _, info = env.reset(seed=0)
    steps = 1 if mode == "one_shot" else 5
    for step in range(steps):
        expected = np.ravel(by_group) if mode == "one_shot" else by_group[step]
        assert info["action_mask"].tolist() == list(expected)
        assert info["action_mask"].dtype == np.int8
        assert env.action_masks().dtype == np.bool_
        assert np.array_equal(env.action_masks(), info["action_mask"])
        info["action_mask"][:] = 0  # the caller's copy
        action = np.ones(5, int) if mode == "one_shot" else int(by_group[step][1])
        info = env.step(action)[4]
    assert info["action_mask"].all()  # after the end every action is alike
    assert len(info["action_mask"]) == len(np.ravel(by_group) if mode == "one_shot" else by_group[0])


def test_masked_samples_are_legal() -> None:
    env = GraphPlacementEnv(mixed_support(), cluster="1xCPU+2xP100")
    env.action_space.seed(0)
    for _ in range(20):
        _, info = play(env, lambda observation, info: env.action_space.sample(info["action_mask"]))
        assert info["illegal_actions"] == 0


def test_readers() -> None:
    assert [read_choice(a) for a in LEGAL] == [0, 1, 1, 0, 1, 1, 0]
    assert read_choice(-1) == -1  # an integer; whether it is a device is the environment's business
    assert all(read_choice(a) is None for a in (2.0, None, "1", True, np.array([0, 1]), [1], np.array([])))
    assert read_choices(np.array([1, 0]), 2) == [1, 0]
    assert read_choices((1, 2.0), 2) == [1, None]
    assert read_choices(np.array([1.0, 0.0]), 2) == [None, None]
    assert read_choices(np.array([1, 0]), 3) == [None] * 3
    assert read_choices("ab", 2) == [None, None]
