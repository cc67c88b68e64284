"""Whether solvers keep their order when the model's assumptions change: ``opgym reproduce ranking-robustness``.

Each row of suite ``gdp`` is solved by every heuristic under the default model and under changed ones. Two orders are
compared with the default one: that of the solvers that know the changed model, and that of the placements that
they made for the default one, judged by the changed one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...agents import make
from ...datasets import suite
from ...datasets.suites import Row
from ...graphs import Cluster, Graph
from ...graphs.cluster import CHANNELS
from ...graphs.costs import CostModel, RooflineCost
from ...problems import PlacementProblem
from ...statistics import kendall_tau
from ..parallel import in_order
from ..references.reference import heuristic_names

SUITE = "gdp"
#: Solvers within this share of each other are not ranked.
MARGIN = 0.02
#: With ``quick``: rows up to this many ops.
QUICK_OPS = 4_000
EFFICIENCY_SEEDS = 5
EFFICIENCY = (0.5, 1.0)


@dataclass(frozen=True)
class KindEfficiency:
    """Roofline times in which each kind of op reaches a share of its own of what is possible; launches stay.

    Attributes:
        seed: Of the shares, uniform in ``EFFICIENCY`` by kind.
    """

    seed: int

    def cost_ns(self, graph: Graph, cluster: Cluster) -> NDArray[np.int64]:
        """See :class:`opgym.graphs.costs.CostModel`."""
        ideal = RooflineCost().cost_ns(graph, cluster)
        launch = np.array([profile.launch_overhead_ns for profile in cluster.classes], np.int64)
        share = np.random.default_rng(self.seed).uniform(*EFFICIENCY, len(graph.kinds))[graph.op_kind]
        total: NDArray[np.int64] = np.ceil((ideal - launch) / share[:, None]).astype(np.int64) + launch
        total[graph.is_variable] = 0
        return total


@dataclass(frozen=True)
class Change:
    """One change of the model.

    Attributes:
        launch_ns: Launch overhead of every device.
        bandwidth: Factor on the bandwidth of every link.
        channel: Model of the channels.
        efficiency_seed: Seed of :class:`KindEfficiency`.
    """

    launch_ns: int | None = None
    bandwidth: float = 1.0
    channel: str | None = None
    efficiency_seed: int | None = None

    def of(self, problem: PlacementProblem) -> PlacementProblem:
        """The problem under the changed model."""
        cluster = problem.cluster
        devices = cluster.devices
        if self.launch_ns is not None:
            devices = tuple(replace(device, launch_overhead_ns=self.launch_ns) for device in devices)
        costs: CostModel = problem.costs
        if self.efficiency_seed is not None:
            costs = KindEfficiency(self.efficiency_seed)
        changed = replace(
            cluster,
            devices=devices,
            bytes_per_second=np.rint(cluster.bytes_per_second * self.bandwidth).astype(np.int64),
            channel=self.channel or cluster.channel,
        )
        return replace(problem, cluster=changed, costs=costs)


#: The changes by name. Defaults: 5 us, the link's bandwidth, ``port``, and all of the roofline.
CHANGES: Mapping[str, Change] = MappingProxyType(
    {
        **{f"launch {us} us": Change(launch_ns=us * 1000) for us in (2, 10, 20)},
        "bandwidth x 2": Change(bandwidth=2.0),
        "bandwidth / 2": Change(bandwidth=0.5),
        **{f"efficiency {seed}": Change(efficiency_seed=seed) for seed in range(EFFICIENCY_SEEDS)},
        **{f"channel {name}": Change(channel=name) for name in CHANNELS},
    }
)


def measure(row: Row) -> dict[str, Any]:
    """Solves one row under every model.

    Returns:
        ``row``, ``ops``, ``values`` (solver to step time of the default model), ``seconds``, and ``changes``: by name
        ``solved`` (the solvers know the changed model) and ``kept`` (placements of the default model), each
        solver to step time. Solvers without a valid placement are left out.
    """
    problem = row.problem()
    assert isinstance(problem, PlacementProblem)
    began = time.perf_counter()
    base = _solve_all(problem)
    changes: dict[str, Any] = {}
    for name, change in CHANGES.items():
        changed = change.of(problem)
        solved = _solve_all(changed)
        kept = {solver: changed.evaluate(placement) for solver, (_, placement) in base.items()}
        changes[name] = {
            "solved": {solver: value for solver, (value, _) in solved.items()},
            "kept": {solver: outcome.value for solver, outcome in kept.items() if outcome.ok},
        }
    return {
        "row": row.name,
        "ops": problem.graph.num_ops,
        "values": {solver: value for solver, (value, _) in base.items()},
        "changes": changes,
        "seconds": time.perf_counter() - began,
    }


def _solve_all(problem: PlacementProblem) -> dict[str, tuple[float, Any]]:
    """Value and placement of each heuristic that finds a valid one."""
    found = {}
    for name in heuristic_names(PlacementProblem):
        solver = make(name)
        if solver.skip_reason(problem) is None:
            result: Any = solver.solve(problem, rng=np.random.default_rng(0))
            if result.outcome.ok:
                found[name] = (float(result.outcome.value), result.solution)
    return found


def run(
    *, quick: bool = False, workers: int = 1, progress: Callable[[int, int], None] | None = None
) -> dict[str, Any]:
    """Measures all rows.

    Args:
        quick: Rows of up to 4,000 ops.
        workers: Processes; nothing but seconds depends on how many.
        progress: Told how many of how many rows are done.

    Returns:
        ``rows`` (of :func:`measure`) and ``changes`` (of :func:`summary`).
    """
    chosen = [row for row in suite(SUITE).rows if not quick or row.problem().graph.num_ops <= QUICK_OPS]
    rows: list[dict[str, Any]] = []
    for row in in_order(measure, chosen, workers):
        rows.append(row)
        if progress is not None:
            progress(len(rows), len(chosen))
    return {"suite": SUITE, "margin": MARGIN, "rows": rows, "changes": summary(rows)}


def summary(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A line for each change.

    ``solved`` and ``kept`` each have ``mean_tau`` over rows, ``least_tau`` with ``where``, ``mean_tau_apart`` (over
    pairs that differ by more than the margin under either model), ``same_winner`` (share of rows), and
    ``largest_loss``: how far the default model's winner is above the changed one's.
    """
    return [
        {"change": name, **{how: _compare(rows, name, how) for how in ("solved", "kept")}} for name in CHANGES
    ]


def _compare(rows: Sequence[Mapping[str, Any]], change: str, how: str) -> dict[str, Any]:
    taus, apart, winners, losses = {}, [], [], []
    for row in rows:
        values, changed = row["values"], row["changes"][change][how]
        solvers = sorted(values.keys() & changed.keys())
        lists = [values[s] for s in solvers], [changed[s] for s in solvers]
        tau, _ = kendall_tau(*lists)
        if tau is None:
            continue
        taus[row["row"]] = tau
        beyond, _ = kendall_tau(*lists, margin=MARGIN)
        apart += [] if beyond is None else [beyond]
        best = min(values[s] for s in solvers)
        # Of winners that tie, the one that does best afterwards.
        loss = min(changed[s] for s in solvers if values[s] == best) / min(lists[1]) - 1
        losses.append(loss)
        winners.append(loss == 0)
    if not taus:
        return {}
    where = min(taus, key=lambda name: taus[name])
    return {
        "mean_tau": float(np.mean(list(taus.values()))),
        "least_tau": taus[where],
        "where": where,
        "mean_tau_apart": float(np.mean(apart)) if apart else None,
        "same_winner": float(np.mean(winners)),
        "mean_loss": float(np.mean(losses)),
        "largest_loss": max(losses),
    }
