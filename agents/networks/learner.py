"""What every learner with a neural network has in common: what it has learned, checks before a training, files."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Generic, Self

from ...errors import InvalidProblemError
from ..learner import Learner
from ..search.options import at_least
from ..solver import ProblemT
from .learned import LearnedT
from .packages import require_packages
from .saved import SavedFormat, load, save

#: Largest seed of a training.
MOST_SEED = 2**31 - 1


@dataclass(frozen=True)
class NetworkLearner(Learner[ProblemT, Any], Generic[ProblemT, LearnedT]):
    """A learner whose policy is a neural network; importing it needs no torch, using it does."""

    learned: LearnedT | None = field(default=None, init=False, repr=False)

    anytime: ClassVar[bool] = True
    #: What has to be installed to use it, by the names that it is imported by.
    packages: ClassVar[tuple[str, ...]]
    #: What it saves beside what all learners with a network do.
    saved_format: ClassVar[SavedFormat[Any]]
    #: Options that are not saved, and what a learner that is loaded has for them.
    unsaved_options: ClassVar[Mapping[str, Any]] = {}

    @property
    def trained(self) -> bool:
        """Whether there is something learned to use."""
        return self._known() is not None

    @property
    def trained_on(self) -> frozenset[str]:
        """Fingerprints of the graphs that were learned from."""
        known = self._known()
        return frozenset() if known is None else known.graphs

    def with_learned(self, learned: LearnedT | None) -> Self:
        """The same learner with other weights."""
        other = copy.copy(self)
        object.__setattr__(other, "learned", learned)
        return other

    def save(self, folder: Path) -> None:
        """Writes ``weights.safetensors`` and ``agent.json`` into a new folder.

        Raises:
            OpgymError: There is nothing learned, or the folder holds something already.
        """
        self._require_packages()
        save(self, Path(folder))

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Reads what :meth:`save` wrote.

        Raises:
            OpgymError: It is damaged, of another agent, or of another version.
        """
        cls._require_packages()
        return load(cls, Path(folder))

    # --- for subclasses

    def _known(self) -> LearnedT | None:
        """What it solves with."""
        return self.learned

    def _unfit(self, problem: ProblemT) -> str | None:
        """Why not to learn from a problem, or ``None``."""
        return self.skip_reason(problem)

    @classmethod
    def _require_packages(cls) -> None:
        require_packages(cls.name, cls.packages)

    def _require_fitting(
        self, problems: Sequence[ProblemT], seed: int, validation: Sequence[ProblemT] = ()
    ) -> None:
        """Refuses what no training can be made of.

        Raises:
            InvalidProblemError: No problem, one that it cannot learn from, or a seed that is too large.
            MissingExtraError: Something that training needs is not installed.
        """
        self._require_packages()
        if not problems:
            raise InvalidProblemError(f"learner {self.name!r} needs at least one problem to train on")
        at_least(0, seed=seed, most=MOST_SEED)
        for problem in (*problems, *validation):
            reason = self._unfit(problem)
            if reason is not None:
                raise InvalidProblemError(f"learner {self.name!r}: {reason}")
