"""A native batch beside Gymnasium's SyncVectorEnv of single environments: equal, field by field and bit by bit."""

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from opgym.envs.vector import NativeVectorEnv
from opgym.outcome import Outcome

STATIC = ("nodes", "node_mask", "edges", "edge_features", "edge_mask")


def expect_equal(native: Any, single: Any, where: str) -> None:
    """Same type, same dtype, same shape, same bits, all the way down."""
    assert type(native) is type(single), where
    if isinstance(single, dict):
        assert native.keys() == single.keys(), where
        for key in single:
            expect_equal(native[key], single[key], f"{where}.{key}")
    elif isinstance(single, np.ndarray):
        assert (native.dtype, native.shape) == (single.dtype, single.shape), where
        if single.dtype == object:
            for i in np.ndindex(single.shape):
                expect_equal(native[i], single[i], f"{where}{list(i)}")
        else:
            assert native.tobytes() == single.tobytes(), f"{where}: {native} is not {single}"
    else:
        assert native == single, where


class Twins:
    """Both, played with the same seeds and actions.

    Args:
        native: The batch.
        singles: Environments equal to its slots.
    """

    def __init__(self, native: NativeVectorEnv, singles: Sequence[Any]) -> None:
        self.native, self.mode = native, native.autoreset_mode
        self.sync = SyncVectorEnv([lambda env=env: env for env in singles], autoreset_mode=self.mode)
        assert native.metadata["autoreset_mode"] is self.mode
        self.illegal = self.ends = 0
        self.outcomes: list[Outcome] = []

    def reset(self, **options: Any) -> None:
        native, sync = self.native.reset(**deepcopy(options)), self.sync.reset(**deepcopy(options))
        for key, array in self.native.static.items():
            expect_equal(array[self.native.graph], sync[0][key], f"static {key}")
        self._compare(native, sync)

    def step(self, actions: Any) -> np.ndarray:
        """One step of both; in the mode Disabled, ended episodes begin anew by a mask."""
        native, sync = self.native.step(actions), self.sync.step(actions)
        self._compare((native[0], native[4]), (sync[0], sync[4]))
        for name, a, b in zip(("reward", "terminated", "truncated"), native[1:4], sync[1:4], strict=True):
            expect_equal(a, b, name)
        expect_equal(self.native.action_masks(), np.array(self.sync.call("action_masks")), "action_masks")
        self.illegal += int(sync[4]["illegal_actions"].sum())
        self.ends += int(sync[2].sum())
        ends = sync[4].get("final_info", sync[4]).get("outcome", [])
        self.outcomes += [outcome for outcome in ends if outcome is not None]
        if self.mode is AutoresetMode.DISABLED and sync[2].any():
            self.reset(
                options={"reset_mask": sync[2].copy()}
            )  # separate dicts: SyncVectorEnv empties its own
        return sync[2]

    def _compare(self, native: tuple[Any, Any], sync: tuple[Any, Any]) -> None:
        assert self.native.observation_space.contains(native[0])
        expect_equal(native[0], self._changing(sync[0], self.native.graph.reshape(-1, 1)), "observation")
        infos = dict(sync[1])
        if "final_obs" in infos:
            infos["final_obs"] = final = infos["final_obs"].copy()
            for slot in np.flatnonzero(infos["_final_obs"]):
                final[slot] = self._changing(final[slot], self.native.graph[slot].reshape(1))
        expect_equal(native[1], infos, "infos")

    @staticmethod
    def _changing(observation: Any, graph: np.ndarray) -> Any:
        """What a native batch shows of a dict: without what never changes, with the graph's index."""
        if not isinstance(observation, dict):
            return observation
        changing = {key: value for key, value in observation.items() if key not in STATIC}
        return changing | {"graph": graph.astype(np.int32)}


def expect_same_steps(ours: Sequence[Any], theirs: Sequence[Any]) -> None:
    """What several calls of reset or step returned."""
    for i, (one, other) in enumerate(zip(ours, theirs, strict=True)):
        for j, (a, b) in enumerate(zip(one, other, strict=True)):
            expect_equal(a, b, f"part {j} of step {i}")
