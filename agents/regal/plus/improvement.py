"""The expert: a short search from what the policy proposes, to a better solution that is as near to it as can be."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .... import _core
from ....graphs.simulate import core_graph
from ....problems import Order, SchedulingProblem
from ..trials import End
from .instance import Instance
from .proposals import Expected
from .targets import Target


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
    """

    samples: int
    flips: float
    moves: int
    evaluations: int
    temperature: float
    reconcile: bool

    def improved(
        self, instance: Instance, expected: Expected, rng: np.random.Generator
    ) -> tuple[Target, End, float]:
        """A better solution near to what the policy expects.

        Good solutions of a graph are many, and their average is none of them: the one to learn is that which is
        nearest to what the policy says already.

        Args:
            instance: The problem.
            expected: What the policy says of it.
            rng: Source of randomness.

        Returns:
            The solution as a target, what it is worth, and the mean value of what was drawn.
        """
        decoder = instance.encoding.decoder
        keys = instance.drawn(expected, self.samples, self.flips, rng)
        overflow_share, value = decoder.evaluate_all(keys)
        start = keys[np.lexsort((value, overflow_share))[0]]
        seed = int(rng.integers(2**63))
        found = self._annealed(instance, start, seed)
        overflow, best = decoder.evaluate(found)
        if self.reconcile:
            found, (overflow, best), _ = decoder.reconcile(found, instance.most_likely(expected), seed)
        solution = instance.encoding.decode(found)
        target = Target.of(instance.encoding, solution, instance.structure.anchor)
        return target, End(int(best), float(overflow)), float(value.mean())

    def _annealed(self, instance: Instance, keys: np.ndarray, seed: int) -> np.ndarray:
        encoding, problem = instance.encoding, instance.problem
        if isinstance(problem, SchedulingProblem):
            start = encoding.decode(keys)
            assert isinstance(start, Order)
            graph, nothing = (
                core_graph(problem.graph),
                0,
            )  # a peak that no order has: the search takes its time
            orders = _core.OrderAnnealing(
                graph, np.asarray(start.op, np.int32)[None], seed, nothing, self.temperature, self.moves
            )
            orders.run(self.moves, math.inf)
            return encoding.encode(Order(orders.best_order))
        pairs = _core.KeyAnnealing(encoding.decoder, keys, seed, (0.0, 0), self.temperature, self.evaluations)
        pairs.run(self.evaluations, math.inf)
        return np.ascontiguousarray(pairs.best_keys)
