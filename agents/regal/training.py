"""What every training of a policy for BRKGA does: runs with its proposals, and runs without to compare them with."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
import torch

from ...problems import AnyProblem
from .. import metrics
from ..networks.options import identity_of as of_learner
from ..networks.training import Training
from ..search.keys import Proposal
from .learned import fingerprint_of
from .task import Task
from .trials import Proposable, Trial, Trials

if TYPE_CHECKING:
    from .base import ProposalLearner

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
    return of_learner(
        checkpoints,
        learner,
        network,
        _OUTSIDE,
        steps=steps,
        seed=seed,
        problems=fingerprint_of(problems),
        validation=fingerprint_of(validation),
    )


class ProposalTraining(Training, Generic[InstanceT]):
    """One training.

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
        super().__init__(
            policy,
            optimizer,
            steps=steps,
            validate_every=validate_every if len(validation) else 0,
            seed=seed,
        )
        self._trials, self._validation = trials, list(validation)
        self._steps_per_update = steps_per_update
        self._plain: list[Any] = []

    @abstractmethod
    def _proposal(self, instance: InstanceT) -> Proposal:
        """What the policy proposes for a validation problem."""

    @property
    def steps(self) -> int:
        return self._updates * self._steps_per_update

    def _timed(self, trials: Sequence[Trial]) -> list[Any]:
        began = time.perf_counter()
        ends = self._trials.run(trials)
        self._seconds += time.perf_counter() - began
        return ends

    def _validated(self) -> tuple[float, dict[str, float]]:
        """What the most likely proposals gain over plain runs."""
        rng = np.random.default_rng([self._seed, _VALIDATION])
        seeds = [int(rng.integers(2**63)) for _ in self._validation]
        pairs = list(zip(self._validation, seeds, strict=True))
        plain = self._plain_ends(pairs)
        ends = self._timed([Trial(instance, seed, self._proposal(instance)) for instance, seed in pairs])
        gains = np.array(
            [without.cost(without) - end.cost(without) for end, without in zip(ends, plain, strict=True)]
        )
        gain = float(gains.mean())
        line = {metrics.VALIDATION_GAIN.name: gain}
        tasks = [instance.task for instance in self._validation]
        for task, metric in _GAINS.items():
            if task in tasks:
                line[metric.name] = float(
                    np.mean([g for g, t in zip(gains, tasks, strict=True) if t == task])
                )
        return gain, line

    def _plain_ends(self, pairs: Sequence[tuple[InstanceT, int]]) -> list[Any]:
        """Runs without a proposal: always the same, so they are made once."""
        if not self._plain:
            self._plain = self._timed([Trial(instance, seed) for instance, seed in pairs])
        return self._plain
