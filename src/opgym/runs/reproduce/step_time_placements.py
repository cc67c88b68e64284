"""Twenty different placements of one graph on two devices: those of solvers, splits by layer, random ones."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

from ...agents import make
from ...problems import Budget, Placement, PlacementProblem
from ...problems.grouping import assign

COUNT = 20
ONE_DEVICE = "one device"
#: Solvers and their evaluations.
_SOLVERS = (
    ("human-expert", 100),
    ("metis", 100),
    ("m-etf", 100),
    ("heft", 100),
    ("annealing", 300),
    ("annealing", 3_000),
)
#: Where the layers are cut in two: the share of the work that comes before.
_CUTS = (0.25, 0.5, 0.75)
_CLUSTERS = "metis:24"


def placements(problem: PlacementProblem, seed: int = 0) -> dict[str, Placement]:
    """Draws the placements by name; all are legal, and no two put the same ops together.

    Args:
        problem: A graph on two equal devices.
        seed: Of everything that is drawn.
    """
    rng = np.random.default_rng(seed)
    found: dict[str, Placement] = {}
    known: set[bytes] = set()
    for name, placement in _candidates(problem, rng):
        # Two equal devices: which one is called the first makes no difference.
        device = np.asarray(placement.device)
        scheduled = device[~problem.graph.is_variable]
        key = (scheduled != scheduled[0]).tobytes()
        if key not in known and problem.evaluate(placement).ok:
            known.add(key)
            found[name] = placement
        if len(found) == COUNT:
            break
    return found


def _candidates(problem: PlacementProblem, rng: np.random.Generator) -> Iterator[tuple[str, Placement]]:
    yield ONE_DEVICE, Placement(np.zeros(problem.graph.num_ops, np.uint8))
    for name, evaluations in _SOLVERS:
        result = make(name).solve(
            problem, Budget(evaluations=evaluations), np.random.default_rng(rng.integers(2**32))
        )
        label = f"{name} ({evaluations:,})" if name == "annealing" else name
        yield label, result.solution
    layers = assign(problem, "layer")
    work = np.bincount(layers, weights=problem.cost_ns[:, 0])
    before = np.cumsum(work) - work
    for share in _CUTS:
        yield f"layers cut at {share:.2f}", _by_group(layers, before >= share * work.sum())
    clusters = assign(problem, _CLUSTERS)
    number = 0
    while True:
        number += 1
        # Shares of different size, so that loads and times differ, too.
        for label, groups in (("layers", layers), ("clusters", clusters)):
            share = rng.uniform(0.1, 0.5)
            yield f"random {label} {number}", _by_group(groups, rng.random(int(groups.max()) + 1) < share)


def _by_group(groups: ArrayLike, second: ArrayLike) -> Placement:
    """The placement that puts some groups on the second device."""
    return Placement(np.asarray(second)[np.asarray(groups)].astype(np.uint8))
