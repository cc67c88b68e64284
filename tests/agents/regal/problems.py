"""Small problems of every task, for tests."""

import numpy as np

from opgym.datasets import load, read
from opgym.graphs import Cluster
from opgym.problems import Objective, PlacementProblem, SchedulingProblem

#: Options with which a learner learns in no time.
QUICK = {
    "graphs": 2, "samples": 3, "evaluations_per_run": 30, "evaluations_per_sample": 20, "width": 8,
    "population": 10, "elites": 2, "mutants": 3, "validate_every": 2, "weights": "none",
}  # fmt: skip


def order(seed=0):
    return SchedulingProblem(load(f"synthetic/ws?n=12&seed={seed}"))


def placement(objective="peak_memory", seed=0, cluster="2xREGAL"):
    imported = read(f"synthetic/er?n=12&seed={seed}")
    return PlacementProblem(imported.graph, Cluster.parse(cluster), Objective(objective), imported.costs)


def capped(seed=0):
    """Little memory: what is fastest does not fit."""
    p = placement("step_time", seed)
    cluster = p.cluster.with_capacity(int(p.graph.tensor_bytes.sum()) // 3)
    return PlacementProblem(p.graph, cluster, p.objective, p.costs)


def with_variables():
    """A training graph: parameters are variables, which no priority is asked of."""
    problem = PlacementProblem(load("example/rnn-train"), Cluster.parse("2xP100:free"))
    assert np.any(problem.graph.is_variable)
    return problem


def tasks():
    """One problem of each task."""
    return [order(), placement(), capped()]
