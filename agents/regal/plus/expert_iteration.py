"""Expert iteration: the policy proposes, a short search improves on it, and the policy learns what the search found.

After Anthony et al. 2017, "Thinking Fast and Slow with Deep Learning and Tree Search", with annealing as the search.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from ... import metrics
from ...search.keys import Proposal
from ..task import AnyProblem
from ..training import Training
from ..trials import End, Trials
from .improvement import Improver
from .instance import Instance
from .policy import Policy, losses_of
from .proposals import Expected, Placing
from .shape import Shape
from .targets import Target

#: Weight of the loss of devices.
_DEVICE_WEIGHT = 2.0
#: Decay of weights, and updates in which the step size rises.
_DECAY, _RISE = 1e-3, 50
#: Streams of random numbers.
_WEIGHTS, _ORDER, _UPDATE = range(3)
_VALIDATED = 4


@dataclass(frozen=True)
class Recipe:
    """How to train.

    Attributes:
        placing: How BRKGA uses what the policy says.
        improver: The search.
        graphs: Graphs of an update.
        nearness: How much worse a solution may be, as a share of its value, for being nearer to what the policy says:
            weight of the mean distance of positions and devices.
        learning_rate: Step size of AdamW at its highest; it falls to 0 with a cosine.
        validate_every: Updates between two looks at the validation problems.
        groups: What shares a device, as of ``brkga``.
        transfer_keys: Whether transfers have keys, as of ``brkga``.
    """

    placing: Placing
    improver: Improver
    graphs: int
    nearness: float
    learning_rate: float
    validate_every: int
    groups: str | None
    transfer_keys: bool


@dataclass(frozen=True, eq=False)
class Known:
    """The solution of a training problem that the policy is to learn.

    Attributes:
        target: The solution.
        end: What it is worth.
    """

    target: Target
    end: End

    def distance(self, expected: Expected, *, two_devices: bool) -> float:
        """Mean distance of positions from what the policy says, and of devices if there are two."""
        distance = float(np.abs(self.target.position - expected.position).mean())
        if two_devices:
            distance += float(np.abs(self.target.device_1 - expected.device_1).mean())
        return distance


def new_policy(shape: Shape, seed: int) -> Policy:
    """A policy with random weights."""
    torch.manual_seed(int(np.random.default_rng([seed, _WEIGHTS]).integers(2**63)))
    return Policy(shape)


class ExpertIteration(Training[Instance]):
    """One training.

    Args:
        recipe: How to train.
        policy: What to train; changed in place.
        problems: What to learn from.
        validation: What to choose weights by; empty: the last ones are taken.
        trials: Makes the runs of validation.
        pool: Makes searches side by side; what comes out does not depend on how many.
        steps: Searches to make; the last update is taken to its end.
        seed: Of all randomness.
    """

    def __init__(
        self,
        recipe: Recipe,
        policy: Policy,
        problems: Sequence[AnyProblem],
        validation: Sequence[AnyProblem],
        trials: Trials,
        pool: Executor,
        steps: int,
        seed: int,
    ) -> None:
        self._recipe, self._policy, self._pool = recipe, policy, pool
        self._instances = [self._instance(problem) for problem in problems]
        self._known: dict[int, Known] = {}
        super().__init__(
            policy,
            torch.optim.AdamW(policy.parameters(), lr=recipe.learning_rate, weight_decay=_DECAY),
            [self._instance(problem) for problem in validation],
            trials,
            steps=steps,
            steps_per_update=recipe.graphs,
            validate_every=recipe.validate_every,
            seed=seed,
        )

    def _instance(self, problem: AnyProblem) -> Instance:
        return Instance.of(problem, self._recipe.groups, transfer_keys=self._recipe.transfer_keys)

    def _proposal(self, instance: Instance) -> Proposal:
        return self._recipe.placing.proposal(instance.encoding, self._policy.expects(instance))

    # --- an update

    def _update(self) -> dict[str, float]:
        recipe = self._recipe
        chosen = self._drawn(len(self._instances), recipe.graphs, _ORDER)
        instances = [self._instances[i] for i in chosen]
        said = self._policy.says(instances)
        expected = said.expected()
        found = self._searched(instances, expected, [self._seed, _UPDATE, self._updates])
        for position, instance, what, (known, _) in zip(chosen, instances, expected, found, strict=True):
            self._known[position] = self._chosen(instance, what, self._known.get(position), known)
        known_ones = [self._known[position] for position in chosen]
        losses = losses_of(said, instances, [known.target for known in known_ones])
        loss = losses.position + _DEVICE_WEIGHT * losses.device
        rate = recipe.learning_rate * min(1.0, (self._updates + 1) / _RISE)
        rate *= 0.5 * (1 - math.cos(math.pi * self._left))
        self._step(loss, rate)
        line = {
            metrics.UPDATES.name: float(self._updates),
            metrics.LEARNING_RATE.name: rate,
            metrics.POSITION_LOSS.name: float(losses.position.detach()),
            metrics.DEVICE_LOSS.name: float(losses.device.detach()),
            metrics.TOTAL_LOSS.name: float(loss.detach()),
            metrics.POSITION_ERROR.name: losses.position_error,
            metrics.DRAWN_OVER_FOUND.name: float(
                np.mean([drawn / max(known.end.value, 1) for known, drawn in found])
            ),
            metrics.FEASIBLE_SHARE.name: float(
                np.mean([known.end.overflow_share <= 0 for known in known_ones])
            ),
        }
        if not math.isnan(losses.device_accuracy):
            line[metrics.DEVICE_ACCURACY.name] = losses.device_accuracy
        return line

    def _searched(
        self, instances: Sequence[Instance], expected: Sequence[Expected], stream: list[int]
    ) -> list[tuple[Known, float]]:
        """What the search makes of each, and the mean value of what was drawn."""
        began = time.perf_counter()

        def search(position: int) -> tuple[Known, float]:
            rng = np.random.default_rng([*stream, position])
            target, end, drawn = self._recipe.improver.improved(instances[position], expected[position], rng)
            return Known(target, end), drawn

        found = list(self._pool.map(search, range(len(instances))))
        self._seconds += time.perf_counter() - began
        return found

    def _chosen(self, instance: Instance, expected: Expected, before: Known | None, found: Known) -> Known:
        """The better one of two solutions, where a nearer one may be a little worse."""
        if before is None:
            return found
        two = instance.task.devices > 1
        cost = [
            known.end.cost(before.end) + self._recipe.nearness * known.distance(expected, two_devices=two)
            for known in (before, found)
        ]
        return found if cost[1] <= cost[0] else before

    # --- validation

    def _validate(self) -> dict[str, float]:
        line = super()._validate()
        with torch.inference_mode():
            expected = [self._policy.expects(instance) for instance in self._validation]
        found = self._searched(self._validation, expected, [self._seed, _VALIDATED])
        line[metrics.VALIDATION_POSITION_ERROR.name] = float(
            np.mean(
                [
                    np.abs(known.target.position - what.position).mean()
                    for (known, _), what in zip(found, expected, strict=True)
                ]
            )
        )
        return line

    # --- checkpoints

    def _state(self) -> dict[str, Any]:
        rows = sorted(self._known)
        known = [self._known[row] for row in rows]
        return {
            "known": {
                "problem": np.array(rows, np.int64),
                "value": np.array([k.end.value for k in known], np.int64),
                "overflow_share": np.array([k.end.overflow_share for k in known], np.float64),
                "position": np.concatenate([k.target.position for k in known]),
                "device_1": np.concatenate([k.target.device_1 for k in known]),
            }
        }

    def _set_state(self, state: Mapping[str, Any]) -> None:
        known = {name: np.asarray(array) for name, array in state["known"].items()}
        rows = known["problem"].tolist()
        ends = np.cumsum([self._instances[row].problem.graph.num_ops for row in rows])[:-1]
        parts = [np.split(known[name], ends) for name in ("position", "device_1")]
        self._known = {
            row: Known(Target(position, device_1), End(int(value), float(overflow)))
            for row, position, device_1, value, overflow in zip(
                rows, *parts, known["value"], known["overflow_share"], strict=True
            )
        }
