"""What a command must bring to be run by Hydra: settings, a name for their folder, and the work."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from ...errors import InvalidRunError
from ..run_folder import Progress

#: Groups of settings that a user chooses from by ``GROUP=NAME``.
GROUPS = ("agent", "env", "problem", "suite", "logger", "trainer", "experiment", "debug")


#: Most bytes of a name of a file on any usual file system.
_LONGEST_NAME_BYTES = 255


class Settings(Protocol):
    """What every application's settings have.

    Attributes:
        name: Of the run's folder; ``None``: one that says what is run.
        runs: Folder of all runs.
        resume: Whether to go on with what was interrupted.
    """

    name: str | None
    runs: str
    resume: bool


SettingsT = TypeVar("SettingsT", bound=Settings)


class Application(ABC, Generic[SettingsT]):
    """One command of Hydra. Instances hold nothing, and go to other processes."""

    #: Of the command, and of its primary file in ``conf/``.
    name: ClassVar[str]
    #: Dataclass of the settings: keys and types that overrides are checked against.
    schema: ClassVar[type[Any]]
    #: Keys below which any key may be set: options whose owner checks them.
    open_keys: ClassVar[tuple[str, ...]] = ()
    #: Groups of which several members may be chosen.
    several: ClassVar[tuple[str, ...]] = ()
    #: Keys that do not decide what is run.
    outside: ClassVar[tuple[str, ...]] = ("name", "runs", "resume")

    def settings(self, composed: Mapping[str, Any]) -> SettingsT:
        """The settings of a run, from plain data that fits the schema.

        Raises:
            OpgymError: A value is impossible, or the name of a folder is.
        """
        settings = self.read(composed)
        require_folder(settings.name, settings.runs)
        return settings

    @abstractmethod
    def read(self, settings: Mapping[str, Any]) -> SettingsT:
        """The settings, from plain data that fits the schema.

        Raises:
            OpgymError: A value is impossible.
        """

    @abstractmethod
    def folder_name(self, settings: SettingsT) -> str:
        """A name for the folder of a run that says what is run: the same for the same settings, and for no others."""

    @abstractmethod
    def prepare(self, settings: SettingsT, folder: Path) -> Progress:
        """Refuses, before anything runs, what could not run; changes nothing.

        Args:
            settings: Of the run.
            folder: Of the run.

        Returns:
            How far the run came earlier; it is to be gone on with.

        Raises:
            OpgymError: The settings are wrong, or the folder holds what they do not allow to touch.
        """

    @abstractmethod
    def run(self, settings: SettingsT, folder: Path) -> dict[str, Any]:
        """Does the work.

        Returns:
            The result as JSON data; in a sweep its ``value``, ``unit``, ``verdict``, ``ratio_to_reference``,
            ``score`` (lower is better) and ``seconds`` are shown, where it has them.
        """

    def in_sweep(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """The settings of a run that is one of many, as plain data."""
        return dict(settings)

    def result(self, folder: Path) -> dict[str, Any]:
        """The result of a finished run."""
        from ..run_folder import read_result

        return read_result(folder)


def require_folder(name: Any, runs: Any) -> None:
    """Refuses a name that would put a run elsewhere than into a folder of its own below that of all runs.

    Raises:
        InvalidRunError: With what is expected.
    """
    if not isinstance(runs, str) or not runs.strip() or "\0" in runs:
        raise InvalidRunError(f"runs = {runs!r}; expected the folder of all runs, or '.' for the current one")
    if name is None:
        return
    fits = isinstance(name, str) and re.fullmatch(r"[\w=+.-][\w=+., -]*", name) and name.strip(". ")
    if not fits or len(name.encode()) > _LONGEST_NAME_BYTES:
        raise InvalidRunError(
            f"name = {name!r:.300}; expected a name of a folder: letters, digits, '_', '-', '=', '+', ',' and '.', "
            f"at most {_LONGEST_NAME_BYTES} bytes"
        )
