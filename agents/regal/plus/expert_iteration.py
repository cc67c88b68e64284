"""Expert iteration: the policy proposes, a short search improves on it, and the policy learns what the search found.

After Anthony et al. 2017, "Thinking Fast and Slow with Deep Learning and Tree Search", with annealing as the search.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from ....problems import AnyProblem
from ... import metrics
from ...search.keys import Proposal
from ..training import ProposalTraining
from ..trials import End, Trials
from .improvement import Found, Improver
from .instance import Instance
from .policy import Policy, losses_of, policy_loss_of
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
        distilled: Share of the training, its beginning, in which the policy learns what a teacher has found.
        policy_gradient: Weight of the loss of REINFORCE on the positions that are drawn.
        learning_rate: Step size of AdamW at its highest; it falls to 0 with a cosine.
        validate_every: Updates between two looks at the validation problems.
        groups: What shares a device, as of ``brkga``.
        transfer_keys: Whether transfers have keys, as of ``brkga``.
    """

    placing: Placing
    improver: Improver
    graphs: int
    nearness: float
    distilled: float
    policy_gradient: float
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
    return Policy.untrained(shape, int(np.random.default_rng([seed, _WEIGHTS]).integers(2**63)))


class ExpertIteration(ProposalTraining[Instance]):
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
        line: dict[str, float] = {}
        found: list[Found] = []
        if self._distils:
            self._taught(chosen)
        else:
            found = self._improved(chosen, said.expected())
        known_ones = [self._known[position] for position in chosen]
        losses = losses_of(said, instances, [known.target for known in known_ones])
        loss = losses.position + _DEVICE_WEIGHT * losses.device
        if found:
            line[metrics.DRAWN_OVER_FOUND.name] = float(np.mean([one.drawn_over_found for one in found]))
            if recipe.policy_gradient > 0:
                loss = loss + recipe.policy_gradient * policy_loss_of(said, instances, found)
        rate = recipe.learning_rate * min(1.0, (self._updates + 1) / _RISE)
        rate *= 0.5 * (1 - math.cos(math.pi * self._left))
        self._step(loss, rate)
        line |= {
            metrics.UPDATES.name: float(self._updates),
            metrics.LEARNING_RATE.name: rate,
            metrics.POSITION_LOSS.name: float(losses.position.detach()),
            metrics.DEVICE_LOSS.name: float(losses.device.detach()),
            metrics.TOTAL_LOSS.name: float(loss.detach()),
            metrics.POSITION_ERROR.name: losses.position_error,
            metrics.FEASIBLE_SHARE.name: float(
                np.mean([known.end.overflow_share <= 0 for known in known_ones])
            ),
        }
        if not math.isnan(losses.device_accuracy):
            line[metrics.DEVICE_ACCURACY.name] = losses.device_accuracy
        return line

    @property
    def _distils(self) -> bool:
        """Whether the policy still learns from the teacher."""
        return 1 - self._left < self._recipe.distilled

    def _taught(self, chosen: Sequence[int]) -> None:
        """Has a teacher solve those that nothing is known of; each problem is solved once."""
        new = [position for position in dict.fromkeys(chosen) if position not in self._known]
        taught, instances = self._recipe.improver.taught, [self._instances[position] for position in new]
        found = self._searched(lambda at, rng: taught(instances[at], rng), len(new), _UPDATE, self._updates)
        self._known |= {
            position: Known(one.target, one.end) for position, one in zip(new, found, strict=True)
        }

    def _improved(self, chosen: Sequence[int], expected: Sequence[Expected]) -> list[Found]:
        """Improves on what the policy expects of each; what is better, or as good and nearer, is known from now on."""
        improved, instances = (
            self._recipe.improver.improved,
            [self._instances[position] for position in chosen],
        )
        found = self._searched(
            lambda at, rng: improved(instances[at], expected[at], rng), len(chosen), _UPDATE, self._updates
        )
        for position, instance, what, one in zip(chosen, instances, expected, found, strict=True):
            known = Known(one.target, one.end)
            self._known[position] = self._chosen(instance, what, self._known.get(position), known)
        return found

    def _searched(
        self, search: Callable[[int, np.random.Generator], Found], count: int, *stream: int
    ) -> list[Found]:
        """The results of so many searches, each with random numbers of its own."""
        began = time.perf_counter()
        rngs = [np.random.default_rng([self._seed, *stream, position]) for position in range(count)]
        found = list(self._pool.map(search, range(count), rngs))
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

    def _validated(self) -> tuple[float, dict[str, float]]:
        gain, line = super()._validated()
        with torch.inference_mode():
            expected = [self._policy.expects(instance) for instance in self._validation]
        improved = self._recipe.improver.improved
        found = self._searched(
            lambda at, rng: improved(self._validation[at], expected[at], rng), len(expected), _VALIDATED
        )
        line[metrics.VALIDATION_POSITION_ERROR.name] = float(
            np.mean(
                [
                    np.abs(one.target.position - what.position).mean()
                    for one, what in zip(found, expected, strict=True)
                ]
            )
        )
        return gain, line

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
