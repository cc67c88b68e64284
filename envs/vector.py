"""Batches of environments that step in one call of the core: what does not depend on what is decided."""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from ..errors import InvalidProblemError, InvalidSolutionError
from .arguments import one_of
from .batch_core import BatchCore, Bool, Int64
from .generators import generator_of, words_of
from .vector_arguments import (
    DRAWS,
    read_actions,
    read_autoreset_mode,
    read_num_envs,
    read_reset_mask,
    read_seeds,
)
from .vector_observation import Shown
from .vector_state import read_state

_INT64 = np.dtype(np.int64)


class NativeVectorEnv(VectorEnv[Any, Any, Any]):
    """Many episodes that step together in the core, with the spaces and infos of the single environment.

    Everything is as Gymnasium's ``SyncVectorEnv`` of single environments would do it: seeds, autoreset, infos
    with their masks. A slot decides about one graph at a time; several graphs are shared out among the slots.
    Arrays are fresh at every step.

    A subclass makes the core, and judges episodes that end.

    Args:
        num_envs: Slots.
        core: Holds the episodes.
        episode_steps: Decisions of an episode, for each graph that slots decide about.
        shown: The observation of one slot.
        single_action_space: Of one slot.
        autoreset_mode: One of Gymnasium's.
        draw: ``"slot"``: slot i decides about graph i mod n, always; ``"episode"``: each episode draws its
            graph from the slot's own generator.

    Attributes:
        graph: Graph of each slot's episode, ``[slots] int64``.
        static: What never changes in an episode, for each graph, ``[graphs, ...]`` by key; not writable.

    Raises:
        InvalidProblemError: Less than one slot, or too many.
        UnknownIdError: An unknown way of drawing, or mode.
    """

    graph: Int64
    static: Mapping[str, NDArray[Any]]

    def __init__(
        self,
        num_envs: int,
        core: BatchCore,
        episode_steps: Sequence[int],
        shown: Shown,
        single_action_space: spaces.Discrete,
        *,
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        draw: str = "slot",
    ) -> None:
        super().__init__()
        self.num_envs = read_num_envs(num_envs)
        self.draw = one_of("draw", draw, DRAWS)
        self.autoreset_mode = read_autoreset_mode(autoreset_mode)
        self.metadata = {"render_modes": [], "autoreset_mode": self.autoreset_mode}
        self.single_observation_space = shown.space
        self.single_action_space = single_action_space
        self.observation_space = batch_space(shown.space, self.num_envs)
        self.action_space = batch_space(single_action_space, self.num_envs)
        self.static = shown.static
        for array in self.static.values():
            array.setflags(write=False)

        self._core = core
        self._episode_steps = np.array(episode_steps, np.int64)
        self._num_actions = int(single_action_space.n)
        self._keys = shown.keys
        parts: list[Any]
        if isinstance(self.observation_space, spaces.Dict):
            parts = [self.observation_space[key] for key in self._keys]
        else:
            parts = [self.observation_space]
        self._layout = [(part.shape, part.dtype) for part in parts]
        self._generators: list[np.random.Generator | None] = [None] * self.num_envs
        self._seeds = [-1] * self.num_envs
        self._every_slot = np.arange(self.num_envs)
        self._all = np.ones(self.num_envs, np.bool_)
        self.graph = self._every_slot % len(self._episode_steps)
        self._started = False
        #: Slots whose episode is over and has not been begun anew, and what was said when it ended.
        self._over = np.zeros(self.num_envs, np.bool_)
        self._ends: dict[int, dict[str, Any]] = {}

    # --- the Gymnasium interface

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begins an episode in every slot, or in those of ``options["reset_mask"]``, ``[slots] bool``.

        Args:
            seed: ``s``: slot i gets the seed s + i; one per slot; or ``None``: generators go on.
            options: Nothing else.

        Returns:
            Observations and infos of all slots; infos only of those that begin.
        """
        seeds, begin = read_seeds(seed, self.num_envs), read_reset_mask(options, self.num_envs)
        slots = np.flatnonzero(begin)
        for slot in slots.tolist():
            if seeds[slot] is not None:
                self._generators[slot], self._seeds[slot] = seeding.np_random(seeds[slot])
        if not self._started:
            self._begin(self._every_slot)  # a mask that leaves some out at the start leaves them at a start
            self._started = True
        else:
            self._begin(slots)
        return self._look(begin)

    def step(
        self, actions: Any
    ) -> tuple[Any, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """Takes one decision in every slot; see the single environment for what an illegal one does.

        In the mode ``Disabled`` an episode that is over stays as it is, with reward 0, until it is reset.

        Args:
            actions: One per slot.

        Raises:
            InvalidSolutionError: Another number of actions.
        """
        if not self._started:
            raise gymnasium.error.ResetNeeded("the environments have no state yet; call reset() first")
        count = self.num_envs
        if not (type(actions) is np.ndarray and actions.dtype is _INT64 and actions.shape == (count,)):
            actions = read_actions(actions, count)
        elif not actions.flags.c_contiguous:
            actions = np.ascontiguousarray(actions)
        skip = None
        if self._ends:
            skip = self._over
            if (
                self.autoreset_mode is not AutoresetMode.DISABLED
            ):  # SameStep: one that was restored at its end
                self._begin(np.flatnonzero(skip))

        arrays = [np.empty(shape, dtype) for shape, dtype in self._layout]
        reward, terminated = np.empty(count), np.empty(count, np.bool_)
        illegal_actions, mask = np.empty(count, np.int64), np.empty((count, self._num_actions), np.int8)
        ended = self._core.step(actions, skip, reward, terminated, illegal_actions, mask, arrays)
        infos = {
            "action_mask": mask,
            "_action_mask": self._all.copy(),
            "illegal_actions": illegal_actions,
            "_illegal_actions": self._all.copy(),
        }
        if ended:
            self._end(terminated, reward, arrays, infos)
        if self._ends and self.autoreset_mode is AutoresetMode.DISABLED:
            terminated |= self._over
            for slot, end in self._ends.items():
                self._add_info(infos, end, slot)
        return self._observation(arrays), reward, terminated, np.zeros(count, np.bool_), infos

    # --- beyond Gymnasium

    def action_masks(self) -> NDArray[np.bool_]:
        """Which actions are legal now, ``[slots, actions]``; equal to ``infos["action_mask"]``."""
        mask = np.empty((self.num_envs, self._num_actions), np.int8)
        self._core.action_masks(mask)
        return mask.astype(np.bool_)

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything that is needed to go on exactly, in another process too: plain arrays, for a checkpoint.

        ===================  ==================  =======  ==============================================
        key                  shape               dtype    meaning
        ===================  ==================  =======  ==============================================
        ``graph``            [slots]             int64    graph of each slot's episode
        ``decisions``        [all decisions]     int64    of slot 0, of slot 1, ...
        ``decision_ptr``     [slots + 1]         int64    where each slot's decisions begin
        ``illegal_actions``  [slots]             int64    of each episode
        ``over``             [slots]             bool     whether the next step begins a new episode
        ``generators``       [slots, 6]          uint64   state of each slot's generator
        ``fingerprint``      [32]                uint8    of what is decided about: graphs, clusters, costs, groups
        ===================  ==================  =======  ==============================================
        """
        if not self._started:
            raise gymnasium.error.ResetNeeded("the environments have no state yet; call reset() first")
        decisions = [self._core.decisions(slot) for slot in range(self.num_envs)]
        illegal_actions, mask, arrays = self._rows()
        self._core.observe(self._every_slot, illegal_actions, mask, arrays)
        return {
            "graph": self.graph.copy(),
            "decisions": np.concatenate(decisions),
            "decision_ptr": np.cumsum([0, *(len(d) for d in decisions)]),
            "illegal_actions": illegal_actions,
            "over": self._over.copy(),
            "generators": np.array([words_of(generator) for generator in self.np_random], np.uint64),
            "fingerprint": self._fingerprint.copy(),
        }

    def restore(self, state: Mapping[str, NDArray[Any]]) -> tuple[Any, dict[str, Any]]:
        """Goes on from what :meth:`state` gave, here or in an equal environment.

        Args:
            state: As it was, or read back from a file.

        Returns:
            Observations and infos of that state; for an episode that is over, those of its end.

        Raises:
            InvalidSolutionError: The state is of environments that decide about something else.
        """
        given = read_state(state, self._fingerprint, self._episode_steps, self.num_envs)
        generators = [generator_of(words) for words in given["generators"]]
        self._started = False  # until all of it is there
        for slot in range(self.num_envs):
            begin, end = given["decision_ptr"][slot : slot + 2].tolist()
            try:
                self._core.replay(
                    slot,
                    int(given["graph"][slot]),
                    given["decisions"][begin:end],
                    int(given["illegal_actions"][slot]),
                )
            except ValueError as error:
                raise InvalidSolutionError(f"the state does not fit these environments: {error}") from None
        self.graph, self._over = given["graph"], given["over"]
        self._generators = list(generators)
        self._seeds = [-1] * self.num_envs  # Gymnasium's sign for: not known
        over = np.flatnonzero(self._over).tolist()
        self._ends = {slot: info for slot, (_, info) in zip(over, self._judge(over), strict=True)}
        self._started = True
        observation, infos = self._look(self._all)
        for slot, info in self._ends.items():
            self._add_info(infos, info, slot)
        return observation, infos

    @property  # type: ignore[misc]
    def np_random(self) -> tuple[np.random.Generator, ...]:  # type: ignore[override]  # as SyncVectorEnv
        """Each slot's own generator; one that was never seeded is seeded now."""
        for slot, generator in enumerate(self._generators):
            if generator is None:
                self._generators[slot], self._seeds[slot] = seeding.np_random()
        return tuple(generator for generator in self._generators if generator is not None)

    @property
    def np_random_seed(self) -> tuple[int, ...]:  # type: ignore[override]
        """What each slot's generator was seeded with; -1: not known."""
        return tuple(self._seeds) if self.np_random else ()

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Refuses copies and pickles, which would share, or lack, the episodes in the core."""
        raise InvalidProblemError(
            f"a {type(self).__name__} is neither copied nor pickled: its episodes are in the core; make another one "
            "with the same arguments, and restore() there what state() gives here"
        )

    @cached_property
    def _fingerprint(self) -> NDArray[np.uint8]:
        digest = hashlib.sha256(type(self).__name__.encode())
        for part in self._decided_about():
            digest.update(len(part).to_bytes(8, "little"))
            digest.update(part)
        return np.frombuffer(digest.digest(), np.uint8)

    # --- for subclasses

    @abstractmethod
    def _decided_about(self) -> Iterable[bytes]:
        """What tells the graphs and what is decided about them from any others, graph by graph."""

    @abstractmethod
    def _judge(self, slots: list[int]) -> list[tuple[float, dict[str, Any]]]:
        """Judges episodes that are over.

        Returns:
            For each, its return, and what its info says beside ``action_mask`` and ``illegal_actions``.
        """

    # --- parts of a step

    def _begin(self, slots: Int64) -> None:
        """Begins an episode in each of some slots."""
        if self.draw == "episode" and len(self._episode_steps) > 1:
            generators = self.np_random
            for slot in slots.tolist():
                self.graph[slot] = generators[slot].integers(len(self._episode_steps))
        self._core.reset(slots, self.graph[slots])
        self._over = self._over.copy()  # what a step in progress skips
        self._over[slots] = False
        self._ends = {slot: end for slot, end in self._ends.items() if self._over[slot]}

    def _end(
        self,
        terminated: Bool,
        reward: NDArray[np.float64],
        arrays: list[NDArray[Any]],
        infos: dict[str, Any],
    ) -> None:
        """Pays the returns of episodes that ended, says what they came to, and begins anew if that is due."""
        slots = np.flatnonzero(terminated)
        ends = list(zip(slots.tolist(), self._judge(slots.tolist()), strict=True))
        for slot, (episode_return, _) in ends:
            reward[slot] += episode_return
        if self.autoreset_mode is not AutoresetMode.SAME_STEP:
            self._over = self._over | terminated
            for slot, (_, info) in ends:
                self._ends[slot] = info
                self._add_info(infos, info, slot)
            return
        last = self._observation(arrays)
        mask, illegal_actions = infos["action_mask"], infos["illegal_actions"]
        for slot, (_, info) in ends:
            final_info = {
                "action_mask": mask[slot].copy(),
                "illegal_actions": int(illegal_actions[slot]),
                **info,
            }
            final = {"final_obs": _row(last, slot), "final_info": final_info}
            self._add_info(infos, final, slot)
        self._begin(slots)
        self._core.observe(slots, illegal_actions, mask, arrays)

    def _rows(self) -> tuple[Int64, NDArray[np.int8], list[NDArray[Any]]]:
        """Arrays for the rows of all slots: illegal actions, mask, observation."""
        return (
            np.empty(self.num_envs, np.int64),
            np.empty((self.num_envs, self._num_actions), np.int8),
            [np.empty(shape, dtype) for shape, dtype in self._layout],
        )

    def _look(self, told: Bool) -> tuple[Any, dict[str, Any]]:
        """Observations of all slots as they are, and infos of some."""
        illegal_actions, mask, arrays = self._rows()
        self._core.observe(self._every_slot, illegal_actions, mask, arrays)
        illegal_actions[~told], mask[~told] = 0, 0
        infos = {
            "action_mask": mask,
            "_action_mask": told.copy(),
            "illegal_actions": illegal_actions,
            "_illegal_actions": told.copy(),
        }
        return self._observation(arrays), infos

    def _observation(self, arrays: list[NDArray[Any]]) -> Any:
        """What is handed out, made of what the core wrote."""
        if not self._keys:
            return arrays[0]
        graph = self.graph.astype(np.int32).reshape(-1, 1)
        return {"graph": graph, **dict(zip(self._keys, arrays, strict=True))}


def _row(observation: Any, slot: int) -> Any:
    """A copy of one slot's observation."""
    if isinstance(observation, dict):
        return {key: array[slot].copy() for key, array in observation.items()}
    return observation[slot].copy()
