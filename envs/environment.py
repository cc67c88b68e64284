"""The part of an environment that does not depend on what it decides about."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Generic, Protocol, Self, TypeVar

import gymnasium
import numpy as np
from numpy.typing import NDArray

from ..outcome import Outcome
from .observers import Observer
from .rewards import Reward


class EpisodeState(Protocol):
    """Everything that changes during an episode.

    Attributes:
        potential: What the reward is a difference of, in units of the reference; lower is better.
        illegal_actions: Actions so far that were replaced because they were illegal.
        outcome: Of the whole solution, once there is one.
        over: Whether the episode has ended.
    """

    potential: float
    illegal_actions: int
    outcome: Outcome | None
    over: bool

    def copy(self) -> Self:
        """An independent copy."""
        ...


State = TypeVar("State", bound=EpisodeState)


class ProblemEnv(gymnasium.Env[Any, Any], Generic[State]):
    """A problem made steppable; a subclass says what a step decides and how a state is described.

    A subclass sets ``observation_space``, ``action_space``, ``render_mode``, ``_observer`` and ``_reward``, and
    starts an episode by setting ``_state``.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012, Gymnasium declares it as an instance's
        "render_modes": ["rgb_array", "ansi"],
        "render_fps": 10,
    }

    _observer: Observer[State]
    _reward: Reward
    _state: State | None = None

    # --- the Gymnasium interface

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Takes one decision; see the class for what an illegal action does, and a step after the end."""
        state = self._current()
        if state.over:
            gymnasium.logger.warn("step() after the end of the episode changes nothing; call reset() first")
            return self._observer.observe(state), 0.0, True, False, self._info(state)
        before = state.potential
        self._advance(state, action)
        episode_return = None
        if state.over and state.outcome is not None:
            episode_return = self._return_of(state, state.outcome)
        reward = self._reward(before, state.potential, episode_return)
        return self._observer.observe(state), reward, state.over, False, self._info(state)

    def render(self) -> Any:
        """Draws the state: ``uint8 [height, width, 3]``, or text; ``None`` without a render mode."""
        if self.render_mode is None:
            gymnasium.logger.warn(
                "render() without a render mode; make the environment with render_mode='rgb_array'"
            )
            return None
        picture = self._picture(self._current())
        return picture.rgb_array() if self.render_mode == "rgb_array" else picture.ansi()

    # --- beyond Gymnasium

    def action_masks(self) -> NDArray[np.bool_]:
        """Which actions are legal now, for sb3-contrib's MaskablePPO; equal to ``info["action_mask"]``."""
        return self._mask(self._current()).astype(np.bool_)

    def fork(self) -> State:
        """A copy of the state of the episode, for tree search; costs microseconds, not an episode."""
        return self._current().copy()

    def restore(self, state: State) -> tuple[Any, dict[str, Any]]:
        """Goes back to a state that :meth:`fork` gave; it may be restored any number of times.

        Args:
            state: From this environment or an equal one.

        Returns:
            Observation and info of that state.

        Raises:
            InvalidSolutionError: The state is of an environment that decides about something else.
        """
        self._refuse_foreign(state)
        self._state = state.copy()
        return self._observer.observe(self._state), self._info(self._state)

    # --- for subclasses

    def _current(self) -> State:
        if self._state is None:
            raise gymnasium.error.ResetNeeded("the environment has no state yet; call reset() first")
        return self._state

    @abstractmethod
    def _advance(self, state: State, action: Any) -> None:
        """Takes a decision and updates everything in the state."""

    @abstractmethod
    def _return_of(self, state: State, outcome: Outcome) -> float:
        """What the rewards of an episode with this outcome sum to."""

    @abstractmethod
    def _mask(self, state: State) -> NDArray[np.int8]:
        """Legal actions of a state, a fresh array; all of them after the end, when any action is ignored."""

    @abstractmethod
    def _info(self, state: State) -> dict[str, Any]:
        """What ``reset`` and ``step`` say beside the observation."""

    @abstractmethod
    def _picture(self, state: State) -> Picture:
        """What ``render`` draws."""

    @abstractmethod
    def _refuse_foreign(self, state: State) -> None:
        """Raises if the state cannot be one of this environment's."""


class Picture(Protocol):
    """A state, drawn."""

    def rgb_array(self) -> NDArray[np.uint8]:
        """The picture, ``uint8 [height, width, 3]``."""
        ...

    def ansi(self) -> str:
        """The picture as text."""
        ...
