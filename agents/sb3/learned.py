"""What a training left: weights, and where they come from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...problems import AnyProblem, SchedulingProblem
from ..networks.learned import LearnedWeights


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

    @property
    def graphs(self) -> tuple[str, ...]:
        """Fingerprints of the graphs."""
        return tuple(problem.fingerprint for problem in self.problems)


@dataclass(frozen=True, eq=False)
class Learned(LearnedWeights[TrainingRecord]):
    """The result of a training.

    Attributes:
        environment: Id of the environment that was played.
    """

    environment: str
