"""What every training of a policy does: updates, validation, selection of weights, and checkpoints."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from .. import metrics
from ..learner import Monitor
from .checkpoints import read_checkpoint, write_checkpoint
from .weights import weights_of

#: Norm to which gradients are shortened.
MOST_GRADIENT = 1.0


class Training(ABC):
    """One training.

    Everything that is drawn in an update follows from the seed and its number, so a checkpoint holds weights, the
    state of the optimizer and what was best, and no generator.

    Args:
        policy: What to train; changed in place.
        optimizer: Of its weights.
        steps: To make; the last update is taken to its end.
        validate_every: Updates between two looks at the validation problems; 0: there are none, and the last weights
            are taken.
        seed: Of all randomness.
    """

    def __init__(
        self,
        policy: torch.nn.Module,
        optimizer: torch.optim.Optimizer,
        *,
        steps: int,
        validate_every: int,
        seed: int,
    ) -> None:
        self._network, self._optimizer = policy, optimizer
        self._validate_every, self._total_steps, self._seed = validate_every, steps, seed
        self._updates = 0
        self._best_gain: float | None = None
        self._best: dict[str, NDArray[Any]] = weights_of(self._network)
        #: Of the update that is made: spent within the environment.
        self._seconds = 0.0

    # --- what subclasses give

    @property
    @abstractmethod
    def steps(self) -> int:
        """Steps so far, those of validation apart."""

    @abstractmethod
    def _update(self) -> dict[str, float]:
        """Makes one update; its metrics."""

    @abstractmethod
    def _validated(self) -> tuple[float, dict[str, float]]:
        """What weights are chosen by, more being better, and its metrics."""

    def _state(self) -> dict[str, Any]:
        """What a checkpoint holds beside the common state, as a tree."""
        return {}

    def _set_state(self, state: Mapping[str, Any]) -> None:  # noqa: B027 there may be none
        """Takes back what :meth:`_state` gave."""

    # --- the course of a training

    @property
    def result(self) -> tuple[dict[str, NDArray[Any]], float | None]:
        """The weights of the training, and their gain on the validation problems, if there are any."""
        if self._validate_every:
            return self._best, self._best_gain
        return weights_of(self._network), None

    def run(self, identity: Mapping[str, Any], monitor: Monitor | None) -> None:
        """Trains to the end.

        Args:
            identity: Everything that decides what the training does, as plain data.
            monitor: Watches; with a checkpoint the training goes on from there.

        Raises:
            OpgymError: The checkpoint is damaged, or of another training.
        """
        latest = None if monitor is None else monitor.latest
        if latest is not None:
            self._resume(latest, identity)
        while self.steps < self._total_steps:
            began, self._seconds = time.perf_counter(), 0.0
            before = self.steps
            line = self._update()
            last = self.steps >= self._total_steps
            if self._validate_every and (last or self._updates % self._validate_every == 0):
                line |= self._validate()
            seconds = max(time.perf_counter() - began, 1e-9)
            line[metrics.STEPS_PER_SECOND.name] = (self.steps - before) / seconds
            line[metrics.ENVIRONMENT_SHARE.name] = self._seconds / seconds
            if monitor is not None:
                monitor.log(self.steps, line)
                monitor.checkpoint(self.steps, lambda folder: self._write(folder, identity), last=last)

    def _validate(self) -> dict[str, float]:
        """Keeps the weights that gain most."""
        gain, line = self._validated()
        if self._best_gain is None or gain > self._best_gain:
            self._best_gain, self._best = gain, weights_of(self._network)
        return line | {metrics.BEST_VALIDATION_GAIN.name: self._best_gain}

    # --- for those who learn

    def _drawn(self, count: int, graphs: int, stream: int) -> list[int]:
        """Positions of the problems of this update: each in turn, in a new order each time round.

        Args:
            count: How many problems there are.
            graphs: How many of them an update takes.
            stream: Of random numbers.
        """
        first = self._updates * graphs
        chosen = []
        for position in range(first, first + graphs):
            round_, place = divmod(position, count)
            order = np.random.default_rng([self._seed, stream, round_]).permutation(count)
            chosen.append(int(order[place]))
        return chosen

    def _step(self, loss: torch.Tensor, learning_rate: float) -> None:
        for group in self._optimizer.param_groups:
            group["lr"] = learning_rate
        self._optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self._network.parameters(), MOST_GRADIENT)
        self._optimizer.step()
        self._updates += 1

    @property
    def _left(self) -> float:
        """Share of the training that is left."""
        return max(0.0, 1 - self.steps / self._total_steps)

    # --- checkpoints

    def _write(self, folder: Path, identity: Mapping[str, Any]) -> None:
        state = {
            "updates": self._updates,
            "policy": dict(self._network.state_dict()),
            "optimizer": self._optimizer.state_dict(),
            "best_gain": self._best_gain,
            "best": self._best,
            **self._state(),
        }
        write_checkpoint(folder, identity, {"state": state})

    def _resume(self, folder: Path, identity: Mapping[str, Any]) -> None:
        state = read_checkpoint(folder, identity)["state"]
        self._updates = state["updates"]
        self._network.load_state_dict(state["policy"])
        self._optimizer.load_state_dict(state["optimizer"])
        self._best_gain, self._best = state["best_gain"], state["best"]
        self._set_state(state)
