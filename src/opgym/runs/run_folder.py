"""The folder of one run: what its files say about how far it came, and a lock, so that one process works in it."""

from __future__ import annotations

import enum
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..errors import InvalidRunError, OpgymError, RunInUseError
from ..graphs.atomic import naming, write_text

CONFIG, RESULT, ERROR, LOCK = "config.yaml", "result.json", "error.txt", ".lock"
#: How long the lock of a process that is just ending is waited for.
PATIENCE_S = 20.0
_LOOK_S = 0.1
_ABSENT = object()
#: Shown of a value that differs.
_MOST_LETTERS = 200


class Progress(enum.StrEnum):
    """How far a run came."""

    ABSENT = "absent"
    UNFINISHED = "unfinished"
    FINISHED = "finished"


def progress_of(folder: Path) -> Progress:
    """How far the run in a folder came; a result is written last."""
    if (folder / RESULT).is_file():
        return Progress.FINISHED
    return Progress.UNFINISHED if (folder / CONFIG).is_file() else Progress.ABSENT


def require_fresh(folder: Path) -> None:
    """Refuses a folder that holds a run, or something else than the error of one that never began.

    Raises:
        InvalidRunError: Saying what to do about it.
    """
    progress = progress_of(folder)
    if progress is not Progress.ABSENT:
        goes = "keeps it" if progress is Progress.FINISHED else "goes on with it"
        raise InvalidRunError(
            f"{folder} holds {'a finished' if progress is Progress.FINISHED else 'an unfinished'} run; resume=true "
            f"{goes} where its settings are these, name=... starts another one, or remove the folder"
        )
    others = (
        [path.name for path in folder.iterdir() if path.name not in (LOCK, ERROR)] if folder.is_dir() else []
    )
    if others:
        raise InvalidRunError(f"{folder} is no run, and is not empty ({others[0]}); choose another name=...")


def require_same(
    folder: Path, identity: Callable[[dict[str, Any]], Mapping[str, Any]], now: Mapping[str, Any]
) -> None:
    """Refuses to go on with a run of other settings.

    Args:
        folder: Of the run.
        identity: From what ``config.yaml`` holds to what of it says what is run.
        now: What the settings of today say.

    Raises:
        InvalidRunError: Naming what differs, or that the folder is of another command or version.
    """
    stored = read_config(folder)
    try:
        before = identity(stored)
    except (TypeError, KeyError, AttributeError, OpgymError):
        raise InvalidRunError(
            f"{folder}/{CONFIG} holds no settings that this command of this version writes; choose another name=..."
        ) from None
    changed = differences(before, now)
    if changed:
        raise InvalidRunError(
            f"{folder} holds a run of other settings ({'; '.join(changed)}); give it another name=..."
        )


def differences(before: Any, now: Any, at: str = "") -> list[str]:
    """What two settings disagree about, as ``agent.gamma was 1, is 0.9``."""
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        return [
            line
            for key in [*before, *(key for key in now if key not in before)]
            for line in differences(
                before.get(key, _ABSENT), now.get(key, _ABSENT), f"{at}.{key}" if at else str(key)
            )
        ]
    if before == now or (isinstance(now, tuple) and list(now) == before):
        return []
    was, new = (
        "absent" if value is _ABSENT else json.dumps(value, default=str)[:_MOST_LETTERS]
        for value in (before, now)
    )
    return [f"{at} was {was}, is {new}"]


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Makes the folder, and keeps other processes out of it until the block, or this process, ends.

    Raises:
        RunInUseError: Another process works in it, and has not ended within :data:`PATIENCE_S`.
        OSError: The folder cannot be made or written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        deadline = time.monotonic() + PATIENCE_S
        while not _try_lock(lock):
            if time.monotonic() >= deadline:
                owner = os.pread(lock, 100, 0).decode(errors="replace").strip() or "another process"
                raise RunInUseError(f"{folder}: {owner} works on this run; wait for it, or end it")
            time.sleep(_LOOK_S)
        with naming(folder / LOCK):
            os.ftruncate(lock, 0)
            os.pwrite(lock, f"process {os.getpid()} on {os.uname().nodename}\n".encode(), 0)
        yield
    finally:
        os.close(lock)


def _try_lock(lock: int) -> bool:
    import fcntl

    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def write_config(folder: Path, settings: Mapping[str, Any]) -> None:
    """Writes ``config.yaml``, which is on the disk when this returns."""
    import yaml

    write_text(folder / CONFIG, yaml.safe_dump(dict(settings), sort_keys=False, allow_unicode=True))
    synchronise(folder)


def discard(folder: Path) -> None:
    """Removes a run from its folder, which this process has locked and made; the lock stays."""
    for path in [path for path in folder.iterdir() if path.name != LOCK]:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def read_config(folder: Path) -> dict[str, Any]:
    """What ``config.yaml`` holds.

    Raises:
        InvalidRunError: There is none, or it is damaged.
    """
    import yaml

    path = folder / CONFIG
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))  # plain data only
    except FileNotFoundError:
        raise InvalidRunError(f"{folder} is the folder of no run: it has no {CONFIG}") from None
    except (OSError, UnicodeDecodeError, yaml.YAMLError, RecursionError) as error:
        raise InvalidRunError(f"{path}: cannot be read ({str(error).splitlines()[0]})") from None
    if not isinstance(document, dict) or not all(isinstance(key, str) for key in document):
        raise InvalidRunError(f"{path}: expected the settings of a run")
    return document


def write_result(folder: Path, result: Mapping[str, Any]) -> None:
    """Writes ``result.json``: from here on the run is finished."""
    write_text(folder / RESULT, json.dumps(result, indent=2, allow_nan=False) + "\n")
    synchronise(folder)


def read_result(folder: Path) -> dict[str, Any]:
    """What ``result.json`` holds.

    Raises:
        InvalidRunError: There is none, or it is damaged.
    """
    path = folder / RESULT
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InvalidRunError(f"{folder} holds no finished run: it has no {RESULT}") from None
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidRunError(f"{path}: cannot be read ({error})") from None
    if not isinstance(document, dict):
        raise InvalidRunError(f"{path}: expected the result of a run")
    return document


def write_folder(target: Path, write: Callable[[Path], None]) -> None:
    """Makes a folder that appears whole or not at all; one that is there already is replaced.

    Args:
        target: The folder.
        write: Writes into an empty one.
    """
    beside = target.with_name(f".{target.name}.tmp")
    shutil.rmtree(beside, ignore_errors=True)
    beside.mkdir()
    try:
        with naming(target):
            write(beside)
        for path in sorted(beside.rglob("*")):
            synchronise(path)
        shutil.rmtree(target, ignore_errors=True)
        beside.rename(target)
    except BaseException:
        shutil.rmtree(beside, ignore_errors=True)
        raise
    synchronise(target.parent)


def synchronise(path: Path) -> None:
    """Returns when a file, or the list of files of a folder, is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        with naming(path):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
