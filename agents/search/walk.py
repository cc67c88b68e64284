"""A walk over placements that grows colder: the moves of annealing, and when to accept them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ...outcome import Outcome
from ...problems import Evaluator, Placement, PlacementProblem, program_order
from ...problems.grouping import colocation_units, of_units
from ..solver import Remark
from .clusters import Level
from .neighbours import Neighbours

#: How often a move that changes nothing is drawn again before the search gives up.
_REDRAWS = 1_000

#: Units, ``int32``, and the device that they go to.
Move = tuple[NDArray[np.int32], int]


class Proposals(Protocol):
    """Moves of somebody who knows more than chance.

    Attributes:
        share: Of all moves.
    """

    share: float

    def draw(self, device: NDArray[np.uint8], rng: np.random.Generator) -> Sequence[Move]:
        """Moves from a placement, device by unit ``[units]``, that are made at once."""
        ...


def anneal(
    problem: PlacementProblem,
    evaluator: Evaluator[Placement],
    rng: np.random.Generator,
    schedule: Schedule,
    levels: list[Level],
    sequence: NDArray[np.int32] | None,
    started_from: str,
    proposals: Proposals | None = None,
) -> Remark:
    """Walks from the best placement of an evaluator until its schedule is over, or nothing can be better.

    Args:
        problem: The problem.
        evaluator: Has evaluated something.
        rng: Source of all randomness.
        schedule: Of the temperature.
        levels: Clusters that moves take.
        sequence: Units in an order of which moves take stretches, ``[units]``; ``None``: they take none.
        started_from: What found the best placement, for the remark.
        proposals: Makes some of the moves.
    """
    walk = _Walk(problem, evaluator, levels, sequence, rng, proposals)
    while not schedule.over and not walk.optimal and walk.step(schedule.temperature):
        pass
    note = f"started from {started_from} after {walk.evaluated_before} evaluations"
    return Remark(note + (", met the lower bound" if walk.optimal else ""), walk.optimal)


class Schedule:
    """How much of the budget is left, and the temperature that goes with it."""

    def __init__(self, evaluator: Evaluator[Placement], default_evaluations: int, temperature: float) -> None:
        self._evaluator = evaluator
        self._start_temperature = temperature
        budget = evaluator.budget
        self._evaluations = budget.evaluations
        self._seconds = budget.seconds
        if budget.evaluations is None and budget.seconds is None:
            self._evaluations = default_evaluations

    @property
    def over(self) -> bool:
        """Whether no evaluation is left."""
        if self._evaluations is not None and self._evaluator.evaluations >= self._evaluations:
            return True
        return self._evaluator.exhausted

    @property
    def temperature(self) -> float:
        """Temperature as a share of the current value."""
        spent = 0.0
        if self._evaluations is not None:
            spent = self._evaluator.evaluations / self._evaluations
        if self._seconds is not None:
            spent = max(spent, self._evaluator.seconds / self._seconds)
        return self._start_temperature * max(0.0, 1.0 - spent) ** 2


class _Walk:
    """The state of the search: a placement by units, its order and its energy."""

    def __init__(
        self,
        problem: PlacementProblem,
        evaluator: Evaluator[Placement],
        levels: list[Level],
        sequence: NDArray[np.int32] | None,
        rng: np.random.Generator,
        proposals: Proposals | None,
    ) -> None:
        start, outcome = evaluator.best, evaluator.best_outcome
        assert start is not None
        assert outcome is not None
        self._problem = problem
        self._evaluator = evaluator
        self._levels = levels
        self._sequence = sequence
        self._rng = rng
        self._proposals = proposals
        self._unit = colocation_units(problem.graph)
        self._allowed = of_units(problem.allowed, self._unit)
        self._neighbours = Neighbours(problem.graph, self._unit)
        self._device: NDArray[np.uint8] = of_units(np.asarray(start.device), self._unit).astype(np.uint8)
        self._orders: list[NDArray[Any] | None] = [None]
        if problem.objective.simulated:
            self._orders.append(program_order(problem.graph))
        self._order = 0
        if start.priority is not None:  # found by the heuristic in program order or in one of its own
            same = [
                i
                for i, order in enumerate(self._orders)
                if order is not None and np.array_equal(order, start.priority)
            ]
            if not same:
                self._orders.append(start.priority)
            self._order = same[0] if same else len(self._orders) - 1
        self._bound = problem.lower_bound().value
        self._fits = outcome.ok
        self._energy = self._energy_of(outcome)
        self.evaluated_before = evaluator.evaluations

    @property
    def optimal(self) -> bool:
        """Whether nothing can be better than the best placement so far."""
        best = self._evaluator.best_outcome
        return best is not None and best.ok and best.value <= self._bound

    def step(self, temperature: float) -> bool:
        """One move and its evaluation; false if no move that changes anything was found."""
        device, order = self._draw()
        if device is None:
            return False
        outcome = self._evaluator.evaluate(Placement(device[self._unit], self._orders[order]))
        energy = self._energy_of(outcome)
        worse = 0.0 if outcome.ok and not self._fits else energy - self._energy
        if worse <= 0 or self._rng.random() < math.exp(-worse / max(temperature * self._energy, 1e-300)):
            self._device, self._order, self._energy, self._fits = device, order, energy, outcome.ok
        return True

    def _energy_of(self, outcome: Outcome) -> float:
        """The value, or for what does not fit more than the best that does, growing with the overflow."""
        if outcome.ok:
            return outcome.value
        best = self._evaluator.best_outcome
        floor = best.value if best is not None and best.ok else 0.0
        return max(outcome.value, floor) * (1.5 + 5.0 * outcome.overflow_share)

    def _draw(self) -> tuple[NDArray[np.uint8] | None, int]:
        """A neighbouring state: devices of units, and the order; ``None`` if there seems to be none."""
        rng = self._rng
        for _ in range(_REDRAWS):
            kind = rng.random()
            moved: Sequence[Move]
            if self._proposals is not None and rng.random() < self._proposals.share:
                moved = self._proposals.draw(self._device, rng)
            elif kind < 0.01 and len(self._orders) > 1:
                others = len(self._orders) - 1
                return self._device, (self._order + 1 + int(rng.integers(others))) % len(self._orders)
            else:
                moved = self._blind(kind)
            device = self._device.copy()
            for members, target in moved:
                device[members[self._allowed[members, target]]] = target
            if not np.array_equal(device, self._device):
                return device, self._order
        return None, self._order

    def _blind(self, kind: float) -> list[Move]:
        """Moves by chance, of a kind."""
        if kind < 0.16:
            return self._adopt()
        if kind < 0.2:
            return self._exchange()
        if kind < 0.28 and self._sequence is not None:
            return self._move(self._stretch(self._sequence))
        return self._shift()

    def _shift(self) -> list[Move]:
        """A cluster, and where to."""
        level = self._level()
        return self._move(level.members(int(self._rng.integers(len(level)))))

    def _stretch(self, sequence: NDArray[np.int32]) -> NDArray[np.int32]:
        """A stretch of the sequence before or after a random position; its length is anything from 1 to the whole."""
        count = len(sequence)
        length = int(count ** self._rng.random())
        at = int(self._rng.integers(count))
        return (
            sequence[at : at + length]
            if self._rng.random() < 0.5
            else sequence[max(0, at + 1 - length) : at + 1]
        )

    def _move(self, members: NDArray[np.int32]) -> list[Move]:
        """Units, all of them or those on the device of one, to a random device or that of a neighbour."""
        rng = self._rng
        if rng.random() < 0.5:
            members = self._part(members)
        if rng.random() < 0.5:
            return [(members, int(rng.integers(self._allowed.shape[1])))]
        beside = int(members[int(rng.integers(len(members)))])
        return [(members, int(self._device[self._neighbours.draw(beside, rng)]))]

    def _exchange(self) -> list[Move]:
        """Parts of two clusters, each to the device of the other: what moves when every device is full."""
        level = self._level()
        one, other = (self._part(level.members(int(self._rng.integers(len(level))))) for _ in range(2))
        return [(one, int(self._device[other[0]])), (other, int(self._device[one[0]]))]

    def _adopt(self) -> list[Move]:
        """A unit, and the device of one of its neighbours (a random one if they share a device already)."""
        rng = self._rng
        chosen = int(rng.integers(len(self._device)))
        target = int(self._device[self._neighbours.draw(chosen, rng)])
        if target == self._device[chosen]:
            target = int(rng.integers(self._allowed.shape[1]))
        return [(np.array([chosen], np.int32), target)]

    def _level(self) -> Level:
        return self._levels[int(self._rng.integers(len(self._levels)))]

    def _part(self, members: NDArray[np.int32]) -> NDArray[np.int32]:
        """The members on the device of a random one of them."""
        chosen = members[int(self._rng.integers(len(members)))]
        part: NDArray[np.int32] = members[self._device[members] == self._device[chosen]]
        return part
