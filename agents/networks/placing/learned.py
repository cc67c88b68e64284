"""What a training made of a placer; nothing here needs torch."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ....problems import PlacementProblem
from ..learned import LearnedWeights


@dataclass(frozen=True)
class PlacerRecord:
    """One call of ``fit``.

    Attributes:
        problems: Number of problems.
        graphs: Fingerprints of their graphs, each once, sorted.
        steps: Placements that were tried.
        seed: Of all randomness.
        opgym: Version of the package.
        validation_gain: Of the chosen weights on validation problems; ``None``: there were none, and the last
            weights were taken.
    """

    problems: int
    graphs: tuple[str, ...]
    steps: int
    seed: int
    opgym: str
    validation_gain: float | None


@dataclass(frozen=True, eq=False)
class LearnedPlacer(LearnedWeights[PlacerRecord]):
    """The result of a training.

    Attributes:
        network: Shape of the policy.
    """

    network: Any


def key_of(problem: PlacementProblem) -> str:
    """What differs where problems do: of graph, cluster, objective and costs."""
    cluster = problem.cluster
    digest = hashlib.sha256(
        f"{problem.graph.fingerprint} {cluster.device_names} {cluster.channel} {problem.objective.value}".encode()
    )
    for array in (
        cluster.capacity_bytes,
        cluster.latency_ns,
        cluster.bytes_per_second,
        problem.class_cost_ns,
    ):
        digest.update(array.tobytes())
    return digest.hexdigest()


def fingerprint_of(problems: Sequence[PlacementProblem]) -> str:
    """A digest that differs where problems do, in order."""
    return hashlib.sha256("".join(map(key_of, problems)).encode()).hexdigest()
