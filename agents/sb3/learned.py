"""What a training left: weights, and where they come from."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from ...problems import AnyProblem, SchedulingProblem


@dataclass(frozen=True)
class ProblemRecord:
    """A problem that was learned from.

    Attributes:
        graph: Name of the graph.
        fingerprint: Of the graph.
        cluster: Text of the cluster; empty where the problem has none.
        objective: What was minimised.
    """

    graph: str
    fingerprint: str
    cluster: str
    objective: str

    @classmethod
    def of(cls, problem: AnyProblem) -> ProblemRecord:
        """The record of a problem."""
        graph = problem.graph
        if isinstance(problem, SchedulingProblem):
            return cls(graph.name, graph.fingerprint, "", "peak_memory")
        devices = ", ".join(problem.cluster.device_names)
        return cls(graph.name, graph.fingerprint, problem.cluster.name or devices, problem.objective.value)


@dataclass(frozen=True)
class TrainingRecord:
    """One call of ``fit``.

    Attributes:
        problems: What was learned from.
        steps: Steps of the environment.
        seed: Of all randomness.
        opgym: Version of the package.
    """

    problems: Sequence[ProblemRecord]
    steps: int
    seed: int
    opgym: str


@dataclass(frozen=True, eq=False)
class Learned:
    """The result of a training.

    Attributes:
        environment: Id of the environment that was played.
        weights: Of the policy, by name.
        trainings: What they come from, the last one last.
    """

    environment: str
    weights: Mapping[str, NDArray[Any]]
    trainings: tuple[TrainingRecord, ...]

    @property
    def digest(self) -> str:
        """SHA-256 of the weights."""
        digest = hashlib.sha256()
        for name in sorted(self.weights):
            array = self.weights[name]
            digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode() + array.tobytes())
        return digest.hexdigest()
