"""Training of a placer on many problems."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....outcome import Outcome
from ....problems import PlacementProblem
from ... import metrics
from ..training import Training
from .judging import Judge, Reward, uncounted
from .placer import Placer

#: Streams of random numbers.
_ORDER, _UPDATE = 1, 2


class PlacerTraining(Training):
    """One training: problems in turn, an update of each.

    Args:
        placer: What to train; changed in place.
        problems: What to learn from; read where they are drawn, so they may be a sequence that makes them.
        validation: What to choose weights by; empty: the last ones are taken.
        steps: Placements to try; the last update is taken to its end.
        validate_every: Updates between two looks at the validation problems.
        anneal: Whether the step size falls to 0 in the course of the training.
        seed: Of all randomness.
    """

    def __init__(
        self,
        placer: Placer[Any],
        problems: Sequence[PlacementProblem],
        validation: Sequence[PlacementProblem],
        *,
        steps: int,
        validate_every: int,
        anneal: bool,
        seed: int,
    ) -> None:
        super().__init__(
            placer.policy,
            placer.optimizer,
            steps=steps,
            validate_every=validate_every if len(validation) else 0,
            seed=seed,
        )
        self._placer, self._problems, self._validation = placer, problems, validation
        self._learning_rate, self._anneal = placer.learning_rate, anneal
        self._made = 0
        self._instances: dict[int, Any] = {}

    @property
    def steps(self) -> int:
        return self._made

    def _update(self) -> dict[str, float]:
        (at,) = self._drawn(len(self._problems), 1, _ORDER)
        problem, placer = self._problems[at], self._placer
        if self._anneal:
            placer.learning_rate = self._learning_rate * self._left
        rng = np.random.default_rng([self._seed, _UPDATE, self._updates])
        tried, line = placer.update(self._instance(at), self._timed(uncounted(problem)), rng)
        self._made += tried
        self._updates += 1
        return line | {
            metrics.UPDATES.name: float(self._updates),
            metrics.LEARNING_RATE.name: placer.learning_rate,
        }

    def _instance(self, at: int) -> Any:
        if at not in self._instances:
            self._instances[at] = self._placer.instance(self._problems[at])
        return self._instances[at]

    def _timed(self, judge: Judge) -> Judge:
        def timed(device: NDArray[np.uint8]) -> Outcome:
            began = time.perf_counter()
            outcome = judge(device)
            self._seconds += time.perf_counter() - began
            return outcome

        return timed

    def _validated(self) -> tuple[float, dict[str, float]]:
        """1 - the geometric mean of what the most likely placements cost, in that of a single device."""
        costs = [cost_of(problem, self._placer) for problem in self._validation]
        gain = 1 - float(np.exp(np.mean(np.log(costs))))
        return gain, {metrics.VALIDATION_GAIN.name: gain}

    def _state(self) -> dict[str, Any]:
        return {"made": self._made, "placer": self._placer.state()}

    def _set_state(self, state: Mapping[str, Any]) -> None:
        self._made = state["made"]
        self._placer.set_state(state["placer"])


def cost_of(problem: PlacementProblem, placer: Placer[Any]) -> float:
    """Square of the reward of the most likely placement, negated: its value over that of a single device, or 100."""
    outcome = uncounted(problem)(placer.greedy(placer.instance(problem)))
    return Reward.of(problem)(outcome) ** 2
