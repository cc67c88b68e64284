"""What Hydra says about wrong settings, in a sentence, with the nearest right ones."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ...errors import InvalidProblemError, OpgymError, UnknownIdError, unknown_id


class UnreadableSettingsError(InvalidProblemError):
    """Settings that cannot be composed, and nobody says which: perhaps a file is none."""


@contextmanager
def composing() -> Iterator[None]:
    """Whatever goes wrong while Hydra composes settings is a mistake in them, or in a file of the user's.

    Raises:
        UnreadableSettingsError: For what neither Hydra nor OmegaConf has an error of its own.
    """
    from hydra.errors import HydraException
    from omegaconf.errors import OmegaConfBaseException

    try:
        yield
    except (OpgymError, HydraException, OmegaConfBaseException, MemoryError):
        raise
    except RecursionError:
        raise UnreadableSettingsError(
            "a file of settings is nested too deeply, or settings refer to each other"
        ) from None
    except Exception as error:
        if (
            isinstance(error, OSError) and error.errno is not None
        ):  # a file cannot be read; OmegaConf makes others
            raise
        raise UnreadableSettingsError(f"settings cannot be read: {_in_one_line(error)}") from error


def broken_file(folder: Path) -> InvalidProblemError | None:
    """The error for the first file of settings that is none, of which Hydra does not always say the name."""
    from omegaconf import DictConfig, OmegaConf

    for path in sorted(folder.rglob("*.yaml")):
        try:
            found = OmegaConf.load(path)
        except RecursionError:
            return InvalidProblemError(f"{path}: nested too deeply, or refers to itself")
        except Exception as error:
            return InvalidProblemError(f"{path}: cannot be read: {_in_one_line(error)}")
        if not isinstance(found, DictConfig):
            return InvalidProblemError(f"{path}: expected settings, KEY: VALUE")
    return None


def _in_one_line(error: Exception) -> str:
    return f"{' '.join(str(error).split()) or type(error).__name__:.500}"


def explained(error: Exception, groups: list[str], members: Callable[[str], list[str]]) -> OpgymError:
    """The error of opgym for one of Hydra or OmegaConf.

    Args:
        error: While settings were composed.
        groups: Names of the groups of settings.
        members: Names of the files of a group.
    """
    from hydra.errors import MissingConfigException
    from omegaconf.errors import ConfigAttributeError, ConfigKeyError, OmegaConfBaseException

    if isinstance(error, MissingConfigException) and error.options is not None:
        group, _, name = (error.missing_cfg_file or "").rpartition("/")
        return unknown_id(f"{group or 'settings'}", name, sorted(error.options))
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, OmegaConfBaseException):
        cause = cause.__cause__ or cause.__context__
    if isinstance(cause, ConfigAttributeError | ConfigKeyError):
        return _unknown_key(cause)
    if cause is not None:
        key = getattr(cause, "full_key", None)
        said = str(cause).splitlines()[0]
        return InvalidProblemError(f"{key}: {said}") if key else UnreadableSettingsError(said)
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if lines and "No match in the defaults list" in lines[0]:
        given = lines[0].split("'")[1] if "'" in lines[0] else lines[0]
        return unknown_id("group of settings", given, groups)
    absent = (
        re.search(r"Could not load '(.+)/([^/']+)'", lines[0]) if lines else None
    )  # one of several of a group
    if absent is not None:
        return unknown_id(absent[1], absent[2], sorted(members(absent[1])))
    return InvalidProblemError("\n".join(lines) or type(error).__name__)


def _unknown_key(error: Any) -> UnknownIdError:
    full = str(error.full_key or error.key)
    section, _, key = full.rpartition(".")
    known = [str(name) for name in (error.parent_node or {})]
    if not section:
        known = sorted({*known, "experiment", "debug"} - {"hydra"})
    found = unknown_id("setting", key, known)
    if not section:
        return found
    return UnknownIdError(str(found).replace(f"{key!r}", f"{full!r}", 1))
