"""Single environments whose running episodes can be written down: generator at the start, and actions since."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium.utils import seeding
from gymnasium.vector import SyncVectorEnv, VectorEnv
from numpy.typing import NDArray

from ...envs.generators import GENERATOR_WORDS, generator_of, words_of
from ...errors import InvalidProblemError, InvalidSolutionError


class Replayable(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Notes what an episode began with and every action since; an environment that is a function of both can be
    brought back to where it was, in another process too.
    """

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        self.actions: list[NDArray[Any]] = []
        self.began = np.zeros(GENERATOR_WORDS, np.uint64)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, Any]:
        """Begins an episode."""
        generator = self.unwrapped.np_random if seed is None else seeding.np_random(seed)[0]
        self.began, self.actions = np.array(words_of(generator), np.uint64), []
        return self.env.reset(seed=seed, options=options)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Takes a decision."""
        self.actions.append(np.array(action, np.int64))
        return self.env.step(action)

    def replay(
        self, began: NDArray[np.uint64], now: NDArray[np.uint64], actions: NDArray[np.int64]
    ) -> tuple[Any, dict[str, Any]]:
        """Goes back to where an episode was.

        Args:
            began: Generator when it began, in words.
            now: Generator at that point.
            actions: All of its actions.

        Returns:
            Observation and info of that point.
        """
        self.unwrapped.np_random = generator_of(began)
        observation, info = self.reset()
        over = False
        for action in actions:
            if over:
                raise InvalidSolutionError("the state has more actions than the episode has steps")
            observation, _, terminated, truncated, info = self.step(action)
            over = terminated or truncated
        if over:
            raise InvalidSolutionError("the state is of an episode that is over")
        self.unwrapped.np_random = generator_of(now)
        return observation, info


def replay_state(vector: VectorEnv[Any, Any, Any]) -> dict[str, NDArray[Any]]:
    """The running episodes of a ``SyncVectorEnv`` of replayable environments, as plain arrays.

    ``actions`` holds those of slot 0, of slot 1, ...; ``action_ptr`` says where each slot's begin.
    """
    envs = _replayable(vector)
    shape = vector.single_action_space.shape or ()
    return {
        "began": np.array([env.began for env in envs]),
        "generators": np.array([words_of(env.unwrapped.np_random) for env in envs], np.uint64),
        "actions": np.array([a for env in envs for a in env.actions], np.int64).reshape(-1, *shape),
        "action_ptr": np.cumsum([0, *(len(env.actions) for env in envs)]),
    }


def restore_replay(
    vector: VectorEnv[Any, Any, Any], state: Mapping[str, NDArray[Any]]
) -> tuple[Any, dict[str, Any]]:
    """Brings a ``SyncVectorEnv`` of replayable environments to a state that :func:`replay_state` gave.

    Returns:
        Observations and infos of all slots at that point.

    Raises:
        InvalidSolutionError: The state is of another number of slots, or of other episodes.
    """
    envs, ptr = _replayable(vector), np.asarray(state["action_ptr"], np.int64)
    if len(ptr) != len(envs) + 1:
        raise InvalidSolutionError(f"the state has {len(ptr) - 1} slots; these environments have {len(envs)}")
    vector.reset()  # so that it knows of no episode that is over
    observations: list[Any] = []
    infos: dict[str, Any] = {}
    for slot, env in enumerate(envs):
        actions = np.asarray(state["actions"][ptr[slot] : ptr[slot + 1]], np.int64)
        observation, info = env.replay(state["began"][slot], state["generators"][slot], actions)
        observations.append(observation)
        infos = vector._add_info(infos, info, slot)
    space = vector.single_observation_space
    empty: Any = gymnasium.vector.utils.create_empty_array(space, n=len(envs), fn=np.zeros)
    return gymnasium.vector.utils.concatenate(space, observations, empty), infos


def _replayable(vector: VectorEnv[Any, Any, Any]) -> list[Replayable]:
    envs = vector.envs if isinstance(vector, SyncVectorEnv) else []
    if not envs or not all(isinstance(env, Replayable) for env in envs):
        raise InvalidProblemError(
            f"{type(vector).__name__} has no state() that a checkpoint could hold; expected a native batch, or a "
            "SyncVectorEnv of environments wrapped in Replayable"
        )
    return [env for env in envs if isinstance(env, Replayable)]
