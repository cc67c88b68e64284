"""Reads ``conf/agent/*.yaml``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ..agents import Solver, load, make
from ..agents.registry import frozen, names, solver_class
from ..agents.saved import saved_in
from ..errors import InvalidProblemError, UnknownIdError, unknown_id
from ..problems import PlacementProblem, SchedulingProblem

_FOLDER = Path(__file__).with_name("agent")
_SUFFIX = ".yaml"


def agent_names() -> list[str]:
    """Names of the stored settings, sorted."""
    return sorted(file.name.removesuffix(_SUFFIX) for file in _FOLDER.glob(f"*{_SUFFIX}"))


def agent(name: str | os.PathLike[str]) -> Solver[Any, Any]:
    """A solver with stored settings.

    Args:
        name: One of :func:`agent_names`, or the path of a file that ends in ``.yaml``: ``solver`` is a name of
            ``opgym solvers``, ``options`` its options.

    Raises:
        UnknownIdError: No such settings, solver or option, with the nearest ones.
        InvalidProblemError: The file cannot be read, or holds something else.
    """
    given = os.fspath(name)
    if given in agent_names():
        return _read(_FOLDER / (given + _SUFFIX))
    if given.endswith(_SUFFIX):
        return _read(Path(given))
    raise unknown_id("agent", given, agent_names())


def make_agent(name: str) -> Solver[Any, Any]:
    """A solver by its own name, by that of stored settings, or a learner by the folder in which it is saved.

    The name of a solver goes first. Stored settings of the same name say the same, its defaults.

    Args:
        name: Of ``opgym solvers``, one of :func:`agent_names`, a path that ends in ``.yaml``, or the folder of a saved
            learner or of its training.

    Raises:
        UnknownIdError: Neither, with the nearest names of both.
    """
    try:
        solver_class(name)
    except UnknownIdError:
        if name in agent_names() or name.endswith(_SUFFIX):
            return agent(name)
        if saved_in(name) is not None:
            return load(name)
        solvers = {*names(PlacementProblem), *names(SchedulingProblem)}
        raise unknown_id("solver", name, sorted({*solvers, *agent_names()})) from None
    return make(name)


def _read(path: Path) -> Solver[Any, Any]:
    import yaml

    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InvalidProblemError(f"{path}: no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidProblemError(f"{path}: cannot be read ({error})") from None
    try:
        document = yaml.safe_load(text)  # plain data only: no tag can name anything to run
    except yaml.YAMLError as error:
        raise InvalidProblemError(f"{path}: not valid YAML ({str(error).splitlines()[0]})") from None
    except RecursionError:
        raise InvalidProblemError(f"{path}: nested too deeply; expected a solver and its options") from None
    if not isinstance(document, dict) or not {"solver"} <= document.keys() <= {"solver", "options"}:
        raise InvalidProblemError(f"{path}: expected `solver: NAME` and `options: {{...}}`, and nothing else")
    solver, options = document["solver"], document.get("options") or {}
    if not isinstance(solver, str) or not isinstance(options, dict) or not all(map(_is_name, options)):
        raise InvalidProblemError(f"{path}: the solver is a name, and the options are a mapping from names")
    try:
        return make(solver, **frozen(options))
    except UnknownIdError as error:
        raise UnknownIdError(f"{path}: {error}") from None
    except (InvalidProblemError, TypeError, ValueError) as error:
        raise InvalidProblemError(f"{path}: {error}") from None


def _is_name(key: Any) -> bool:
    return isinstance(key, str)
