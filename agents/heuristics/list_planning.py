"""What the list schedulers share: ranks, and planning again with less memory when a plan overflows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ... import _core
from ...graphs import Cluster
from ...problems import Evaluator, Placement, PlacementProblem
from ..solver import Remark, evaluate_device

Int64 = NDArray[np.int64]

#: How often a plan that overflowed in simulation is made anew with less capacity.
_ATTEMPTS = 8


def mean_cost_ns(problem: PlacementProblem) -> Int64:
    """Time of each op, averaged over the devices that support it, ``[ops] int64``."""
    cost = np.where(problem.allowed, problem.cost_ns, 0).sum(axis=1, dtype=np.float64)
    mean: Int64 = np.round(cost / problem.allowed.sum(axis=1)).astype(np.int64)
    return mean


def mean_transfer_ns(problem: PlacementProblem) -> Int64:
    """Time to send each tensor, averaged over the pairs of different devices, ``[tensors] int64``."""
    cluster = problem.cluster
    apart = ~np.eye(len(cluster), dtype=bool)
    if cluster.channel == "free" or not apart.any():
        return np.zeros(problem.graph.num_tensors, np.int64)
    ns = cluster.latency_ns[apart].mean() + problem.graph.tensor_bytes * nanoseconds_per_byte(cluster)
    mean: Int64 = np.round(ns).astype(np.int64)
    return mean


def nanoseconds_per_byte(cluster: Cluster) -> float:
    """Averaged over the pairs of different devices; 0 where transfers are free or there is one device."""
    apart = ~np.eye(len(cluster), dtype=bool)
    if cluster.channel == "free" or not apart.any():
        return 0.0
    return float((1e9 / cluster.bytes_per_second[apart]).mean())


def mean_upward_rank(problem: PlacementProblem) -> Int64:
    """Upward rank with mean costs and transfers (Topcuoglu et al. 2002, section 4), ``[ops] int64`` ns."""
    rank: Int64 = _core.static_upward_rank(
        problem.simulator.core, mean_cost_ns(problem), mean_transfer_ns(problem)
    )
    return rank


def search_plans(
    problem: PlacementProblem, evaluator: Evaluator[Placement], planner: Callable[[Int64], _core.Plan]
) -> Remark:
    """Plans, judges the plan, and plans again with less capacity while the simulator finds it out of memory.

    A plan counts memory in the order of its decisions, the simulator in time, so the two may differ a little. Each
    plan is judged with critical-path and program priorities, and in the order in which it decided.

    Args:
        problem: The problem.
        evaluator: Counts.
        planner: Makes a plan for capacities ``[devices] int64``.
    """
    limit = problem.cluster.capacity_bytes
    capacity = limit.copy()
    seen: set[bytes] = set()
    over = np.zeros_like(limit)
    for attempt in range(_ATTEMPTS):
        plan = planner(capacity)
        device = plan.device
        if device.tobytes() not in seen:
            seen.add(device.tobytes())
            outcome = evaluate_device(problem, evaluator, device)
            if problem.objective.simulated and not evaluator.exhausted:
                other = evaluator.evaluate(Placement(device, -plan.position.astype(np.float64)))
                outcome = other if other.better_than(outcome) else outcome
            if outcome.ok or evaluator.exhausted:
                return Remark(f"planned anew {attempt} times with less memory" if attempt else "")
            over = np.maximum(np.array(outcome.details["peak_bytes"]) - limit, 0)
        # A step of at least a twentieth, or a small overflow would take many plans that do not change.
        step = np.where(over > 0, np.maximum(over, limit // 20), 0)
        capacity = np.maximum(capacity - step, 1)
    return Remark("no plan fits the memory")
