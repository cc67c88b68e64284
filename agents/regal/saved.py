"""A saved learner of proposals: ``agent.json``, which says what it is, and ``weights.safetensors``."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import MISSING, asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ...errors import OpgymError
from ...graphs.atomic import atomic_write
from ...graphs.closed_json import Row, read_json
from ..saved import AGENT_FILE
from .network import Learned, TrainingRecord
from .shipped import NONE
from .task import MOST_DEVICES, OBJECTIVES, Task

if TYPE_CHECKING:
    from .base import ProposalLearner

LearnerT = TypeVar("LearnerT", bound="ProposalLearner")

WEIGHTS_FILE = "weights.safetensors"
_WEIGHTS = "weights"
_FORMAT = "opgym.agent.regal/1"
_KEYS = (
    "agent", "format", "opgym", "options", "network", "initial", "tasks", "trainings", "weights_sha256",
)  # fmt: skip
#: Of a file that is read: more of anything is a mistake, or mischief.
_MOST_TRAININGS, _MOST_TASKS, _MOST_GRAPHS, _MOST = 1_000, 16, 1_000_000, 2**62


def options_of(learner: ProposalLearner) -> dict[str, Any]:
    """Options of a learner by name, as JSON holds them, without that which says where weights are."""
    values = {f.name: getattr(learner, f.name) for f in fields(learner) if f.init and f.name != _WEIGHTS}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}


def save(learner: ProposalLearner, folder: Path) -> None:
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
            "network": asdict(learned.network),
            "initial": learned.initial,
            "tasks": [asdict(task) for task in learned.tasks],
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
    learner = _made(cls, row.get("options"), row, f"agent {cls.name!r}", {_WEIGHTS: NONE})
    network = _made(cls.network_type, row.get("network"), row, "a network")
    tasks = tuple(_task(value, f"{path}: task {i}") for i, value in enumerate(row.rows("tasks", _MOST_TASKS)))
    trainings = tuple(
        _training(value, f"{path}: training {i}")
        for i, value in enumerate(row.rows("trainings", _MOST_TRAININGS))
    )
    if not tasks or not trainings:
        row.refuse("has no task, or no training")
    initial = row.get("initial")
    if not isinstance(initial, bool):
        row.refuse(f"has initial = {initial!r:.60}; expected true or false")
    weights = _weights(folder / WEIGHTS_FILE, row.text("weights_sha256"))
    learned = Learned(network, initial, tasks, weights, trainings)
    _require_weights_of(cls, learned, folder / WEIGHTS_FILE)
    return learner.with_learned(learned)


_T = TypeVar("_T")


def _made(kind: type[_T], values: Any, row: Row, what: str, more: Mapping[str, Any] | None = None) -> _T:
    """A dataclass from an object that has its fields, but for those that are given.

    What has come later has its default, with which everything is as it was before.
    """
    given = more or {}
    every = [f for f in fields(kind) if f.init and f.name not in given]  # type: ignore[arg-type]
    known, needed = {f.name for f in every}, {f.name for f in every if f.default is MISSING}
    if not isinstance(values, dict) or not needed <= values.keys() <= known:
        row.refuse(f"has other options than {what} of this version: {', '.join(sorted(known))}")
    try:
        return kind(**values, **given)
    except (OpgymError, TypeError, ValueError) as error:
        row.refuse(f"has an option that cannot be: {error}")


def _task(value: Any, where: str) -> Task:
    row = Row(value, where, OpgymError, ("objective", "devices"))
    if row.text("objective") not in OBJECTIVES:
        row.refuse(f"has objective {row.text('objective')!r:.60}; expected {', '.join(OBJECTIVES)}")
    return Task(row.text("objective"), row.integer("devices", 1, MOST_DEVICES))


def _training(value: Any, where: str) -> TrainingRecord:
    row = Row(value, where, OpgymError, [f.name for f in fields(TrainingRecord)])
    tasks, gain = row.get("tasks"), row.get("validation_gain")
    if not isinstance(tasks, dict) or not all(
        isinstance(count, int) and not isinstance(count, bool) and 0 < count < _MOST
        for count in tasks.values()
    ):
        row.refuse("has tasks that are no numbers of problems")
    if gain is not None and (isinstance(gain, bool) or not isinstance(gain, int | float)):
        row.refuse(f"has validation_gain = {gain!r:.60}; expected a number or null")
    graphs = row.rows("graphs", _MOST_GRAPHS)
    if not all(isinstance(graph, str) for graph in graphs):
        row.refuse("has graphs that are no fingerprints")
    return TrainingRecord(
        tasks, tuple(graphs), row.integer("steps", 0, _MOST), row.integer("seed", 0, 2**31 - 1),
        row.text("opgym"), gain,
    )  # fmt: skip


def _weights(path: Path, digest: str) -> dict[str, Any]:
    from ..sb3.tree_file import read_arrays

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


def _require_weights_of(cls: type[ProposalLearner], learned: Learned, path: Path) -> None:
    """Refuses weights that do not fit the network, or are no finite numbers of its precision."""
    for name, array in learned.weights.items():
        if array.dtype != np.float32 or not np.isfinite(array).all():
            raise OpgymError(f"{path}: {name} holds {array.dtype} numbers that are not all finite float32")
    try:
        cls.policy_of(learned)
    except RuntimeError as error:
        reason = str(error).replace("\n", " ")
        raise OpgymError(
            f"{path}: holds weights of another network than {AGENT_FILE} says ({reason:.200})"
        ) from None
