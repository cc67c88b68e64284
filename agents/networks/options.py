"""Options of learners, and shapes of networks, as JSON and back."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import MISSING, asdict, fields
from typing import TYPE_CHECKING, Any, TypeVar

from ...errors import OpgymError
from ...graphs.closed_json import Row
from ..registry import frozen

if TYPE_CHECKING:
    from .learner import NetworkLearner

_T = TypeVar("_T")


def options_of(learner: NetworkLearner[Any, Any]) -> dict[str, Any]:
    """Options of a learner by name, as JSON holds them, without those that are not saved."""
    return {
        f.name: _jsonable(getattr(learner, f.name))
        for f in fields(learner)
        if f.init and f.name not in learner.unsaved_options
    }


def identity_of(
    checkpoints: str,
    learner: NetworkLearner[Any, Any],
    network: Any,
    outside: Collection[str],
    **settings: Any,
) -> dict[str, Any]:
    """Everything that decides what a training does, as plain data.

    Args:
        checkpoints: Name and version of their format.
        learner: With its options, and what it has learned before.
        network: Shape of the policy, a dataclass.
        outside: Options that no training depends on.
        **settings: What is learned from, how long, and the like.
    """
    options = {name: value for name, value in options_of(learner).items() if name not in outside}
    return {
        "format": checkpoints,
        "agent": learner.name,
        "options": options,
        "network": asdict(network),
        **settings,
        "started_from": learner.learned.digest if learner.learned else None,
    }


def made(kind: type[_T], values: Any, row: Row, what: str, given: Mapping[str, Any] | None = None) -> _T:
    """A dataclass from an object of a file.

    A field that the object lacks has its default: what came later than the file does, by default, as was done before.

    Args:
        kind: The dataclass.
        values: What was read; an object with fields of the dataclass, and nothing else.
        row: Where it was read, for messages.
        what: Is made, for messages.
        given: Values of fields that are not in files.

    Raises:
        OpgymError: An unknown field, one that is missing and has no default, or a value that cannot be.
    """
    given = given or {}
    every = [f for f in fields(kind) if f.init and f.name not in given]  # type: ignore[arg-type]
    known = {f.name for f in every}
    needed = {f.name for f in every if f.default is MISSING and f.default_factory is MISSING}
    if not isinstance(values, dict) or not needed <= values.keys() <= known:
        row.refuse(f"has other options than {what} of this version: {', '.join(sorted(known))}")
    try:
        return kind(**frozen(values), **given)
    except (OpgymError, TypeError, ValueError) as error:
        row.refuse(f"has an option that cannot be: {error}")


def _jsonable(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _jsonable(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return [_jsonable(item) for item in value]
    return value
