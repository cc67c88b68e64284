"""Simulated peaks against bytes that torch really allocates, order by order: ``opgym reproduce memory-truth``.

Each network's training step is recorded as a graph and then run on real tensors, one op after the other, in program
order, in a good order, in a bad one and in others between. Orders are simulated by the same code that every solver
is judged by; what is measured is what torch's allocator says (:mod:`.allocations`). Besides, the step runs as torch's
users run it, by autograd and optimizer: there is no graph in that, and it has program order alone.
"""

from __future__ import annotations

import heapq
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...agents import make
from ...errors import MissingExtraError
from ...graphs import Graph
from ...problems import Budget, Order, SchedulingProblem
from ...statistics import kendall_tau
from ..parallel import in_order

#: Bars: share by which a peak may be off, and how alike orders have to be ranked.
TOLERANCE, MIN_TAU = 0.05, 0.9
#: Orders are ranked where their peaks differ by more than this share.
MARGIN = 0.02
PROGRAM, GOOD, BAD = "program-order", "order-search", "worst random"
#: Solvers whose orders lie between.
OTHERS = ("bfs", "dfs", "greedy-freed-bytes")
EVALUATIONS, RANDOM_ORDERS = 2_000, 100
#: With ``quick``.
QUICK_NETWORKS, QUICK_EVALUATIONS = ("rnnlm-2l", "randwire", "densenet"), 300


def orders(problem: SchedulingProblem, *, evaluations: int = EVALUATIONS) -> dict[str, np.ndarray[Any, Any]]:
    """The orders to run: the program's, a good one, some heuristics', a random one and the worst of many random ones.

    Args:
        problem: The graph.
        evaluations: Of the search for the good one.
    """
    budget = Budget(evaluations=evaluations)
    found = {}
    for name in (PROGRAM, GOOD, *OTHERS):
        found[name] = np.asarray(make(name).solve(problem, budget, np.random.default_rng(0)).solution.op)
    rng = np.random.default_rng(1)
    drawn = [random_order(problem.graph, rng) for _ in range(RANDOM_ORDERS)]
    found["random"] = drawn[0]
    found[BAD] = max(drawn, key=lambda order: problem.evaluate(Order(order)).value)
    return found


def random_order(graph: Graph, rng: np.random.Generator) -> np.ndarray[Any, Any]:
    """A legal order in which the ready op with the least of random keys goes first; without variables."""
    keys = rng.random(graph.num_ops).tolist()
    waiting = [0] * graph.num_ops
    readers: list[set[int]] = [set() for _ in range(graph.num_ops)]
    for producer, consumer in zip(*(side.tolist() for side in graph.edges[:2]), strict=True):
        readers[producer].add(consumer)
    for consumers in readers:
        for op in consumers:
            waiting[op] += 1
    ready = [(keys[op], op) for op in range(graph.num_ops) if not waiting[op]]
    heapq.heapify(ready)
    order = []
    while ready:
        _, op = heapq.heappop(ready)
        if not graph.is_variable[op]:
            order.append(op)
        for reader in readers[op]:
            waiting[reader] -= 1
            if not waiting[reader]:
                heapq.heappush(ready, (keys[reader], reader))
    return np.array(order, np.int32)


def measure(name: str, *, evaluations: int = EVALUATIONS) -> dict[str, Any]:
    """Simulates and runs the training step of one network in every order.

    Args:
        name: Of one of :func:`.truth_nets.workloads`.
        evaluations: See :func:`orders`.

    Returns:
        The row: ``network``, ``ops``, ``resident_bytes`` (simulated), ``measured_resident_bytes``, ``orders`` (each
        ``order``, ``simulated_bytes``, ``measured_bytes``, ``ratio``, ``step_ratio``, ``without_workspaces_bytes``,
        ``peak_kind``: the op during which most was out), ``tau``, ``tau_without_workspaces``, ``ranked_pairs``,
        ``by_torch`` (``measured_bytes``, ``ratio``, ``step_ratio``).
        Peaks include what is resident, ``ratio`` is measured over simulated, and ``step_ratio`` is that of the bytes
        above what is resident.
    """
    import torch

    from ...graphs.readers.torch import executable
    from .allocations import peak_of_program, peak_of_training
    from .truth_nets import workloads

    workload = workloads()[name]
    assert workload.optimizer is not None
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        module = workload.network()
    arguments = tuple(argument.placeholder("cpu") for argument in workload.arguments)
    program = executable(module, arguments, optimizer=workload.optimizer, name=name)
    problem = SchedulingProblem(program.graph)
    resident = problem.resident_bytes
    lines: list[dict[str, Any]] = []
    measured_resident = 0
    for label, order in orders(problem, evaluations=evaluations).items():
        step = int(problem.evaluate(Order(order)).value)
        peak = peak_of_program(program, module, order.tolist())
        measured_resident = peak.resident_bytes
        lines.append(
            {
                "order": label,
                "simulated_bytes": step + resident,
                "measured_bytes": peak.bytes,
                "ratio": peak.bytes / (step + resident),
                "step_ratio": (peak.bytes - peak.resident_bytes) / step,
                "without_workspaces_bytes": peak.lasting_bytes,
                "peak_kind": problem.graph.kind(int(order[max(peak.call, 0)])),
            }
        )
    by_torch = peak_of_training(workload.network, arguments, workload.optimizer)
    simulated = lines[0]["simulated_bytes"]
    tau, pairs = _tau(lines, "measured_bytes")
    return {
        "network": name,
        "ops": len(problem.ops),
        "resident_bytes": resident,
        "measured_resident_bytes": measured_resident,
        "orders": lines,
        "tau": tau,
        "tau_without_workspaces": _tau(lines, "without_workspaces_bytes")[0],
        "ranked_pairs": pairs,
        "by_torch": {
            "measured_bytes": by_torch.bytes,
            "ratio": by_torch.bytes / simulated,
            "step_ratio": (by_torch.bytes - by_torch.resident_bytes) / (simulated - resident),
        },
    }


