"""Who takes part in a comparison: solvers by name, with options of one's own, or saved learners."""

from __future__ import annotations

import dataclasses
import enum
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from ...agents import Solver, load, make
from ...agents.registry import frozen, solver_class
from ...agents.saved import AGENT_FILE, AGENT_FOLDER, saved_in
from ...errors import InvalidProblemError, UnknownIdError

#: Hexadecimal digits of a digest: 48 bits.
_DIGITS = 12
_KEYS = ("solver", "options", "name")


@dataclass(frozen=True)
class Contestant:
    """An agent as it was asked for, in plain data that another process can be told.

    Attributes:
        name: What tables call it.
        given: Folder of a saved learner, or a solver with its options as JSON text.
        digest: Of its solver, of all its options, and of the files of a saved learner: two that share it are one.
    """

    name: str
    given: str
    digest: str

    @classmethod
    def of(cls, given: str | os.PathLike[str] | Mapping[str, Any]) -> Contestant:
        """An agent.

        Args:
            given: A name of ``opgym solvers``, the path of a saved learner or of the folder of its training; or
                ``{solver: ..., options: {...}, name: ...}``, the name being that in tables.

        Raises:
            UnknownIdError: No such agent or option, with the nearest ones.
            InvalidProblemError: Something else, an option with a wrong value, or a damaged file.
        """
        if not isinstance(given, Mapping):
            if not isinstance(given, str | os.PathLike):
                raise InvalidProblemError(f"agent {given!r:.200}; expected a name, a path, or a mapping")
            text = os.fspath(given)
            if is_solver(text):  # a name goes before a folder of that name; ./NAME is the folder
                return cls.of({"solver": text})
            if saved_in(Path(text)) is not None:
                return cls(text, text, _made(text)[1])
            if os.sep in text or Path(text).exists():
                raise InvalidProblemError(
                    f"agent {text!r}: a folder without {AGENT_FILE} and without {AGENT_FOLDER}/{AGENT_FILE}"
                )
            return cls.of({"solver": text})  # says which names there are
        if not {"solver"} <= given.keys() <= set(_KEYS) or not isinstance(given["solver"], str):
            raise InvalidProblemError(
                f"agent {dict(given)!r:.200}; expected a name, a path, or "
                "{solver: NAME, options: {...}, name: TEXT}"
            )
        options, name = given.get("options") or {}, given.get("name") or given["solver"]
        if not isinstance(options, Mapping) or not isinstance(name, str):
            raise InvalidProblemError(
                f"agent {dict(given)!r:.200}; the options are a mapping, the name is text"
            )
        try:
            text = json.dumps(
                {"solver": given["solver"], "options": options}, allow_nan=False, default=_as_dict
            )
        except (TypeError, ValueError) as error:
            raise InvalidProblemError(f"agent {name!r}: options that are no plain data ({error})") from None
        return cls(name, text, _made(text)[1])

    @classmethod
    def of_solver(cls, name: str, solver: Solver[Any, Any]) -> Contestant:
        """A solver whose options are plain data, such as one of stored settings.

        Args:
            name: What tables call it.
            solver: The solver.

        Raises:
            InvalidProblemError: An option is no plain data.
        """
        chosen: Sequence[dataclasses.Field[Any]] = ()
        if dataclasses.is_dataclass(solver):
            chosen = dataclasses.fields(solver)
        options = {field.name: getattr(solver, field.name) for field in chosen if field.init}
        return cls.of({"solver": solver.name, "options": options, "name": name})

    def make(self) -> Solver[Any, Any]:
        """The agent itself.

        Raises:
            OpgymError: It can no longer be made, or has changed since it was asked for.
        """
        solver, digest = _made(self.given)
        if digest != self.digest:
            raise InvalidProblemError(
                f"agent {self.name!r} has changed since this run began; start another run"
            )
        return solver


def contestants(
    given: Sequence[str | os.PathLike[str] | Mapping[str, Any] | Contestant],
) -> list[Contestant]:
    """Agents, all different.

    Raises:
        OpgymError: One cannot be made; none; one twice; or one name for two.
    """
    found = [agent if isinstance(agent, Contestant) else Contestant.of(agent) for agent in given]
    if not found:
        raise InvalidProblemError("no agents; expected at least one, e.g. agents=[m-etf,annealing]")
    for what, fault in (
        ("name", "share a name; give one of them another `name`"),
        ("digest", "are the same; give each once"),
    ):
        seen: dict[str, Contestant] = {}
        for contestant in found:
            other = seen.setdefault(getattr(contestant, what), contestant)
            if other is not contestant:
                raise InvalidProblemError(f"agents {other.name!r} and {contestant.name!r} {fault}")
    return found


@cache
def _made(given: str) -> tuple[Solver[Any, Any], str]:
    """A solver and its digest; in one process each is made once, as reading what was learned takes time."""
    if not given.startswith("{"):
        folder = saved_in(Path(given))
        if folder is None:
            raise InvalidProblemError(f"{given}: there is no saved learner any more")
        return load(folder), _digest_of_files(folder)
    document = json.loads(given)
    try:
        solver = make(document["solver"], **frozen(document["options"]))
    except (TypeError, ValueError) as error:
        raise InvalidProblemError(f"agent {document['solver']!r}: {error}") from None
    return solver, digest_of(solver)


def is_solver(name: str) -> bool:
    """Whether a solver has this name."""
    try:
        solver_class(name)
    except UnknownIdError:
        return False
    return True


def digest_of(solver: Solver[Any, Any]) -> str:
    """A digest of a solver's name and of all its options, defaults included.

    Raises:
        InvalidProblemError: An option is of a type that has no digest.
    """
    text = json.dumps([solver.name, _plain(solver)], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


def _digest_of_files(folder: Path) -> str:
    whole = hashlib.sha256()
    for path in sorted(path for path in folder.iterdir() if path.is_file()):
        whole.update(f"{path.name}\n{path.stat().st_size}\n".encode())
        with path.open("rb") as file:
            whole.update(hashlib.file_digest(file, "sha256").digest())
    return whole.hexdigest()[:_DIGITS]


def _plain(value: Any) -> Any:
    """An option as JSON data."""
    if value is None or (isinstance(value, bool | int | float | str) and not isinstance(value, enum.Enum)):
        return value
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, np.ndarray | np.generic):
        array = np.asarray(value)
        return [str(array.dtype), list(array.shape), hashlib.sha256(array.tobytes()).hexdigest()]
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, set | frozenset):
        return sorted(json.dumps(_plain(item), sort_keys=True) for item in value)
    if dataclasses.is_dataclass(value):
        return {
            field.name: _plain(getattr(value, field.name))
            for field in dataclasses.fields(value)
            if field.init
        }
    raise InvalidProblemError(f"an option of type {type(value).__name__}, which has no digest")


def _as_dict(value: Any) -> dict[str, Any]:
    """Mappings of other types, for JSON."""
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"a {type(value).__name__}")
