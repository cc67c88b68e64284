"""How fast the searches are: CPU time per evaluation against public packages around the same evaluation.

Machines are shared and differ, so ratios are what is held to bars, and the CPU seconds that the design states for one
case. ``docs/search.md`` has the figures of one machine.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, TypeVar

import numpy as np

from .. import _core
from ..agents import make
from ..agents.heuristics.orders import GreedyFreedBytes
from ..datasets import read
from ..graphs import Cluster
from ..graphs.core_graph import core_graph
from ..graphs.readers import Imported
from ..problems import Budget, Objective, PlacementProblem, SchedulingProblem
from .search_peers import (
    BIAS,
    ELITES,
    MUTANTS,
    POPULATION,
    KeyDecoder,
    brkga_mp_ipr,
    pymoo_brkga,
    simanneal_orders,
    simanneal_pairs,
)

EVALUATIONS = 5_000
MOVES = 200_000
_ROUNDS = 3
_TEMPERATURE = 0.02
_T = TypeVar("_T")


@dataclass(frozen=True)
class Row:
    """One measured case.

    Attributes:
        case: What was measured, and against what.
        ops: Ops of the graph.
        devices: Devices of the cluster.
        evaluations: Evaluations that our search spent.
        seconds: CPU time of our search with everything it prepares, the best of three runs.
        peer: What it is compared with.
        ratio_to_peer: CPU time of the peer / ours, each per evaluation.
        peer_evaluations: Evaluations that the peer spent.
        value: Best peak that ours found, bytes; ``None`` where nothing is sought.
        peer_value: Best peak that the peer found; ``None`` where it spent fewer evaluations.
        bar_seconds: The most seconds that the design allows.
        bar_ratio: The least ratio that the design allows.
        within_bar: Whether the bars hold; ``None`` where there is none.
    """

    case: str
    ops: int
    devices: int
    evaluations: int
    seconds: float
    peer: str
    ratio_to_peer: float
    peer_evaluations: int
    value: float | None = None
    peer_value: float | None = None
    bar_seconds: float | None = None
    bar_ratio: float | None = None
    within_bar: bool | None = None


def run(progress: Callable[[str], None] | None = None) -> list[dict[str, Any]]:
    """Measures every case.

    Args:
        progress: Told the name of each case before it is measured.

    Returns:
        One dictionary per case, with the fields of :class:`Row`.

    Raises:
        MissingExtraError: A peer is not installed.
    """
    rows = []
    for name, measure in _cases():
        if progress is not None:
            progress(name)
        rows.append(asdict(measure(name)))
    return rows


def _cases() -> Iterator[tuple[str, Callable[[str], Row]]]:
    sparse, dense = "synthetic/ws?n=1000&seed=0", "synthetic/er?n=1000&p=0.05&seed=0"
    yield "brkga-2-devices-vs-brkga-mp-ipr", partial(_brkga, sparse, 2, brkga_mp_ipr, 1.2, 5.0)
    yield "brkga-2-devices-vs-pymoo", partial(_brkga, sparse, 2, pymoo_brkga, 1.2, 2.0)
    yield "brkga-2-devices-dense-vs-pymoo", partial(_brkga, dense, 2, pymoo_brkga, None, None)
    yield "brkga-1-device-vs-brkga-mp-ipr", partial(_brkga, sparse, 1, brkga_mp_ipr, None, None)
    yield "brkga-1-device-vs-pymoo", partial(_brkga, sparse, 1, pymoo_brkga, None, None)
    yield "annealing-pairs-2-devices-vs-simanneal", partial(_pairs, sparse)
    yield "annealing-orders-1000-vs-simanneal", partial(_annealing, sparse, MOVES)
    yield "annealing-orders-1000-vs-whole-peaks", partial(_whole_peaks, sparse)
    large = "synthetic/ws?n=10000&seed=0"
    yield "annealing-orders-10000-vs-simanneal", partial(_annealing, large, 2_000)
    yield "annealing-orders-10000-vs-whole-peaks", partial(_whole_peaks, large)


def _brkga(
    graph_id: str,
    devices: int,
    peer: Callable[[KeyDecoder, int, int], tuple[int, float]],
    bar_seconds: float | None,
    bar_ratio: float | None,
    name: str,
) -> Row:
    """Peak memory; transfers are free. Both decode the same keys with the same simulator."""
    imported = read(graph_id)
    placing = _placement_problem(imported, devices)
    problem = placing if devices > 1 else SchedulingProblem(imported.graph)
    solver = make("brkga", population=POPULATION, elites=ELITES, mutants=MUTANTS, bias=BIAS, threads=1)
    seconds, result = _best(
        lambda: solver.solve(problem, Budget(evaluations=EVALUATIONS), np.random.default_rng(0))
    )
    decoder = KeyDecoder(placing)
    peer_seconds, (peer_evaluations, peer_value) = _timed(lambda: peer(decoder, EVALUATIONS, 0))
    ratio = peer_seconds / peer_evaluations / (seconds / result.evaluations)
    within = None
    if bar_seconds is not None and bar_ratio is not None:
        within = seconds < bar_seconds and ratio >= bar_ratio
    package = "brkga-mp-ipr" if peer is brkga_mp_ipr else "pymoo"
    return Row(
        name, imported.graph.num_ops, devices, result.evaluations, seconds, package, ratio, peer_evaluations,
        result.outcome.value, peer_value, bar_seconds, bar_ratio, within,
    )  # fmt: skip


def _placement_problem(imported: Imported, devices: int) -> PlacementProblem:
    assert imported.costs is not None
    return PlacementProblem(
        imported.graph, Cluster.parse(f"{devices}xREGAL"), Objective.PEAK_MEMORY, imported.costs
    )


def _pairs(graph_id: str, name: str) -> Row:
    """Annealing on (device, priority) pairs against simanneal with the same moves and the same simulator."""
    problem = _placement_problem(read(graph_id), 2)
    solver = make("pair-annealing", temperature=_TEMPERATURE)
    seconds, result = _best(
        lambda: solver.solve(problem, Budget(evaluations=EVALUATIONS), np.random.default_rng(0))
    )
    decoder = KeyDecoder(problem)
    peer_seconds, (peer_evaluations, peer_value) = _timed(
        lambda: simanneal_pairs(decoder, EVALUATIONS, _TEMPERATURE, 0)
    )
    ratio = peer_seconds / peer_evaluations / (seconds / result.evaluations)
    return Row(
        name, problem.graph.num_ops, 2, result.evaluations, seconds, "simanneal", ratio, peer_evaluations,
        result.outcome.value, peer_value,
    )  # fmt: skip


def _annealing(graph_id: str, peer_moves: int, name: str) -> Row:
    """Annealing on orders against simanneal, which computes the peak of every order anew."""
    problem = SchedulingProblem(read(graph_id).graph)
    solver = make("order-annealing", temperature=_TEMPERATURE)
    seconds, result = _best(
        lambda: solver.solve(problem, Budget(evaluations=MOVES), np.random.default_rng(0))
    )
    start = GreedyFreedBytes().order(problem)
    peer_seconds, (peer_evaluations, peer_value) = _timed(
        lambda: simanneal_orders(problem.graph, start, peer_moves, _TEMPERATURE, 0)
    )
    ratio = peer_seconds / peer_evaluations / (seconds / result.evaluations)
    return Row(
        name, problem.graph.num_ops, 1, result.evaluations, seconds, "simanneal", ratio, peer_evaluations,
        result.outcome.value, peer_value if peer_evaluations >= result.evaluations else None,
    )  # fmt: skip


def _whole_peaks(graph_id: str, name: str) -> Row:
    """A move of annealing against the fastest way of computing one peak anew: the same order, in the core."""
    problem = SchedulingProblem(read(graph_id).graph)
    solver = make("order-annealing", temperature=_TEMPERATURE)
    seconds, result = _best(
        lambda: solver.solve(problem, Budget(evaluations=MOVES), np.random.default_rng(0))
    )
    peak = _core.OrderPeak(core_graph(problem.graph)).peak
    order = np.ascontiguousarray(result.solution.op, np.int32)
    evaluations = max(100, 5_000_000 // problem.graph.num_ops)
    peer_seconds, _ = _best(lambda: [peak(order) for _ in range(evaluations)])
    ratio = peer_seconds / evaluations / (seconds / result.evaluations)
    return Row(
        name, problem.graph.num_ops, 1, result.evaluations, seconds, "whole peak of each order", ratio, evaluations
    )  # fmt: skip


def _best(call: Callable[[], _T]) -> tuple[float, _T]:
    """The least CPU time of several calls, and what the last one returned."""
    timed = [_timed(call) for _ in range(_ROUNDS)]
    return min(seconds for seconds, _ in timed), timed[-1][1]


def _timed(call: Callable[[], _T]) -> tuple[float, _T]:
    """CPU time of a call in seconds, and what it returned."""
    began = time.process_time()
    returned = call()
    return time.process_time() - began, returned
