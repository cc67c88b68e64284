"""A tolerant parser of protobuf's text format for the messages of a CostGraphDef.

It knows which fields hold messages and steps over the others it does not know. One regular expression takes
an entry at a time, nothing recurses, and every part of the text is looked at once.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from ...errors import ImportFailedError

#: Fields of each message; those with a name hold messages of that name.
_FIELDS: dict[str, dict[str, str]] = {
    "graph": {"node": "node", "cost": "cost"},
    "node": dict.fromkeys(
        ("name", "device", "id", "temporary_memory_size", "persistent_memory_size", "host_temp_memory_size",
         "device_temp_memory_size", "host_persistent_memory_size", "device_persistent_memory_size",
         "compute_cost", "compute_time", "memory_time", "is_final", "control_input", "inaccurate"), ""
    ) | {"input_info": "input_info", "output_info": "output_info"},
    "input_info": {"preceding_node": "", "preceding_port": ""},
    "output_info": {"size": "", "alias_input_port": "", "shape": "shape", "dtype": ""},
    "shape": {"dim": "dim", "unknown_rank": ""},
    "dim": {"size": "", "name": ""},
    "cost": {"cost": "", "dimension": ""},
}  # fmt: skip
_REPEATED = frozenset(("control_input",))
_STRING = r'(?:"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"|\'[^\'\\\n]*+(?:\\.[^\'\\\n]*+)*+\')'
_ENTRY = re.compile(
    rf"(?:([A-Za-z_]\w*)\s*(?:(?::\s*)?([{{<])|:\s*({_STRING}(?:\s*{_STRING})*|\[[^\[\]{{}}]*\]|[-+\w.]+))"
    r"|([}>])|#[^\n]*)[\s,;]*+",
    re.DOTALL,
)
_ESCAPED = re.compile(r"\\(x[0-9a-fA-F]{1,2}|[0-7]{1,3}|.)", re.DOTALL)
_LETTERS = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_WHOLE = re.compile(r"[-+]?(?:\d{1,19}|0[xX][0-9a-fA-F]{1,16})")
_MAX_INT64 = 2**63 - 1
_SURELY_FITS = 19  # so many digits may be too many
_BETWEEN = " \t\r\n\f\v,;"
_FLAGS = {"true": True, "True": True, "t": True, "1": True, "false": False, "False": False, "f": False,
          "0": False}  # fmt: skip


class FieldError(ValueError):
    """A field has a value that it cannot have."""


@dataclass(slots=True)
class Message:
    """A message.

    Attributes:
        at: Position in the text.
        fields: Scalar fields as text.
        messages: Messages of each field, in order.
    """

    at: int
    fields: dict[str, list[str]] = field(default_factory=dict)
    messages: dict[str, list[Message]] = field(default_factory=dict)

    def has(self, key: str) -> bool:
        """Whether a scalar field is there."""
        return key in self.fields

    def parts(self, key: str) -> list[Message]:
        """The messages of a field."""
        return self.messages.get(key, [])

    def text(self, key: str) -> str:
        """A field as text, without quotes; empty where it is absent."""
        values = self.fields.get(key)
        return _unquoted(values[0]) if values else ""

    def number(self, key: str) -> int:
        """A whole number; 0 where it is absent.

        Raises:
            FieldError: It is none.
        """
        values = self.fields.get(key)
        return _whole(values[0], key) if values else 0

    def numbers(self, key: str) -> list[int]:
        """All numbers of a repeated field, one per entry or in a list."""
        found: list[int] = []
        for value in self.fields.get(key, ()):
            inner = value[1:-1].split(",") if value.startswith("[") else [value]
            found += [_whole(part.strip(), key) for part in inner if part.strip()]
        return found

    def flag(self, key: str) -> bool:
        """A truth value; false where it is absent.

        Raises:
            FieldError: It is none.
        """
        values = self.fields.get(key)
        if not values:
            return False
        if values[0] not in _FLAGS:
            raise FieldError(f"{key} is {values[0][:40]!r}; expected true or false")
        return _FLAGS[values[0]]


def parse_nodes(text: str, path: str, unread: Counter[str]) -> Iterator[Message]:
    """Parses a text, and gives the nodes of a CostGraphDef one by one.

    Args:
        text: The whole text.
        path: Names it in messages.
        unread: Counts the fields that are stepped over, as ``message.field``.

    Yields:
        The nodes in order; none is kept, so that a large file costs its nodes' memory once.

    Raises:
        ImportFailedError: The text is no text format, is cut off, or gives a field twice; the message names
            the line.
    """
    top = Message(0)
    stack: list[tuple[str, str, Message]] = []
    kind, fields, expected, message = "graph", _FIELDS["graph"], "", top
    at = len(text) - len(text.lstrip(_BETWEEN))

    def refuse(problem: str) -> ImportFailedError:
        shown = text[at : at + 40].split("\n")[0].strip()
        where = f"{path}: line {line_of(text, at)}"
        return ImportFailedError(f"{where}: {problem}" + (f" (at {shown!r})" if shown else ""))

    for match in _ENTRY.finditer(text, at):
        if match.start() != at:
            break
        key, opening, value, closing = match.groups()
        if value is not None:
            if fields.get(key) == "":
                values = message.fields.get(key)
                if values is None:
                    message.fields[key] = [value]
                elif key in _REPEATED:
                    values.append(value)
                else:
                    raise refuse(f"{key} is given twice in one {kind}")
            elif key in fields:
                raise refuse(f"{key} of a {kind} is a message, not a value")
            elif fields:
                unread[f"{kind}.{key}"] += 1
        elif opening is not None:
            inner = fields.get(key)
            if inner == "":
                raise refuse(f"{key} of a {kind} is a value, not a message")
            if key == "node" and stack and fields:
                raise refuse("a node begins within another; a '}' is missing")
            if inner is None and fields:
                unread[f"{kind}.{key}"] += 1
            stack.append((kind, expected, message))
            part = Message(at)
            if inner is not None and message is not top:
                message.messages.setdefault(key, []).append(part)
            kind, fields, expected = inner or "", _FIELDS.get(inner or "", {}), "}" if opening == "{" else ">"
            message = part
        elif closing is not None:
            if closing != expected:
                raise refuse(f"{closing!r} closes what is not open")
            if len(stack) == 1 and kind == "node":
                yield message
            kind, expected, message = stack.pop()
            fields = _FIELDS.get(kind, {})
        at = match.end()
    if at < len(text):
        raise refuse("expected 'field: value' or 'field { ... }'; this is no protobuf text or is damaged")
    if stack:
        raise refuse(
            f"the file ends within a {kind or 'message'} that began at line {line_of(text, message.at)}"
        )


def line_of(text: str, at: int) -> int:
    """Number of the line of a position, from 1."""
    return text.count("\n", 0, at) + 1


def _whole(text: str, key: str) -> int:
    if len(text) < _SURELY_FITS and text.isascii() and text.isdigit():
        return int(text)
    number = None
    if _WHOLE.fullmatch(text) is not None:
        number = int(text, 16 if "x" in text.lower() else 10)
    if number is None or abs(number) > _MAX_INT64:
        raise FieldError(f"{key} is {text[:40]!r}; expected a whole number of 64 bits")
    return number


def _unquoted(text: str) -> str:
    """What one or several strings say; other words as they are."""
    if text[:1] not in "\"'":
        return text
    pieces = re.findall(_STRING, text)
    return "".join(_ESCAPED.sub(_plain, piece[1:-1]) for piece in pieces)


def _plain(match: re.Match[str]) -> str:
    code = match[1]
    if code[0] == "x" and len(code) > 1:
        return chr(int(code[1:], 16))
    if code[0] in "01234567":
        return chr(int(code, 8))
    return _LETTERS.get(code, code)
