"""Options of learners as JSON, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .base import SB3Learner


def options_of(learner: SB3Learner) -> dict[str, Any]:
    """Options of a learner by name, as JSON holds them."""
    return {f.name: _jsonable(getattr(learner, f.name)) for f in fields(learner) if f.init}


def _jsonable(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _jsonable(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return [_jsonable(item) for item in value]
    return value
