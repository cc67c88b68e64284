"""Parameters of a family: how each is written in an id, its default, and what it may be."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from ...errors import ImportFailedError, unknown_id

#: What the parameters of an id come to, by name: an int, a float, a word, or a range.
Values = Mapping[str, Any]

_WHOLE = re.compile(r"[0-9]{1,18}")
_SPAN = re.compile(r"([0-9]{1,18})-([0-9]{1,18})")
_DECIMAL = re.compile(r"[0-9]{0,6}\.?[0-9]{1,12}")


class Parameter(Protocol):
    """A named value of an id; ``default`` is written as in an id."""

    @property
    def name(self) -> str:
        """Its name in an id."""
        ...

    @property
    def default(self) -> str:
        """Its value where an id leaves it out."""
        ...

    @property
    def meaning(self) -> str:
        """What it is, for people."""
        ...

    @property
    def expected(self) -> str:
        """What it may be, for people."""
        ...

    def read(self, text: str, owner: str) -> Any:
        """The value that a text stands for; ``owner`` (an id without parameters) names it in messages.

        Raises:
            ImportFailedError: The text stands for no value that the parameter may have.
            UnknownIdError: The text is no word that the parameter knows.
        """
        ...

    def write(self, value: Any) -> str:
        """The one text that stands for a value in a canonical id."""
        ...


def _refuse(parameter: Parameter, text: str, owner: str) -> ImportFailedError:
    return ImportFailedError(f"{owner}: {parameter.name}={text[:40]!r}; expected {parameter.expected}")


@dataclass(frozen=True)
class Whole:
    """A whole number from ``low`` to ``high``."""

    name: str
    default: str
    meaning: str
    low: int
    high: int

    @property
    def expected(self) -> str:
        """See :class:`Parameter`."""
        return f"a whole number from {self.low} to {self.high}" if self.low < self.high else str(self.low)

    def read(self, text: str, owner: str) -> int:
        """See :class:`Parameter`."""
        if not _WHOLE.fullmatch(text) or not self.low <= int(text) <= self.high:
            raise _refuse(self, text, owner)
        return int(text)

    def write(self, value: Any) -> str:
        """See :class:`Parameter`."""
        return str(value)


@dataclass(frozen=True)
class WholeOrSpan:
    """A whole number, or two of them between which the seed draws one."""

    name: str
    default: str
    meaning: str
    low: int
    high: int

    @property
    def expected(self) -> str:
        """See :class:`Parameter`."""
        return f"a whole number from {self.low} to {self.high}, or a span of them such as 50-200"

    def read(self, text: str, owner: str) -> range:
        """See :class:`Parameter`."""
        ends = _SPAN.fullmatch(text)
        if ends is None and not _WHOLE.fullmatch(text):
            raise _refuse(self, text, owner)
        first, last = (int(ends[1]), int(ends[2])) if ends else (int(text), int(text))
        if not self.low <= first <= last <= self.high:
            raise _refuse(self, text, owner)
        return range(first, last + 1)

    def write(self, value: Any) -> str:
        """See :class:`Parameter`."""
        return str(value[0]) if len(value) == 1 else f"{value[0]}-{value[-1]}"


@dataclass(frozen=True)
class Probability:
    """A decimal number from 0 to 1."""

    name: str
    default: str
    meaning: str

    @property
    def expected(self) -> str:
        """See :class:`Parameter`."""
        return "a decimal number from 0 to 1 with at most 12 decimals"

    def read(self, text: str, owner: str) -> float:
        """See :class:`Parameter`."""
        if not _DECIMAL.fullmatch(text) or float(text) > 1:
            raise _refuse(self, text, owner)
        return float(text)

    def write(self, value: Any) -> str:
        """See :class:`Parameter`."""
        return f"{value:.12f}".rstrip("0").rstrip(".")


@dataclass(frozen=True)
class Word:
    """One of some words, each with its meaning."""

    name: str
    default: str
    meaning: str
    words: tuple[str, ...]

    @property
    def expected(self) -> str:
        """See :class:`Parameter`."""
        return " or ".join(self.words)

    def read(self, text: str, owner: str) -> str:
        """See :class:`Parameter`."""
        if text not in self.words:
            raise unknown_id(f"value of {self.name} in {owner}", text, list(self.words))
        return text

    def write(self, value: Any) -> str:
        """See :class:`Parameter`."""
        return str(value)
