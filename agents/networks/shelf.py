"""Weights that come with the package: a shelf is a folder with a folder of each."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

from ...errors import OpgymError, unknown_id
from ..saved import AGENT_FILE
from ..search.options import of_type
from ..solver import ProblemT
from .learned import LearnedT, LearnedWeights
from .learner import NetworkLearner

#: Values of the option ``weights`` that are no name.
SHIPPED, NONE = "shipped", "none"
_ABLATIONS = "ablations"
#: How names of further trainings of an agent end.
_SEED = re.compile(r"-seed[0-9]+$")


class Shelf:
    """Weights of one family of learners.

    Args:
        folder: Of folders of saved agents, by name.
        shipped: What a learner uses by itself, by its name, where that has another name than the learner.
    """

    def __init__(self, folder: Path, shipped: Mapping[str, str] = MappingProxyType({})) -> None:
        self.folder = folder
        self._shipped = shipped

    def names(self, *, ablations: bool = False) -> list[str]:
        """Names of all weights, those of one agent together, what it uses by itself first.

        Args:
            ablations: Whether those are among them that only show what an ingredient is worth, ``"ablations/NAME"``.
        """
        names = [file.parent.name for file in self.folder.glob(f"*/{AGENT_FILE}")]
        if ablations:
            there = (self.folder / _ABLATIONS).glob(f"*/{AGENT_FILE}")
            names += [f"{_ABLATIONS}/{file.parent.name}" for file in there]
        return sorted(names, key=lambda name: (_SEED.sub("", name), name))

    def folder_of(self, weights: str, learner: str) -> Path | None:
        """Where weights are.

        Args:
            weights: The option: ``"shipped"``, a name, or a folder.
            learner: Name of the learner; its own shipped weights have the same name, if the shelf knows no other.

        Returns:
            ``None`` if none are shipped for the learner.

        Raises:
            UnknownIdError: No such weights, with the nearest names.
        """
        if weights == SHIPPED:
            own = self.folder / self._shipped.get(learner, learner)
            return own if (own / AGENT_FILE).is_file() else None
        if weights in self.names(ablations=True):
            return self.folder / weights
        if (Path(weights) / AGENT_FILE).is_file():
            return Path(weights)
        raise unknown_id(
            "weights (a name, or the folder of a saved agent)",
            weights,
            [SHIPPED, NONE, *self.names(ablations=True)],
        )


@dataclass(frozen=True)
class ShelvedLearner(NetworkLearner[ProblemT, LearnedT]):
    """A learner that may come trained.

    Attributes:
        weights: ``"shipped"``: those that come with the package for this learner, if it was not trained itself;
            the name of other shipped ones, such as another training seed; the folder of a saved agent; ``"none"``:
            untrained.
    """

    weights: str = SHIPPED

    #: Where weights of its family are.
    shelf: ClassVar[Shelf]
    unsaved_options: ClassVar[Mapping[str, Any]] = {"weights": NONE}

    @classmethod
    @abstractmethod
    def policy_type(cls) -> Any:
        """Class of its policies, a :class:`~.policy.PolicyNetwork`; imported where it is used, as it needs torch."""

    @classmethod
    def policy_of(cls, learned: Any) -> Any:
        """The policy with what was learned.

        Raises:
            RuntimeError: The weights are those of another network.
        """
        return cls.policy_type().of(learned.network, learned.weights)

    @classmethod
    def trained_as(cls) -> type[ShelvedLearner[Any, Any]]:
        """The learner whose weights it uses: itself, where it is not another way of using them."""
        return cls

    def __post_init__(self) -> None:
        of_type(str, "'shipped', 'none', a name or a folder", weights=self.weights)
        if self.weights != NONE:
            self.shelf.folder_of(self.weights, self.name)  # refuses an unknown name

    def _known(self) -> LearnedT | None:
        """What it has learned, or what comes with the package."""
        if self.learned is not None or self.weights == NONE:
            return self.learned
        folder = self.shelf.folder_of(self.weights, self.name)
        return None if folder is None else learned_in(self.trained_as(), folder)


@lru_cache(maxsize=16)
def learned_in(kind: type[ShelvedLearner[Any, Any]], folder: Path) -> Any:
    """What a saved agent has learned; read once."""
    learned: LearnedWeights[Any] | None = kind.load(folder).learned
    if learned is None:
        raise OpgymError(f"{folder}: holds no weights")
    return learned
