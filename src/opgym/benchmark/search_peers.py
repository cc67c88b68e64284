"""Public packages around our own evaluation, as ``opgym benchmark search`` runs them.

Each peer gets the evaluation through the thinnest Python function that its interface allows: buffers that the core
reads are bound once, numpy decodes, nothing is checked twice.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _core
from ..errors import MissingExtraError
from ..graphs import Graph
from ..graphs.core_graph import core_graph
from ..problems import PlacementProblem

Float64 = NDArray[np.float64]
#: Population, elites and mutants of every BRKGA here, and the probability to inherit from the elite parent.
POPULATION, ELITES, MUTANTS, BIAS = 100, 20, 15, 0.7


class KeyDecoder:
    """Random keys to peak bytes: per op an affinity for each device (where there are several) and a priority.

    Args:
        problem: With ``free`` channels, whose transfers need no keys, and without colocation groups.
    """

    def __init__(self, problem: PlacementProblem) -> None:
        self.ops = problem.graph.num_ops
        self.devices = len(problem.cluster)
        self.affinities = self.ops * self.devices if self.devices > 1 else 0
        self.keys = self.affinities + self.ops
        self._device = np.zeros(self.ops, np.uint8)
        self._priority = np.zeros(self.ops, np.float32)
        self._run = problem.simulator.bind(self._device, self._priority)

    def __call__(self, keys: Float64) -> float:
        """Peak bytes of the schedule that keys in [0, 1] stand for; resident bytes apart."""
        if self.affinities:
            affinity = keys[: self.affinities].reshape(self.ops, self.devices)
            if self.devices == 2:
                np.greater(affinity[:, 1], affinity[:, 0], out=self._device, casting="unsafe")
            else:
                self._device[:] = affinity.argmax(axis=1)
        self._priority[:] = keys[self.affinities :]
        self._run.run()
        return float(self._run.dynamic_peak_bytes.max())


def brkga_mp_ipr(decode: KeyDecoder, evaluations: int, seed: int) -> tuple[int, float]:
    """Runs brkga-mp-ipr (pure Python, Andrade et al. 2021) for at least so many evaluations.

    Returns:
        Evaluations spent, best value.
    """
    try:
        from brkga_mp_ipr.algorithm import BrkgaMpIpr
        from brkga_mp_ipr.enums import BiasFunctionType, Sense
        from brkga_mp_ipr.types import BrkgaParams
    except ImportError as error:
        raise _missing("brkga-mp-ipr") from error

    class Decoder:
        def decode(self, chromosome: list[float], rewrite: bool) -> float:
            return decode(np.array(chromosome))

    parameters = BrkgaParams()
    parameters.population_size = POPULATION
    parameters.elite_percentage = ELITES / POPULATION
    parameters.mutants_percentage = MUTANTS / POPULATION
    parameters.num_elite_parents, parameters.total_parents = 1, 2
    parameters.bias_type = BiasFunctionType.CONSTANT
    parameters.num_independent_populations = 1
    search = BrkgaMpIpr(Decoder(), Sense.MINIMIZE, seed, decode.keys, parameters)
    # A weight for each of the two parents, best first: the package's way of saying "bias".
    search.set_bias_custom_function(lambda rank: BIAS if rank == 1 else 1 - BIAS)
    search.initialize()
    generations = _generations(evaluations)
    search.evolve(generations)
    return POPULATION + generations * (POPULATION - ELITES), search.get_best_fitness()


def pymoo_brkga(decode: KeyDecoder, evaluations: int, seed: int) -> tuple[int, float]:
    """Runs BRKGA of pymoo (Blank, Deb 2020) for at least so many evaluations.

    Returns:
        Evaluations spent, best value.
    """
    try:
        from pymoo.algorithms.soo.nonconvex.brkga import BRKGA
        from pymoo.core.problem import Problem
        from pymoo.optimize import minimize
    except ImportError as error:
        raise _missing("pymoo") from error

    class Peak(Problem):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__(n_var=decode.keys, n_obj=1, xl=0.0, xu=1.0)

        def _evaluate(self, x: Float64, out: dict[str, Any], *args: Any, **kwargs: Any) -> None:
            out["F"] = np.array([decode(row) for row in x])

    algorithm = BRKGA(
        n_elites=ELITES, n_mutants=MUTANTS, n_offsprings=POPULATION - ELITES - MUTANTS, bias=BIAS
    )
    found = minimize(Peak(), algorithm, ("n_gen", 1 + _generations(evaluations)), seed=seed, verbose=False)
    return int(found.algorithm.evaluator.n_eval), float(found.F[0])


def _generations(evaluations: int) -> int:
    """Generations after the first that reach so many evaluations."""
    return max(0, math.ceil((evaluations - POPULATION) / (POPULATION - ELITES)))


def simanneal_orders(
    graph: Graph, order: NDArray[np.int32], evaluations: int, temperature: float, seed: int
) -> tuple[int, float]:
    """Runs the package simanneal on orders: an op moves to another legal place, the peak is computed anew.

    Args:
        graph: Its ops are no variables.
        order: Where to start, ``[ops] int32``.
        evaluations: Moves.
        temperature: Of the start, as a share of the peak; it falls to a thousandth of that.
        seed: Of the moves.

    Returns:
        Evaluations spent, best value.
    """
    random, annealer_class = _simanneal()
    peak: Callable[[NDArray[np.int32]], int] = _core.OrderPeak(core_graph(graph)).peak
    producer, consumer, _ = graph.edges
    before = _lists(consumer, producer, graph.num_ops)
    after = _lists(producer, consumer, graph.num_ops)
    draws = np.random.default_rng(seed)
    random.seed(seed)

    class Orders(annealer_class):  # type: ignore[misc, valid-type]
        copy_strategy = "method"
        updates = 0
        steps = evaluations
        Tmax = temperature * peak(order)
        Tmin = Tmax / 1000

        def move(self) -> None:
            state = self.state
            position = np.empty(len(state), np.int32)
            position[state] = np.arange(len(state), dtype=np.int32)
            at = int(draws.integers(len(state)))
            op = int(state[at])
            low = int(position[before[op]].max(initial=-1)) + 1
            high = int(position[after[op]].min(initial=len(state))) - 1
            to = int(draws.integers(low, high + 1))
            if to > at:
                state[at:to] = state[at + 1 : to + 1]
            else:
                state[to + 1 : at + 1] = state[to:at].copy()
            state[to] = op

        def energy(self) -> int:
            return peak(self.state)

    annealer = Orders(np.ascontiguousarray(order, np.int32))
    _, best = annealer.anneal()
    return evaluations + 1, float(best)


def simanneal_pairs(decode: KeyDecoder, evaluations: int, temperature: float, seed: int) -> tuple[int, float]:
    """Runs the package simanneal on devices and priorities, with the moves of ``pair-annealing``.

    Args:
        decode: Of a problem with several devices.
        evaluations: Moves.
        temperature: Of the start, as a share of the peak; it falls to a thousandth of that.
        seed: Of the start and the moves.

    Returns:
        Evaluations spent, best value.
    """
    random, annealer_class = _simanneal()
    draws = np.random.default_rng(seed)
    random.seed(seed)
    start = draws.random(decode.keys)

    class Pairs(annealer_class):  # type: ignore[misc, valid-type]
        copy_strategy = "method"
        updates = 0
        steps = evaluations
        Tmax = temperature * decode(start)
        Tmin = Tmax / 1000

        def move(self) -> None:
            state = self.state
            if draws.random() < 0.5:
                first = int(draws.integers(decode.ops)) * decode.devices
                state[first : first + decode.devices] = draws.random(decode.devices)
                return
            for _ in range(int(draws.integers(1, 4))):
                at = decode.affinities + int(draws.integers(decode.ops))
                near = draws.random() < 0.5
                state[at] = min(1, max(0, state[at] + draws.uniform(-0.05, 0.05))) if near else draws.random()

        def energy(self) -> float:
            return decode(self.state)

    _, best = Pairs(start).anneal()
    return evaluations + 1, float(best)


def _simanneal() -> tuple[Any, Any]:
    """The generator by which simanneal accepts (that of the module ``random``), and its base class."""
    try:
        from simanneal import Annealer
    except ImportError as error:
        raise _missing("simanneal") from error
    import random

    return random, Annealer


def _lists(tail: NDArray[Any], head: NDArray[Any], ops: int) -> list[NDArray[np.int64]]:
    """Heads of each tail."""
    order = np.argsort(tail, kind="stable")
    cut = np.cumsum(np.bincount(tail, minlength=ops))[:-1]
    return [part.astype(np.int64) for part in np.split(head[order], cut)]


def _missing(package: str) -> MissingExtraError:
    return MissingExtraError(
        f"the benchmark compares with {package}, which is not installed; run: pip install 'opgym[peers]'"
    )
