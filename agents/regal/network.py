"""The shape of a policy, and what a training made of it; nothing here needs torch."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...errors import unknown_id
from ...problems import AnyProblem
from ..networks.learned import LearnedWeights
from ..search.options import at_least, of_type
from .task import Task

MESSAGES, SEQUENCE = "messages", "sequence"


@dataclass(frozen=True)
class Network:
    """The shape of a policy.

    Attributes:
        encoder: ``"messages"`` along edges, or ``"sequence"``: an LSTM over ops in topological order.
        width: Numbers per op.
        rounds: Rounds of messages, or layers of the LSTM.
        edge_messages: Whether messages see the bytes of their edge.
        autoregressive: Whether a decision sees the earlier ones of its op.
        value_head: Whether it says what reward it expects.
    """

    encoder: str
    width: int
    rounds: int
    edge_messages: bool
    autoregressive: bool
    value_head: bool

    def __post_init__(self) -> None:
        if self.encoder not in (MESSAGES, SEQUENCE):
            raise unknown_id("encoder", str(self.encoder), [MESSAGES, SEQUENCE])
        at_least(2, most=4096, width=self.width)
        at_least(1, most=256, rounds=self.rounds)
        of_type(
            bool, "true or false", edge_messages=self.edge_messages, autoregressive=self.autoregressive,
            value_head=self.value_head,
        )  # fmt: skip


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
