"""What every training of a policy does: updates, validation, selection of weights, and checkpoints."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from ...problems import AnyProblem
from .. import metrics
from ..learner import Monitor
from ..networks.checkpoints import read_checkpoint, write_checkpoint
from ..networks.options import options_of
from ..networks.weights import weights_of
from ..search.keys import Proposal
from .learned import fingerprint_of
from .task import Task
from .trials import Proposable, Trial, Trials

if TYPE_CHECKING:
    from .base import ProposalLearner

#: Norm to which gradients are shortened.
_MOST_GRADIENT = 1.0
#: Stream of random numbers of validation; those of a training have others.
_VALIDATION = 3
#: Options that say how to solve, or on how many cores; no training depends on them.
_OUTSIDE = ("evaluations", "starts", "evaluations_per_sample", "threads")
#: Metrics of the gain on validation problems, by task.
_GAINS = {
    Task("peak_memory", 1): metrics.VALIDATION_GAIN_MEMORY_1,
    Task("peak_memory", 2): metrics.VALIDATION_GAIN_MEMORY_2,
    Task("step_time", 2): metrics.VALIDATION_GAIN_TIME_2,
}


InstanceT = TypeVar("InstanceT", bound=Proposable)


def identity_of(
    checkpoints: str,
    learner: ProposalLearner,
    network: Any,
    problems: Sequence[AnyProblem],
    validation: Sequence[AnyProblem],
    steps: int,
    seed: int,
) -> dict[str, Any]:
    """Everything that decides what a training does, as plain data.

    Args:
        checkpoints: Name and version of their format.
        learner: With its options, and what it has learned before.
        network: Shape of the policy, a dataclass.
        problems: What to learn from.
        validation: What to choose weights by.
        steps: To make.
        seed: Of all randomness.
    """
    options = {name: value for name, value in options_of(learner).items() if name not in _OUTSIDE}
    return {
        "format": checkpoints,
        "agent": learner.name,
        "options": options,
        "network": asdict(network),
        "steps": steps,
        "seed": seed,
        "problems": fingerprint_of(problems),
        "validation": fingerprint_of(validation),
        "started_from": learner.learned.digest if learner.learned else None,
    }


class Training(ABC, Generic[InstanceT]):
    """One training.

    Everything that is drawn in an update follows from the seed and its number, so a checkpoint holds weights, the
    state of the optimizer and what was best, and no generator.

    Args:
        policy: What to train; changed in place.
        optimizer: Of its weights.
        validation: What to choose weights by; empty: the last ones are taken.
        trials: Makes the runs.
        steps: To make; the last update is taken to its end.
        steps_per_update: Of them, that an update makes.
        validate_every: Updates between two looks at the validation problems.
        seed: Of all randomness.
    """

    def __init__(
        self,
        policy: torch.nn.Module,
        optimizer: torch.optim.Optimizer,
        validation: Sequence[InstanceT],
        trials: Trials,
        *,
        steps: int,
        steps_per_update: int,
        validate_every: int,
        seed: int,
    ) -> None:
        self._network, self._optimizer, self._trials = policy, optimizer, trials
        self._validation, self._validate_every = list(validation), validate_every
        self._total_steps, self._steps_per_update, self._seed = steps, steps_per_update, seed
        self._updates = 0
        self._best_gain: float | None = None
        self._best: dict[str, NDArray[Any]] = weights_of(self._network)
        self._plain: list[Any] = []
        self._seconds = 0.0

    @abstractmethod
    def _update(self) -> dict[str, float]:
        """Makes one update; its metrics."""

    @abstractmethod
    def _proposal(self, instance: InstanceT) -> Proposal:
        """What the policy proposes for a validation problem."""

    def _state(self) -> dict[str, Any]:
        """What a checkpoint holds beside the common state, as a tree."""
        return {}

    def _set_state(self, state: Mapping[str, Any]) -> None:
        """Takes back what :meth:`_state` gave."""

    @property
    def steps(self) -> int:
        """Steps so far, those of validation apart."""
        return self._updates * self._steps_per_update

    @property
    def result(self) -> tuple[dict[str, NDArray[Any]], float | None]:
        """The weights of the training, and their gain on the validation problems, if there are any."""
        return (self._best, self._best_gain) if self._validation else (weights_of(self._network), None)

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
            if self._validation and (last or self._updates % self._validate_every == 0):
                line |= self._validate()
            seconds = max(time.perf_counter() - began, 1e-9)
            line[metrics.STEPS_PER_SECOND.name] = (self.steps - before) / seconds
            line[metrics.ENVIRONMENT_SHARE.name] = self._seconds / seconds
            if monitor is not None:
                monitor.log(self.steps, line)
                monitor.checkpoint(self.steps, lambda folder: self._write(folder, identity), last=last)

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

    def _timed(self, trials: Sequence[Trial]) -> list[Any]:
        began = time.perf_counter()
        ends = self._trials.run(trials)
        self._seconds += time.perf_counter() - began
        return ends

    def _step(self, loss: torch.Tensor, learning_rate: float) -> None:
        for group in self._optimizer.param_groups:
            group["lr"] = learning_rate
        self._optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self._network.parameters(), _MOST_GRADIENT)
        self._optimizer.step()
        self._updates += 1

    @property
    def _left(self) -> float:
        """Share of the training that is left."""
        return max(0.0, 1 - self.steps / self._total_steps)

    # --- validation

    def _validate(self) -> dict[str, float]:
        """What the most likely proposals gain over plain runs; keeps the weights that gain most."""
        rng = np.random.default_rng([self._seed, _VALIDATION])
        seeds = [int(rng.integers(2**63)) for _ in self._validation]
        pairs = list(zip(self._validation, seeds, strict=True))
        plain = self._plain_ends(pairs)
        ends = self._timed([Trial(instance, seed, self._proposal(instance)) for instance, seed in pairs])
        gains = np.array(
            [without.cost(without) - end.cost(without) for end, without in zip(ends, plain, strict=True)]
        )
        gain = float(gains.mean())
        if self._best_gain is None or gain > self._best_gain:
            self._best_gain, self._best = gain, weights_of(self._network)
        line = {metrics.VALIDATION_GAIN.name: gain, metrics.BEST_VALIDATION_GAIN.name: self._best_gain}
        tasks = [instance.task for instance in self._validation]
        for task, metric in _GAINS.items():
            if task in tasks:
                line[metric.name] = float(
                    np.mean([g for g, t in zip(gains, tasks, strict=True) if t == task])
                )
        return line

    def _plain_ends(self, pairs: Sequence[tuple[InstanceT, int]]) -> list[Any]:
        """Runs without a proposal: always the same, so they are made once."""
        if not self._plain:
            self._plain = self._timed([Trial(instance, seed) for instance, seed in pairs])
        return self._plain

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
