"""JSON files from anywhere: read strictly, every field checked, every message naming the row."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from math import isfinite
from pathlib import Path
from typing import Any, NoReturn

from ..errors import OpgymError

#: A larger file is refused before it is read.
MAX_FILE_BYTES = 256 * 2**20


def read_json(path: str | os.PathLike[str], error: type[OpgymError], what: str) -> Any:
    """Parses a JSON file; a byte-order mark and any line ends are accepted, NaN and repeated keys are not.

    Args:
        path: The file.
        error: Class of the error for whatever is wrong with it.
        what: What the file should be, for messages.
    """
    file = Path(path)
    try:
        if file.is_dir():
            raise error(f"{path}: is a folder; expected {what}")
        size = file.stat().st_size
        if size > MAX_FILE_BYTES:
            raise error(f"{path}: has {size} bytes; at most {MAX_FILE_BYTES} are read")
        text = file.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise error(f"{path}: no such file") from None
    except UnicodeDecodeError as problem:
        raise error(f"{path}: not UTF-8 text (byte {problem.start}); expected {what}") from None
    except OSError as problem:
        raise error(f"{path}: cannot be read ({problem.strerror}); expected {what}") from None

    def refuse_constant(name: str) -> NoReturn:
        raise error(f"{path}: holds {name}; numbers must be finite")

    def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        row = dict(pairs)
        if len(row) < len(pairs):
            keys = [key for key, _ in pairs]
            twice = next(key for i, key in enumerate(keys) if key in keys[:i])
            raise error(f"{path}: one object has the key {twice!r} twice")
        return row

    try:
        return json.loads(text, parse_constant=refuse_constant, object_pairs_hook=unique_keys)
    except error:
        raise
    except RecursionError:
        raise error(f"{path}: nested too deeply; expected {what}") from None
    except ValueError as problem:
        raise error(f"{path}: not valid JSON ({problem}); expected {what}") from None


class Row:
    """A JSON object with a known set of keys.

    Args:
        value: What was parsed.
        where: Names the row in messages, e.g. ``"model.json: node 3"``.
        error: Class of the error for whatever is wrong with it.
        required: Keys that must be there.
        optional: Keys that may be there, or be ``null``.
    """

    def __init__(
        self,
        value: Any,
        where: str,
        error: type[OpgymError],
        required: Iterable[str],
        optional: Iterable[str] = (),
    ) -> None:
        self.where = where
        self._error = error
        if not isinstance(value, dict):
            self.refuse(f"is {_kind(value)}; expected an object")
        self._value: Mapping[str, Any] = value
        required = tuple(required)
        missing = [key for key in required if key not in value]
        if missing:
            self.refuse(f"lacks {', '.join(map(repr, missing))}")
        unknown = sorted(value.keys() - {*required, *optional})
        if unknown:
            self.refuse(f"has unknown keys {', '.join(map(repr, unknown[:5]))}")

    def refuse(self, message: str) -> NoReturn:
        """Raises the error of this file, with the row's name before the message."""
        raise self._error(f"{self.where} {message}")

    def get(self, key: str) -> Any:
        """The value as it is; ``None`` where absent."""
        return self._value.get(key)

    def integer(self, key: str, low: int, high: int) -> int:
        """A whole number in ``low .. high`` (``1.0`` counts, ``true`` does not)."""
        value = self._value[key]
        if isinstance(value, bool) or not isinstance(value, int | float) or value != value // 1:
            self.refuse(f"has {key} = {value!r:.60}; expected a whole number")
        if not low <= value <= high:
            self.refuse(f"has {key} = {value!r:.60}; expected {low} to {high}")
        return int(value)

    def number(self, key: str, low: float, high: float) -> float:
        """A finite number in ``low .. high``."""
        value = self._value[key]
        if isinstance(value, bool) or not isinstance(value, int | float) or not _finite(value):
            self.refuse(f"has {key} = {value!r:.60}; expected a finite number")
        if not low <= value <= high:
            self.refuse(f"has {key} = {value!r:.60}; expected {low:g} to {high:g}")
        return float(value)

    def flag(self, key: str) -> bool:
        """``true``, ``false``, 1 or 0."""
        value = self._value[key]
        if not isinstance(value, bool | int) or value not in (0, 1):
            self.refuse(f"has {key} = {value!r:.60}; expected true, false, 1 or 0")
        return bool(value)

    def text(self, key: str) -> str:
        """A string."""
        value = self._value[key]
        if not isinstance(value, str):
            self.refuse(f"has {key} = {value!r:.60}; expected text")
        return value

    def rows(self, key: str, most: int) -> list[Any]:
        """A list of at most ``most`` entries."""
        value = self._value[key]
        if not isinstance(value, list):
            self.refuse(f"has {key} = {_kind(value)}; expected a list")
        if len(value) > most:
            self.refuse(f"has {len(value)} {key}; at most {most} are read")
        return value


def _finite(value: float) -> bool:
    """Whether it is no NaN and no infinity; a whole number may be too large for a float."""
    return isinstance(value, int) or isfinite(value)


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "text", bool: "a truth value", type(None): "null"}
    return names.get(type(value), "a number")
