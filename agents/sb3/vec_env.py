"""A Gymnasium vector environment in the clothes of Stable-Baselines3's ``VecEnv``."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv
from numpy.typing import NDArray
from stable_baselines3.common.env_util import is_wrapped
from stable_baselines3.common.vec_env import VecEnv

from ...errors import InvalidProblemError
from .replay import replay_state, restore_replay

Indices = None | int | Iterable[int]

#: Keys of :meth:`GymnasiumVecEnv.state` beside those of the environment.
_RETURNS, _LENGTHS, _ENVIRONMENT = "returns", "lengths", "environment"


class GymnasiumVecEnv(VecEnv):
    """Adapts a vector environment that begins a new episode in the step that ends one (``SAME_STEP``).

    A step costs no Python per slot, except where episodes end. There the info of a slot holds
    ``terminal_observation``, ``TimeLimit.truncated``, ``episode`` (return ``r``, length ``l``, seconds ``t``, as
    SB3's ``Monitor`` has them), ``graph`` (its index, of a batch about several) and everything that the environment
    said at the end.

    Args:
        vector: The environment: a native batch, or a ``SyncVectorEnv``.

    Attributes:
        vector: The environment.
        last_infos: What it said at the last step or reset, as it said it.
        ended: Slots whose episode ended at the last step, with their infos.
        seconds: Wall time spent here so far: in the environment, and in what hands its infos and masks to SB3.

    Raises:
        InvalidProblemError: It resets at another time.
    """

    def __init__(self, vector: VectorEnv[Any, Any, Any]) -> None:
        mode = vector.metadata.get("autoreset_mode")
        if mode is not AutoresetMode.SAME_STEP:
            raise InvalidProblemError(
                f"Stable-Baselines3 needs autoreset_mode='{AutoresetMode.SAME_STEP.value}'; this vector environment "
                f"has {mode!r}"
            )
        self.vector = vector
        self.last_infos: dict[str, Any] = {}
        self.ended: list[tuple[int, dict[str, Any]]] = []
        self.seconds = 0.0
        self._actions: Any = None
        self._returns = np.zeros(vector.num_envs)
        self._lengths = np.zeros(vector.num_envs, np.int64)
        self._started = time.perf_counter()
        super().__init__(vector.num_envs, vector.single_observation_space, vector.single_action_space)

    # --- stepping

    def reset(self) -> Any:
        """Begins an episode in every slot, with the seeds of the last call to ``seed``."""
        began = time.perf_counter()
        observation = self._reset()
        self.seconds += time.perf_counter() - began
        return observation

    def _reset(self) -> Any:
        seeded = any(seed is not None for seed in self._seeds)
        options = next((options for options in self._options if options), None)
        seeds: Any = list(self._seeds) if seeded else None  # one per slot, which Gymnasium's type leaves out
        observation, infos = self.vector.reset(seed=seeds, options=options)
        self._reset_seeds()
        self._reset_options()
        self._begin(infos)
        return observation

    def step_async(self, actions: NDArray[Any]) -> None:
        """Takes the actions for :meth:`step_wait`."""
        self._actions = actions

    def step_wait(self) -> tuple[Any, NDArray[np.float32], NDArray[np.bool_], list[dict[str, Any]]]:
        """One step of every slot."""
        began = time.perf_counter()
        step = self._step()
        self.seconds += time.perf_counter() - began
        return step

    def _step(self) -> tuple[Any, NDArray[np.float32], NDArray[np.bool_], list[dict[str, Any]]]:
        graph = self._graph_of_slots()
        observation, rewards, terminated, truncated, infos = self.vector.step(self._actions)
        self._returns += rewards
        self._lengths += 1
        done = terminated | truncated
        slot_infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        self.last_infos, self.ended = infos, []
        if done.any():
            for slot in np.flatnonzero(done).tolist():
                slot_infos[slot] = self._end(slot, infos, bool(truncated[slot] and not terminated[slot]))
                if graph is not None:
                    slot_infos[slot]["graph"] = int(graph[slot])
                self.ended.append((slot, slot_infos[slot]))
                self.reset_infos[slot] = _of_slot(infos, slot)
        return observation, rewards.astype(np.float32), done, slot_infos

    def _graph_of_slots(self) -> NDArray[np.int64] | None:
        """Which of several graphs each slot's episode is about, where the environment says so."""
        graph = getattr(self.vector, "graph", None)
        return None if graph is None else graph.copy()  # a step that ends an episode draws another

    def _begin(self, infos: dict[str, Any]) -> None:
        self.last_infos, self.ended = infos, []
        self.reset_infos = [_of_slot(infos, slot) for slot in range(self.num_envs)]
        self._returns[:], self._lengths[:] = 0, 0

    def _end(self, slot: int, infos: Mapping[str, Any], truncated: bool) -> dict[str, Any]:
        """What is said of an episode that ended."""
        info = _of_slot(infos["final_info"], slot)
        info["terminal_observation"] = infos["final_obs"][slot]
        info["TimeLimit.truncated"] = truncated
        info["episode"] = {
            "r": float(self._returns[slot]),
            "l": int(self._lengths[slot]),
            "t": time.perf_counter() - self._started,
        }
        self._returns[slot], self._lengths[slot] = 0, 0
        return info

    def action_masks(self) -> NDArray[np.bool_]:
        """Legal actions now, ``[slots, actions]``."""
        began = time.perf_counter()
        masks = np.asarray(self.last_infos["action_mask"], np.bool_)
        self.seconds += time.perf_counter() - began
        return masks

    # --- everything that the rest of a training depends on

    def state(self) -> dict[str, Any]:
        """The running episodes and their generators: arrays by name, the environment's own one level down."""
        own = getattr(self.vector, "state", None)
        inner = replay_state(self.vector) if own is None else own()
        return {_ENVIRONMENT: inner, _RETURNS: self._returns.copy(), _LENGTHS: self._lengths.copy()}

    def restore(self, state: Mapping[str, Any]) -> Any:
        """Goes on from a :meth:`state` of an equal environment.

        Returns:
            The observations at that point.
        """
        if hasattr(self.vector, "restore"):
            observation, infos = self.vector.restore(state[_ENVIRONMENT])
        else:
            observation, infos = restore_replay(self.vector, state[_ENVIRONMENT])
        self._reset_seeds()
        self._begin(infos)
        self._returns[:], self._lengths[:] = state[_RETURNS], state[_LENGTHS]
        return observation

    # --- what SB3 asks beside

    def close(self) -> None:
        """Closes the environment."""
        self.vector.close()

    def has_attr(self, attr_name: str) -> bool:
        """Whether every slot has an attribute; ``action_masks`` all have."""
        return attr_name == "action_masks" or super().has_attr(attr_name)

    def get_attr(self, attr_name: str, indices: Indices = None) -> list[Any]:
        """An attribute of the environments of some slots; a native batch has one for all."""
        slots = self._slots(indices)
        if isinstance(self.vector, SyncVectorEnv):
            return [self.vector.envs[slot].get_wrapper_attr(attr_name) for slot in slots]
        value = getattr(self.vector, attr_name)
        return [value] * len(slots)

    def set_attr(self, attr_name: str, value: Any, indices: Indices = None) -> None:
        """Sets an attribute of the environments of some slots.

        Raises:
            InvalidProblemError: A native batch has no environments to set it on.
        """
        if not isinstance(self.vector, SyncVectorEnv):
            raise InvalidProblemError(
                f"{type(self.vector).__name__} steps in the core: slots have no attribute {attr_name!r} to set"
            )
        for slot in self._slots(indices):
            self.vector.envs[slot].set_wrapper_attr(attr_name, value)

    def env_method(
        self, method_name: str, *method_args: Any, indices: Indices = None, **method_kwargs: Any
    ) -> list[Any]:
        """Calls a method of the environments of some slots.

        Raises:
            InvalidProblemError: A native batch has no environments to ask, except for ``action_masks``.
        """
        slots = self._slots(indices)
        if method_name == "action_masks":
            masks = self.action_masks()
            return list(masks) if indices is None else [masks[slot] for slot in slots]
        if not isinstance(self.vector, SyncVectorEnv):
            raise InvalidProblemError(
                f"{type(self.vector).__name__} steps in the core: slots have no method {method_name!r} to call"
            )
        return [
            self.vector.envs[slot].get_wrapper_attr(method_name)(*method_args, **method_kwargs)
            for slot in slots
        ]

    def env_is_wrapped(self, wrapper_class: type[Any], indices: Indices = None) -> list[bool]:
        """Whether the environments of some slots have a wrapper."""
        slots = self._slots(indices)
        if isinstance(self.vector, SyncVectorEnv):
            return [is_wrapped(self.vector.envs[slot], wrapper_class) for slot in slots]
        return [False] * len(slots)

    def get_images(self) -> Sequence[NDArray[np.uint8] | None]:
        """A picture of each slot, where the environment draws any."""
        frames: Any = self.vector.render()
        return [None] * self.num_envs if frames is None else list(frames)

    def _slots(self, indices: Indices) -> list[int]:
        return list(self._get_indices(indices))


def _of_slot(infos: Mapping[str, Any], slot: int) -> dict[str, Any]:
    """What infos say of one slot, by Gymnasium's masks ``_key``."""
    return {
        key: infos[key][slot]
        for key in infos
        if not key.startswith("_") and key not in ("final_info", "final_obs") and _told(infos, key, slot)
    }


def _told(infos: Mapping[str, Any], key: str, slot: int) -> bool:
    mask = infos.get(f"_{key}")
    return mask is not None and bool(mask[slot])
