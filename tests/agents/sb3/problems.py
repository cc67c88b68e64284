"""Small problems to learn on."""

from functools import cache

from opgym.datasets import load
from opgym.graphs import Cluster
from opgym.problems import PlacementProblem, SchedulingProblem


@cache
def placement(graph: str = "example/two-branch", cluster: str = "2xP100") -> PlacementProblem:
    """16 ops on two devices."""
    return PlacementProblem(load(graph), Cluster.parse(cluster))


@cache
def scheduling(ops: int = 20, seed: int = 0) -> SchedulingProblem:
    """A wide graph."""
    return SchedulingProblem(load(f"synthetic/ws?n={ops}&seed={seed}"))
