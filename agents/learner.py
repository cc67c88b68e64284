"""Solvers that learn: trained once on many problems with ``fit``, then used through the same door as any other."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self

from .solver import ProblemT, SolutionT, Solver


class Monitor(Protocol):
    """Watches a training: takes its metrics, and keeps the states it may go on from.

    A learner calls :meth:`log` and :meth:`checkpoint` after every update, and asks :attr:`latest` once, before its
    first. What is logged, where, and when a checkpoint is due are the monitor's business.
    """

    @property
    def latest(self) -> Path | None:
        """Folder of the last complete checkpoint, to go on from; ``None``: start from the beginning."""
        ...

    def log(self, steps: int, metrics: Mapping[str, float]) -> None:
        """Takes metrics.

        Args:
            steps: Steps of the environment so far, over all of its episodes.
            metrics: By name; docs/metrics.md says what each name means.
        """
        ...

    def checkpoint(self, steps: int, write: Callable[[Path], None], *, last: bool = False) -> None:
        """Keeps the state of the training if a checkpoint is due.

        Args:
            steps: Steps of the environment so far.
            write: Writes everything that the rest of the training depends on into an empty folder; the checkpoint
                appears when it is complete, or not at all.
            last: The training has ended: a checkpoint is due.
        """
        ...


class Learner(Solver[ProblemT, SolutionT]):
    """A solver with something to learn.

    A learner is as immutable as any solver: ``fit`` returns a trained one. Untrained, ``solve`` learns on the problem
    it is given, within the budget; trained, it uses what it has learned.
    """

    #: Whether ``fit`` takes ``validation``, problems by which it chooses among the weights that it comes past.
    selects: ClassVar[bool] = False

    @abstractmethod
    def fit(
        self, problems: Sequence[ProblemT], *, steps: int, seed: int = 0, monitor: Monitor | None = None
    ) -> Self:
        """Trains on problems.

        Args:
            problems: What to learn from.
            steps: Steps of the environment to learn from, over all of its episodes.
            seed: Of all randomness: the same seed gives the same weights.
            monitor: Watches; with a checkpoint of the same training it goes on from there, as if never interrupted.

        Returns:
            The trained learner.
        """

    def check(self, problems: Sequence[ProblemT], *, seed: int = 0) -> None:
        """Refuses at once what ``fit`` would refuse, so that nothing is begun that cannot go on; learns nothing.

        Args:
            problems: What is to be learned from.
            seed: Of all randomness.

        Raises:
            OpgymError: An option that does not fit the problems or this machine.
        """

    @property
    @abstractmethod
    def trained(self) -> bool:
        """Whether there is something learned to use."""

    @property
    def trained_on(self) -> frozenset[str] | None:
        """Fingerprints of the graphs that were learned from; ``None``: it was trained, and does not know on what."""
        return None if self.trained else frozenset()

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Writes what was learned (``weights.safetensors``) and what made it (``agent.json``) into a new folder."""

    @classmethod
    @abstractmethod
    def load(cls, folder: Path) -> Self:
        """Reads what ``save`` wrote; nothing in the folder is ever executed or unpickled.

        Raises:
            OpgymError: It is damaged, of another agent, or of another version.
        """


def is_learner(solver: Any) -> bool:
    """Whether a solver, or its class, can be trained."""
    return issubclass(solver if isinstance(solver, type) else type(solver), Learner)
