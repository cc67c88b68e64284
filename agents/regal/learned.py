"""What a training made of a policy; nothing here needs torch."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...problems import AnyProblem
from ..networks.learned import LearnedWeights
from .task import Task


@dataclass(frozen=True)
class TrainingRecord:
    """One call of ``fit``.

    Attributes:
        tasks: Number of problems of each task, by its text.
        graphs: Fingerprints of their graphs, each once, sorted.
        steps: Proposals that were tried.
        seed: Of all randomness.
        opgym: Version of the package.
        validation_gain: Of the chosen weights on validation problems; ``None``: there were none, and the last
            weights were taken.
    """

    tasks: Mapping[str, int]
    graphs: tuple[str, ...]
    steps: int
    seed: int
    opgym: str
    validation_gain: float | None


def fingerprint_of(problems: Sequence[AnyProblem]) -> str:
    """A digest that differs where problems do: of tasks and graphs, in order."""
    digest = hashlib.sha256()
    for problem in problems:
        capacity = "" if not hasattr(problem, "cluster") else problem.cluster.capacity_bytes.tolist()
        digest.update(f"{Task.of(problem)} {problem.graph.fingerprint} {capacity}\n".encode())
    return digest.hexdigest()


@dataclass(frozen=True, eq=False)
class Learned(LearnedWeights[TrainingRecord]):
    """The result of a training.

    Attributes:
        network: Shape of the policy.
        initial: Whether its proposals are for the first generation, too.
        tasks: What it was trained for.
    """

    network: Any
    initial: bool
    tasks: tuple[Task, ...]
