"""The files of a saved learner: ``agent.json``, which says what it is, and ``weights.safetensors``."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from ...errors import OpgymError
from ...graphs.atomic import atomic_write
from ...graphs.closed_json import Row, read_json
from ..saved import AGENT_FILE
from .learned import LearnedT
from .options import made, options_of

if TYPE_CHECKING:
    from .learner import NetworkLearner

LearnerT = TypeVar("LearnerT", bound="NetworkLearner[Any, Any]")

WEIGHTS_FILE = "weights.safetensors"
#: Keys of ``agent.json`` before and after those of a family.
_FIRST, _LAST = ("agent", "format", "opgym", "options"), ("trainings", "weights_sha256")
#: Of a file that is read: more of anything is a mistake, or mischief.
_MOST_TRAININGS, _MOST_STEPS, _MOST_SEED = 1_000, 2**62, 2**31 - 1


class SavedFormat(ABC, Generic[LearnedT]):
    """What one family of learners saves beside what all do."""

    #: Its name, with its version.
    name: ClassVar[str]
    #: Keys of ``agent.json``, in their order there.
    keys: ClassVar[tuple[str, ...]]
    #: The dataclass of one training: ``steps``, ``seed``, ``opgym`` and what the family has beside them.
    record: ClassVar[type[Any]]

    @abstractmethod
    def described(self, learned: LearnedT) -> dict[str, Any]:
        """Values of the keys, as JSON."""

    @abstractmethod
    def recorded(self, row: Row) -> dict[str, Any]:
        """Reads what a record has beside ``steps``, ``seed`` and ``opgym``.

        Raises:
            OpgymError: It is damaged.
        """

    @abstractmethod
    def learned(
        self,
        learner: type[Any],
        row: Row,
        weights: Mapping[str, NDArray[Any]],
        trainings: tuple[Any, ...],
        where: Path,
    ) -> LearnedT:
        """Reads what was learned.

        Args:
            learner: Class of the learner.
            row: With the keys.
            weights: Of the policy, by name.
            trainings: What they come from.
            where: File of the weights, for messages.

        Raises:
            OpgymError: It is damaged, or the weights do not belong to it.
        """


def save(learner: NetworkLearner[Any, Any], folder: Path) -> None:
    """Writes a trained learner into a new folder; ``agent.json`` comes last, so a folder that has it is complete.

    Raises:
        OpgymError: There is nothing learned, the folder holds something already, or it cannot be written.
    """
    from safetensors.numpy import save as packed

    learned = learner.learned
    if learned is None:
        raise OpgymError(f"agent {learner.name!r} has learned nothing to save; call fit first")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise OpgymError(f"{folder}: holds something already; an agent is saved into a new folder")
        weights = packed(dict(learned.weights))
        with atomic_write(folder / WEIGHTS_FILE) as file:
            file.write(weights)
        row = {
            "agent": learner.name,
            "format": learner.saved_format.name,
            "opgym": learned.trainings[-1].opgym,
            "options": options_of(learner),
            **learner.saved_format.described(learned),
            "trainings": [asdict(training) for training in learned.trainings],
            "weights_sha256": hashlib.sha256(weights).hexdigest(),
        }
        with atomic_write(folder / AGENT_FILE) as file:
            file.write((json.dumps(row, indent=1, allow_nan=False) + "\n").encode())
    except OSError as error:
        raise OpgymError(f"{folder}: cannot be written ({error.strerror or error})") from None


def load(cls: type[LearnerT], folder: Path) -> LearnerT:
    """Reads a saved learner.

    Raises:
        OpgymError: It is damaged, of another agent, or of another version.
    """
    path, own = folder / AGENT_FILE, cls.saved_format
    row = Row(
        read_json(path, OpgymError, "a saved agent"), f"{path}:", OpgymError, (*_FIRST, *own.keys, *_LAST)
    )
    if row.text("agent") != cls.name:
        row.refuse(f"is of agent {row.text('agent')!r}; expected {cls.name!r}")
    if row.text("format") != own.name:
        row.refuse(f"has format {row.text('format')!r:.60}; this version of opgym reads {own.name!r}")
    _version(row)
    learner = made(cls, row.get("options"), row, f"agent {cls.name!r}", cls.unsaved_options)
    trainings = tuple(
        _training(own, value, f"{path}: training {i}")
        for i, value in enumerate(row.rows("trainings", _MOST_TRAININGS))
    )
    if not trainings:
        row.refuse("has no training")
    weights = _weights(folder / WEIGHTS_FILE, row.text("weights_sha256"))
    return learner.with_learned(own.learned(cls, row, weights, trainings, folder / WEIGHTS_FILE))


def require_weights_of(learner: type[Any], learned: LearnedT, where: Path) -> None:
    """Refuses weights that do not fit the network, or are no finite numbers of its precision.

    Args:
        learner: Class of the learner; ``policy_of`` makes its policy.
        learned: What was read.
        where: File of the weights, for messages.

    Raises:
        OpgymError: Of such weights.
    """
    for name, array in learned.weights.items():
        if array.dtype != np.float32 or not np.isfinite(array).all():
            raise OpgymError(f"{where}: {name} holds {array.dtype} numbers that are not all finite float32")
    try:
        learner.policy_of(learned)
    except RuntimeError as error:
        reason = str(error).replace("\n", " ")
        raise OpgymError(
            f"{where}: holds weights of another network than {AGENT_FILE} says ({reason:.200})"
        ) from None


def _version(row: Row) -> str:
    version = row.text("opgym")
    if not version:
        row.refuse("has opgym = ''; expected the version that wrote it")
    return version


def _training(own: SavedFormat[Any], value: Any, where: str) -> Any:
    row = Row(value, where, OpgymError, [f.name for f in fields(own.record)])
    return own.record(
        **own.recorded(row), steps=row.integer("steps", 0, _MOST_STEPS), seed=row.integer("seed", 0, _MOST_SEED),
        opgym=_version(row),
    )  # fmt: skip


def _weights(path: Path, digest: str) -> dict[str, NDArray[Any]]:
    from .tree_file import read_arrays

    try:
        found = hashlib.sha256(path.read_bytes()).hexdigest()
    except FileNotFoundError:
        raise OpgymError(f"{path}: no such file; a saved agent has {AGENT_FILE} and {WEIGHTS_FILE}") from None
    except OSError as error:
        raise OpgymError(f"{path}: cannot be read ({error.strerror})") from None
    if found != digest:
        raise OpgymError(
            f"{path}: is damaged, or of another agent: its SHA-256 is not the one in {AGENT_FILE}"
        )
    return read_arrays(path)
