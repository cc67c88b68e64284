"""A saved learner: ``agent.json``, which says what it is, and ``weights.safetensors``."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ...envs import ENTRY_POINTS
from ...errors import OpgymError
from ...graphs.atomic import atomic_write
from ...graphs.closed_json import Row, read_json
from ..registry import frozen
from ..saved import AGENT_FILE
from .learned import Learned, ProblemRecord, TrainingRecord
from .options import options_of

if TYPE_CHECKING:
    from .base import SB3Learner

LearnerT = TypeVar("LearnerT", bound="SB3Learner")

WEIGHTS_FILE = "weights.safetensors"
_FORMAT = "opgym.agent.sb3/1"
_KEYS = ("agent", "format", "opgym", "options", "environment", "trainings", "weights_sha256")
#: Of a file that is read: more of anything is a mistake, or mischief.
_MOST_TRAININGS, _MOST_PROBLEMS, _MOST_STEPS = 1_000, 100_000, 2**62


def save(learner: SB3Learner, folder: Path) -> None:
    """Writes a trained learner into a new folder; ``agent.json`` comes last, so a folder that has it is complete."""
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
            "format": _FORMAT,
            "opgym": learned.trainings[-1].opgym,
            "options": options_of(learner),
            "environment": learned.environment,
            "trainings": [asdict(training) for training in learned.trainings],
            "weights_sha256": hashlib.sha256(weights).hexdigest(),
        }
        with atomic_write(folder / AGENT_FILE) as file:
            file.write((json.dumps(row, indent=1, allow_nan=False) + "\n").encode())
    except OSError as error:
        raise OpgymError(f"{folder}: cannot be written ({error.strerror or error})") from None


def load(cls: type[LearnerT], folder: Path) -> LearnerT:
    """Reads a saved learner."""
    path = folder / AGENT_FILE
    row = Row(read_json(path, OpgymError, "a saved agent"), f"{path}:", OpgymError, _KEYS)
    if row.text("agent") != cls.name:
        row.refuse(f"is of agent {row.text('agent')!r}; expected {cls.name!r}")
    if row.text("format") != _FORMAT:
        row.refuse(f"has format {row.text('format')!r:.60}; this version of opgym reads {_FORMAT!r}")
    if row.text("environment") not in ENTRY_POINTS:
        row.refuse(f"was trained on {row.text('environment')!r:.60}; known: {', '.join(ENTRY_POINTS)}")
    learner = _learner(cls, row)
    trainings = tuple(
        _training(value, f"{path}: training {i}")
        for i, value in enumerate(row.rows("trainings", _MOST_TRAININGS))
    )
    if not trainings:
        row.refuse("has no training")
    weights = _weights(folder / WEIGHTS_FILE, row.text("weights_sha256"))
    return learner.with_learned(Learned(row.text("environment"), weights, trainings))


def _learner(cls: type[LearnerT], row: Row) -> LearnerT:
    options = row.get("options")
    known = {f.name for f in fields(cls) if f.init}
    if not isinstance(options, dict) or options.keys() != known:
        row.refuse(f"has other options than agent {cls.name!r} of this version: {', '.join(sorted(known))}")
    try:
        return cls(**frozen(options))
    except (OpgymError, TypeError, ValueError) as error:
        row.refuse(f"has an option that cannot be: {error}")


def _training(value: Any, where: str) -> TrainingRecord:
    row = Row(value, where, OpgymError, ("problems", "steps", "seed", "opgym"))
    problems = tuple(
        _problem(each, f"{where}: problem {i}") for i, each in enumerate(row.rows("problems", _MOST_PROBLEMS))
    )
    return TrainingRecord(
        problems, row.integer("steps", 0, _MOST_STEPS), row.integer("seed", 0, 2**31 - 1), row.text("opgym")
    )


def _problem(value: Any, where: str) -> ProblemRecord:
    names = [f.name for f in fields(ProblemRecord)]
    row = Row(value, where, OpgymError, names)
    return ProblemRecord(**{name: row.text(name) for name in names})


def _weights(path: Path, digest: str) -> Mapping[str, Any]:
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
