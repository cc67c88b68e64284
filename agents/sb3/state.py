"""Everything that the rest of a training depends on, taken and put back at the end of an update."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.buffers import ReplayBuffer

from ...envs.generators import generator_of, words_of
from ...errors import OpgymError
from ..networks.isolation import random_state, set_random_state
from .vec_env import GymnasiumVecEnv

#: Counters of algorithms, as SB3 names them; not all have all.
_COUNTERS = ("num_timesteps", "_episode_num", "_n_updates", "_n_calls", "exploration_rate")
_REPLAYED = ("observations", "next_observations", "actions", "rewards", "dones", "timeouts")


def state_of(algorithm: BaseAlgorithm, vector: GymnasiumVecEnv, device: str) -> dict[str, Any]:
    """The state of a training: plain data, arrays and tensors.

    Rollouts are empty at the end of an update, so they are no part of it; a replay buffer is.
    """
    replay = getattr(algorithm, "replay_buffer", None)
    return {
        "counters": {name: getattr(algorithm, name) for name in _COUNTERS if hasattr(algorithm, name)},
        "policy": dict(algorithm.policy.state_dict()),
        "optimizer": algorithm.policy.optimizer.state_dict(),
        "last_observation": algorithm._last_obs,
        "episode_starts": algorithm._last_episode_starts,
        "episodes": list(algorithm.ep_info_buffer or ()),
        "environment": vector.state(),
        "action_space": np.array(words_of(algorithm.action_space.np_random), np.uint64),
        "replay": None if replay is None else _replay_state(replay),
        "random": random_state(device),
    }


def put_state(
    algorithm: BaseAlgorithm, vector: GymnasiumVecEnv, device: str, state: Mapping[str, Any]
) -> None:
    """Puts a training where :func:`state_of` took it.

    Raises:
        OpgymError: The environments do not come back to the observations that they had.
    """
    for name, value in state["counters"].items():
        setattr(algorithm, name, value)
    algorithm.policy.load_state_dict(state["policy"])
    algorithm.policy.optimizer.load_state_dict(state["optimizer"])
    observation = vector.restore(state["environment"])
    if not _equal(observation, state["last_observation"]):
        raise OpgymError(
            "the environments of the checkpoint come back to other observations; it was written by another version "
            "of opgym, or for other graphs; start the training anew"
        )
    algorithm._last_obs = observation
    algorithm._last_episode_starts = state["episode_starts"]
    algorithm.ep_info_buffer = deque(state["episodes"], maxlen=algorithm._stats_window_size)
    algorithm.ep_success_buffer = deque(maxlen=algorithm._stats_window_size)
    algorithm.action_space.np_random.bit_generator.state = generator_of(
        state["action_space"]
    ).bit_generator.state
    if state["replay"] is not None:
        _put_replay(algorithm.replay_buffer, state["replay"])  # type: ignore[attr-defined]
    set_random_state(state["random"], device)  # last: what comes before may draw


def _replay_state(replay: ReplayBuffer) -> dict[str, Any]:
    """The filled part of a replay buffer."""
    size = replay.size()
    return {
        "position": replay.pos,
        "full": replay.full,
        **{name: _rows(getattr(replay, name), size) for name in _REPLAYED},
    }


def _put_replay(replay: ReplayBuffer, state: Mapping[str, Any]) -> None:
    replay.pos, replay.full = state["position"], state["full"]
    size = replay.size()
    for name in _REPLAYED:
        there, here = getattr(replay, name), state[name]
        for target, rows in (
            ((there[key], here[key]) for key in here) if isinstance(here, dict) else ((there, here),)
        ):
            target[:size] = rows


def _rows(array: Any, size: int) -> Any:
    if isinstance(array, dict):
        return {key: part[:size] for key, part in array.items()}
    return array[:size]


def _equal(observation: Any, expected: Any) -> bool:
    if isinstance(expected, dict):
        return observation.keys() == expected.keys() and all(
            np.array_equal(observation[key], expected[key]) for key in expected
        )
    return np.array_equal(observation, expected)
