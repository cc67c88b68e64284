"""What Hydra says about wrong settings, in a sentence, with the nearest right ones."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from ...errors import InvalidProblemError, OpgymError, UnknownIdError, unknown_id


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
        return InvalidProblemError(f"{key}: {said}" if key else said)
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
