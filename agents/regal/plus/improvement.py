"""The expert: a short search from what the policy proposes, to a better solution that is as near to it as can be.

Or the teacher: a long one from nothing that was learned.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .... import _core
from ....graphs.core_graph import core_graph
from ....problems import Order, SchedulingProblem
from ...heuristics.orders import GreedyFreedBytes
from ..trials import End
from .instance import Instance, Keys
from .proposals import Expected
from .targets import Target


@dataclass(frozen=True, eq=False)
class Found:
    """A solution that a search found.

    Attributes:
        target: The solution.
        end: What it is worth.
        drawn: Keys that the search has started from, ``[samples, genes] float32``.
        overflow_share: Of each of them, ``[samples] float64``.
        value: Of each of them, ``[samples] int64``.
    """

    target: Target
    end: End
    drawn: Keys
    overflow_share: NDArray[np.float64]
    value: NDArray[np.int64]

    @property
    def drawn_over_found(self) -> float:
        """Mean value of what was drawn, over that of what was found."""
        return float(self.value.mean()) / max(self.end.value, 1)

    @property
    def advantage(self) -> NDArray[np.float32]:
        """How much better each draw is than the others, by its rank, from -1 to 1, ``[samples]``."""
        rank = np.empty(len(self.value), np.float32)
        rank[np.lexsort((self.value, self.overflow_share))] = np.linspace(1, -1, len(rank))
        return rank


@dataclass(frozen=True)
class Improver:
    """How the expert searches.

    Attributes:
        samples: Keys that are drawn from the policy; the search starts from the best.
        flips: Share of groups that are drawn on the less likely device.
        moves: Moves of the annealing of an order, whose peaks are computed incrementally.
        evaluations: Evaluations of the annealing of devices and priorities.
        temperature: Of both at their start, as a share of the value.
        reconcile: Whether what was changed without need is taken back.
        lessons: Moves or evaluations of the long annealing of a teacher.
    """

    samples: int
    flips: float
    moves: int
    evaluations: int
    temperature: float
    reconcile: bool
    lessons: int

    def improved(self, instance: Instance, expected: Expected, rng: np.random.Generator) -> Found:
        """A better solution near to what the policy expects.

        Good solutions of a graph are many, and their average is none of them: the one to learn is that which is
        nearest to what the policy says already.

        Args:
            instance: The problem.
            expected: What the policy says of it.
            rng: Source of randomness.

        """
        return self._found(
            instance, instance.drawn(expected, self.samples, self.flips, rng), expected, self.moves,
            self.evaluations, rng,
        )  # fmt: skip

    def taught(self, instance: Instance, rng: np.random.Generator) -> Found:
        """A good solution that owes nothing to the policy: a long annealing from the greedy order or a random one."""
        encoding = instance.encoding
        keys = rng.random((self.samples, encoding.genes), np.float32)
        greedy = GreedyFreedBytes().order(SchedulingProblem(instance.problem.graph))
        keys[0] = encoding.encode(Order(greedy))  # with equal affinities: all ops on the first device
        return self._found(instance, keys, None, self.lessons, self.lessons, rng)

    def _found(
        self,
        instance: Instance,
        keys: Keys,
        expected: Expected | None,
        moves: int,
        evaluations: int,
        rng: np.random.Generator,
    ) -> Found:
        """What annealing makes of the best of some keys."""
        decoder = instance.encoding.decoder
        overflow_share, value = decoder.evaluate_all(keys)
        start = keys[np.lexsort((value, overflow_share))[0]]
        seed = int(rng.integers(2**63))
        found = self._annealed(instance, start, moves, evaluations, seed)
        overflow, best = decoder.evaluate(found)
        if self.reconcile and expected is not None:
            found, (overflow, best), _ = decoder.reconcile(found, instance.most_likely(expected), seed)
        solution = instance.encoding.decode(found)
        target = Target.of(instance.encoding, solution, instance.structure.anchor)
        return Found(target, End(int(best), float(overflow)), keys, overflow_share, value)

    def _annealed(
        self, instance: Instance, keys: Keys, moves: int, evaluations: int, seed: int
    ) -> np.ndarray:
        encoding, problem = instance.encoding, instance.problem
        if isinstance(problem, SchedulingProblem):
            start = encoding.decode(keys)
            assert isinstance(start, Order)
            below_any = 0  # a peak that no order has: the search takes its time
            orders = _core.OrderAnnealing(
                core_graph(problem.graph), np.asarray(start.op, np.int32)[None], seed, below_any, self.temperature,
                moves,
            )  # fmt: skip
            orders.run(moves, math.inf)
            return encoding.encode(Order(orders.best_order))
        pairs = _core.KeyAnnealing(encoding.decoder, keys, seed, (0.0, 0), self.temperature, evaluations)
        pairs.run(evaluations, math.inf)
        return np.ascontiguousarray(pairs.best_keys)
