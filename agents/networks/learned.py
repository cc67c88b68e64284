"""What every training leaves: weights, and where they come from."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from numpy.typing import NDArray


class Record(Protocol):
    """One call of ``fit``: a dataclass, which a family gives more fields."""

    @property
    def graphs(self) -> Sequence[str]:
        """Fingerprints of the graphs that were learned from."""
        ...

    @property
    def steps(self) -> int:
        """How long it took; a family says what a step is."""
        ...

    @property
    def seed(self) -> int:
        """Of all randomness."""
        ...

    @property
    def opgym(self) -> str:
        """Version of the package."""
        ...


RecordT = TypeVar("RecordT", bound=Record)


@dataclass(frozen=True, eq=False)
class LearnedWeights(Generic[RecordT]):
    """The result of a training.

    Attributes:
        weights: Of the policy, by name.
        trainings: What they come from, the last one last.
    """

    weights: Mapping[str, NDArray[Any]]
    trainings: tuple[RecordT, ...]

    @property
    def graphs(self) -> frozenset[str]:
        """Fingerprints of the graphs that were learned from."""
        return frozenset(graph for training in self.trainings for graph in training.graphs)

    @property
    def digest(self) -> str:
        """SHA-256 of the weights."""
        digest = hashlib.sha256()
        for name in sorted(self.weights):
            array = self.weights[name]
            digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode() + array.tobytes())
        return digest.hexdigest()


LearnedT = TypeVar("LearnedT", bound=LearnedWeights[Any])
