"""Checkpoints of a training: whole or not there, checked before use, and of the same training.

with lock_of_the_run:
    store = CheckpointStore(folder / "checkpoints", training=settings)
    with make_tracker(names, folder, config, resumed_from=store.resumed_from) as tracker:
        monitor = TrainingMonitor(store, tracker, every_steps=100_000, every_minutes=10)
        learner = learner.fit(problems, steps=steps, seed=seed, monitor=monitor)
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import InvalidRunError
from ..run_folder import differences
from ..tracking import Metrics, Tracker, plain

MANIFEST = "manifest.json"
FORMAT, VERSION = "opgym.checkpoint", 1
#: Names of folders that are not, or no longer, checkpoints.
_WRITING, _REMOVING = ".writing-", ".removing-"

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Checkpoint:
    """A complete checkpoint.

    Attributes:
        folder: What the learner wrote, and the manifest.
        steps: Steps of the environment that the training had taken.
    """

    folder: Path
    steps: int


class CheckpointStore:
    """The checkpoints of one training, in a folder.

    A checkpoint is written into a folder of another name, synchronised, then given its name; its manifest holds the
    SHA-256 of every file, and is written last. So whenever the process or the machine dies, what has the name of a
    checkpoint is complete, and what is not is removed when the store is opened again. One process at a time: the
    caller holds the lock of the run.

    Args:
        folder: Made at the first checkpoint.
        training: Everything that decides what the training does, as plain data: a checkpoint made under other
            settings is refused.
        keep: How many of the newest stay.

    Raises:
        InvalidRunError: It holds a checkpoint of another training, or of a newer opgym.
        OSError: It cannot be read, or not be cleaned.
    """

    def __init__(self, folder: Path, training: Mapping[str, Any], *, keep: int = 2) -> None:
        if keep < 1:
            raise ValueError(f"keep={keep}; at least the newest checkpoint stays")
        self._folder, self._keep = folder, keep
        self._training: dict[str, Any] = json.loads(_canonical(plain(training)))
        self.newest: Checkpoint | None = self._open()

    @property
    def resumed_from(self) -> int | None:
        """Steps of the newest checkpoint; ``None`` where there is none."""
        return None if self.newest is None else self.newest.steps

    def write(
        self, steps: int, write: Callable[[Path], None], *, before: Callable[[], None] = lambda: None
    ) -> Checkpoint:
        """Makes a checkpoint, and removes those that are too many.

        Args:
            steps: Of the environment so far; more than the newest one's.
            write: Fills an empty folder.
            before: Called when everything is on the disk, before the checkpoint appears.

        Raises:
            OSError: It cannot be written; the earlier ones are as they were.
        """
        if self.newest is not None and steps <= self.newest.steps:
            raise ValueError(f"a checkpoint of {steps} steps after that of {self.newest.steps}")
        name = f"{steps:012}"
        draft, target = self._folder / f"{_WRITING}{name}", self._folder / name
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            draft.mkdir()
            write(draft)
            _write_manifest(draft, steps, self._training)
            before()
            os.rename(draft, target)
            _sync(self._folder)
        except BaseException as error:
            shutil.rmtree(draft, ignore_errors=True)
            if isinstance(error, OSError):
                raise _explained(error, target) from error
            raise
        self.newest = Checkpoint(target, steps)
        for old in self._names()[: -self._keep]:
            self._remove(self._folder / old)
        return self.newest

    def _names(self) -> list[str]:
        """Names of checkpoints, oldest first."""
        if not self._folder.exists():
            return []
        found = (entry.name for entry in os.scandir(self._folder) if entry.is_dir(follow_symlinks=False))
        return sorted((name for name in found if name.isascii() and name.isdigit()), key=int)

    def _open(self) -> Checkpoint | None:
        """The newest checkpoint that is whole; what is incomplete goes."""
        names = self._names()
        manifests: dict[str, dict[str, Any]] = {}
        for name in names:
            try:
                manifests[name] = self._manifest(self._folder / name)
            except _DamagedError as error:
                _log.warning("checkpoint %s is not used: %s", self._folder / name, error)
        if self._folder.exists():
            for entry in sorted(self._folder.iterdir()):
                if entry.name.startswith((_WRITING, _REMOVING)):
                    shutil.rmtree(entry)
        newest = None
        for name in reversed(names):
            if name in manifests and newest is None:
                try:
                    _verify(self._folder / name, manifests[name])
                except _DamagedError as error:
                    _log.warning("checkpoint %s is not used: %s", self._folder / name, error)
                else:
                    newest = Checkpoint(self._folder / name, manifests[name]["steps"])
            if newest is None:
                self._remove(self._folder / name)
        return newest

    def _manifest(self, folder: Path) -> dict[str, Any]:
        """Reads a manifest, and refuses that of another training."""
        manifest = _read_manifest(folder)
        if manifest["training"] != self._training:
            changes = "; ".join(differences(manifest["training"], self._training))
            raise InvalidRunError(
                f"{folder}: a checkpoint of another training ({changes}); train with the same settings to go on, or "
                "in another folder to begin anew"
            )
        return manifest

    def _remove(self, folder: Path) -> None:
        """Removes a checkpoint; whenever that is interrupted, it is either whole or none."""
        away = folder.with_name(_REMOVING + folder.name)
        os.rename(folder, away)
        shutil.rmtree(away)


class TrainingMonitor:
    """Watches a training for a learner: metrics go to the tracker, and checkpoints to the store when they are due.

    Implements :class:`~opgym.agents.learner.Monitor`.

    Args:
        store: Of checkpoints.
        tracker: Of metrics.
        every_steps: A checkpoint is due when the steps have passed a multiple of it.
        every_minutes: One is due as long after the last, or after the beginning.
        clock: Seconds from any origin.
    """

    def __init__(
        self,
        store: CheckpointStore,
        tracker: Tracker,
        *,
        every_steps: int | None = None,
        every_minutes: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        for name, value in (("every_steps", every_steps), ("every_minutes", every_minutes)):
            if value is not None and not value > 0:
                raise ValueError(f"{name}={value}; expected a positive number, or None for never")
        self._store, self._tracker = store, tracker
        self._every_steps, self._every_minutes, self._clock = every_steps, every_minutes, clock
        self._time = clock()
        #: Steps of the last checkpoint that was offered: what is logged of them now would be logged twice, once
        #: before an interruption and once after.
        self._offered = -1 if store.newest is None else store.newest.steps

    @property
    def latest(self) -> Path | None:
        """Folder of the newest checkpoint, if any."""
        return None if self._store.newest is None else self._store.newest.folder

    def log(self, steps: int, metrics: Metrics) -> None:
        """Hands metrics on.

        Raises:
            ValueError: A checkpoint of as many steps was offered before.
        """
        if steps <= self._offered:
            raise ValueError(f"metrics of {steps} steps after their checkpoint; a learner logs first")
        self._tracker.log(steps, metrics)

    def checkpoint(self, steps: int, write: Callable[[Path], None], *, last: bool = False) -> None:
        """Makes a checkpoint if one is due."""
        self._offered = max(self._offered, steps)
        newest = self._store.resumed_from
        if newest is not None and steps <= newest:
            return
        due = last
        if self._every_steps is not None:
            due |= steps // self._every_steps > (newest or 0) // self._every_steps
        if self._every_minutes is not None:
            due |= self._clock() - self._time >= self._every_minutes * 60
        if due:
            self._store.write(steps, write, before=self._tracker.sync)
            self._time = self._clock()


class _DamagedError(Exception):
    """A checkpoint is not whole; the message says why."""


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _files(folder: Path) -> Iterator[tuple[str, Path]]:
    """Relative name and path of every file within a checkpoint, but the manifest's."""
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if (path.is_symlink() or not path.is_dir()) and name != MANIFEST:
            yield name, path


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _write_manifest(folder: Path, steps: int, training: Mapping[str, Any]) -> None:
    """Writes the manifest of everything in a folder, and returns when all of it is on the disk."""
    files = {}
    for name, path in _files(folder):
        if path.is_symlink() or not path.is_file():
            raise ValueError(f"{path}: a checkpoint holds plain files only")
        _sync(path)
        files[name] = {"bytes": path.stat().st_size, "sha256": _sha256(path)}
    manifest = {"format": FORMAT, "version": VERSION, "steps": steps, "training": training, "files": files}
    manifest["sha256"] = hashlib.sha256(_canonical(manifest).encode()).hexdigest()
    path = folder / MANIFEST
    path.write_text(json.dumps(manifest, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    _sync(path)
    for inner in (*(path for path in folder.rglob("*") if path.is_dir()), folder):
        _sync(inner)


def _read_manifest(folder: Path) -> dict[str, Any]:
    """Reads a manifest that nothing has happened to.

    Raises:
        _DamagedError: It is missing or damaged.
        InvalidRunError: It is of a version that is not known here.
    """
    try:
        manifest = json.loads((folder / MANIFEST).read_bytes())
    except FileNotFoundError:
        raise _DamagedError(f"it has no {MANIFEST}") from None
    except (ValueError, RecursionError):
        raise _DamagedError(f"{MANIFEST} is damaged") from None
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise _DamagedError(f"{MANIFEST} is none of a checkpoint")
    if manifest.get("version") != VERSION:
        raise InvalidRunError(
            f"{folder}: a checkpoint of version {manifest.get('version')!r}, and this opgym reads version {VERSION}; "
            "go on with the opgym that made it, or in another folder"
        )
    digest = manifest.pop("sha256", None)
    try:
        canonical = _canonical(manifest)
    except (ValueError, RecursionError):  # a NaN; or nested just so little that it could be read
        raise _DamagedError(f"{MANIFEST} is damaged") from None
    if digest != hashlib.sha256(canonical.encode()).hexdigest():
        raise _DamagedError(f"{MANIFEST} is damaged")
    return manifest


def _verify(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Compares every file with the manifest.

    Raises:
        _DamagedError: One is missing, too many, or other than it was.
    """
    found = dict(_files(folder))
    expected = manifest["files"]
    for name in sorted(found.keys() | expected.keys()):
        if name not in found or found[name].is_symlink() or not found[name].is_file():
            raise _DamagedError(f"{name} is missing")
        if name not in expected:
            raise _DamagedError(f"{name} does not belong to it")
        if (
            found[name].stat().st_size != expected[name]["bytes"]
            or _sha256(found[name]) != expected[name]["sha256"]
        ):
            raise _DamagedError(f"{name} is damaged")


def _sync(path: Path) -> None:
    """Waits until a file, or the entries of a folder, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _explained(error: OSError, target: Path) -> OSError:
    reason = f"{error.strerror or error}; no checkpoint was made, and the earlier ones are as they were"
    return OSError(error.errno, reason, str(target))
