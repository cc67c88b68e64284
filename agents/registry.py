"""Solvers by name: ours, and those that installed packages bring under the entry-point group ``opgym.solvers``."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, TypeVar

from ..errors import OpgymError, UnknownIdError, unknown_id
from ..problems import PlacementProblem
from .solver import Solver

#: Families of solvers: rules that need no search; those that prove what they claim, and may take long; those that can
#: be trained, and learn on the problem they are given if they are not.
HEURISTICS, EXACT, LEARNED = "heuristics", "exact", "learned"
#: Modules that register our own solvers when they are imported, and the family of each.
_FAMILIES = {
    "heuristics": HEURISTICS,
    "exact": EXACT,
    "search": "search",
    "sb3": LEARNED,
    "regal": LEARNED,
    "gdp": LEARNED,
    "hdp": LEARNED,
    "placeto": LEARNED,
    "placer": LEARNED,
}
ENTRY_POINT_GROUP = "opgym.solvers"

AnySolver = Solver[Any, Any]
_registry: dict[str, type[AnySolver]] = {}
_T = TypeVar("_T", bound=type[AnySolver])


def register(solver: _T) -> _T:
    """Class decorator: makes a solver known by its ``name``.

    Raises:
        OpgymError: Another class has that name already.
    """
    taken = _registry.get(solver.name)
    if taken is not None and (taken.__module__, taken.__qualname__) != (
        solver.__module__,
        solver.__qualname__,
    ):
        raise OpgymError(f"two solvers are named {solver.name!r}: {taken.__module__} and {solver.__module__}")
    _registry[solver.name] = solver
    return solver


@cache
def _load_all() -> None:
    for module in _FAMILIES:
        import_module(f".{module}", __package__)
    for entry in entry_points(group=ENTRY_POINT_GROUP):
        solver = entry.load()
        if not (isinstance(solver, type) and issubclass(solver, Solver)):
            raise OpgymError(f"entry point {entry.name!r} in {ENTRY_POINT_GROUP!r} is no Solver class")
        register(solver)


def names(problem_type: type[Any] = PlacementProblem) -> list[str]:
    """Names of the solvers of one type of problem: cheap ones first, those of other packages last."""
    _load_all()
    found = [name for name, solver in _registry.items() if issubclass(problem_type, solver.problem_types)]
    order = [*_FAMILIES, ""]  # who imported which family first must not change the order of tables
    return sorted(found, key=lambda name: order.index(_module(name)))


def family(name: str) -> str:
    """Where a solver belongs: ``"heuristics"``, ``"exact"``, ``"search"`` or ``"learned"``; ``""`` for one of another
    package.

    Raises:
        UnknownIdError: With the nearest names.
    """
    return _FAMILIES.get(_module(name), "")


def _module(name: str) -> str:
    """The folder beside this file that a solver is from; empty for one of another package."""
    module = solver_class(name).__module__
    return next((folder for folder in _FAMILIES if module.startswith(f"{__package__}.{folder}.")), "")


def solver_class(name: str) -> type[AnySolver]:
    """The class behind a name.

    Raises:
        UnknownIdError: With the nearest names.
    """
    _load_all()
    if name not in _registry:
        raise unknown_id("solver", name, list(_registry))
    return _registry[name]


def frozen(value: Any) -> Any:
    """An option as it was read from JSON or YAML, with tuples for lists: options of solvers never change."""
    if isinstance(value, dict):
        return {key: frozen(item) for key, item in value.items()}
    return tuple(map(frozen, value)) if isinstance(value, list) else value


def make(name: str, **options: Any) -> AnySolver:
    """A solver by name, e.g. ``make("m-etf")``.

    Args:
        name: One of :func:`names`.
        **options: The solver's own options (the fields of its dataclass).

    Raises:
        UnknownIdError: An unknown name or option, with the nearest ones.
    """
    cls = solver_class(name)
    known: list[str] = [f.name for f in fields(cls) if f.init] if is_dataclass(cls) else []
    for option in options:
        if option not in known:
            error: UnknownIdError = unknown_id(f"option of solver {name!r}", option, known)
            raise error
    return cls(**options)