def _tau(lines: Sequence[Mapping[str, Any]], measured: str) -> tuple[float | None, int]:
    """How alike orders are ranked, simulated and measured."""
    return kendall_tau(
        [line["simulated_bytes"] for line in lines], [line[measured] for line in lines], margin=MARGIN
    )


def _measure_quick(name: str) -> dict[str, Any]:
    return measure(name, evaluations=QUICK_EVALUATIONS)


def run(
    *, quick: bool = False, workers: int = 1, progress: Callable[[int, int], None] | None = None
) -> dict[str, Any]:
    """Measures all networks.

    Args:
        quick: Three networks, and a shorter search for the good order.
        workers: Processes; no figure depends on how many.
        progress: Told how many of how many networks are done.

    Returns:
        ``rows`` (of :func:`measure`), ``summary``.

    Raises:
        MissingExtraError: torch is not installed.
    """
    # Else the profiler's library writes to stderr at each use. It reads this once, when a process loads torch.
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")
    try:
        from .truth_nets import workloads
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] != "torch":
            raise
        raise MissingExtraError(
            "memory-truth runs networks with the package torch, which is not installed: pip install 'opgym[zoo]'"
        ) from error
    names = list(QUICK_NETWORKS if quick else workloads())
    rows: list[dict[str, Any]] = []
    for row in in_order(_measure_quick if quick else measure, names, workers):
        rows.append(row)
        if progress is not None:
            progress(len(rows), len(names))
    return {"rows": rows, "summary": summary(rows)}


def summary(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """How near the simulation comes, and whether the bars are met.

    Each of ``peaks`` (ratio of whole peaks), ``steps`` (above what is resident), ``without_workspaces`` (of whole
    peaks) and ``by_torch`` (whole peaks of torch's own steps, which have no bar) tells ``largest_error`` and
    ``where``.
    """
    lines = [(f"{row['network']}, {line['order']}", line) for row in rows for line in row["orders"]]
    peaks = _largest_error([(where, line["ratio"]) for where, line in lines])
    ranked = {row["network"]: row["tau"] for row in rows if row["tau"] is not None}
    return {
        "networks": len(rows),
        "runs": len(lines),
        "exact": sum(line["measured_bytes"] == line["simulated_bytes"] for _, line in lines),
        "exact_without_workspaces": sum(
            line["without_workspaces_bytes"] == line["simulated_bytes"] for _, line in lines
        ),
        "peaks": peaks,
        "steps": _largest_error([(where, line["step_ratio"]) for where, line in lines]),
        "without_workspaces": _largest_error(
            [(where, line["without_workspaces_bytes"] / line["simulated_bytes"]) for where, line in lines]
        ),
        "by_torch": _largest_error([(row["network"], row["by_torch"]["ratio"]) for row in rows]),
        "ranked_networks": len(ranked),
        "ranked_pairs": sum(row["ranked_pairs"] for row in rows),
        "least_tau": min(ranked.values(), default=None),
        "least_tau_without_workspaces": min(
            (row["tau_without_workspaces"] for row in rows if row["tau_without_workspaces"] is not None),
            default=None,
        ),
        "tolerance": TOLERANCE,
        "min_tau": MIN_TAU,
        "peaks_met": peaks["largest_error"] <= TOLERANCE,
        "ranking_missed_by": [name for name, tau in ranked.items() if tau < MIN_TAU],
    }


def _largest_error(ratios: Sequence[tuple[str, float]]) -> dict[str, Any]:
    where, ratio = max(ratios, key=lambda item: abs(item[1] - 1))
    return {"largest_error": abs(ratio - 1), "where": where}
