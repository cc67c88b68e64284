"""Lists of names as columns: ``layer_12/mm_3`` is a template, ``layer_#/mm_#``, and the numbers 12 and 3.

Generated names differ in their numbers alone. Each number is told by its difference to the one at the same place of
the same template before, which is mostly 0 or 1.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidGraphError

#: A number that can be written back: no leading zero, and small. Others stay in the template.
_NUMBER = re.compile(r"(?<![0-9])(0|[1-9][0-9]{0,8})(?![0-9])")

#: Few bytes can stand for long names: more characters in all are refused.
MAX_NAME_CHARACTERS = 2**28


def pack_names(key: str, names: Iterable[str]) -> dict[str, NDArray[Any]]:
    """Three columns: the template of each name, the numbers, and the templates as JSON text."""
    known: dict[tuple[str, ...], int] = {}
    before: list[list[int]] = []
    template: list[int] = []
    number: list[int] = []
    for name in names:
        parts = _NUMBER.split(name)
        index = known.setdefault(tuple(parts[::2]), len(known))
        values = [int(text) for text in parts[1::2]]
        if index == len(before):
            before.append([0] * len(values))
        for value, last in zip(values, before[index], strict=True):
            step = value - last
            number.append(2 * step if step >= 0 else -2 * step - 1)
        before[index] = values
        template.append(index)
    text = json.dumps([list(parts) for parts in known], separators=(",", ":")).encode()
    return {
        f"{key}_template": np.array(template, np.int64),
        f"{key}_number": np.array(number, np.int64),
        f"{key}_text": np.frombuffer(text, np.uint8),
    }


def unpack_names(key: str, columns: Mapping[str, NDArray[Any]], count: int | None) -> tuple[str, ...]:
    """The names that :func:`pack_names` was given.

    Raises:
        InvalidGraphError: The columns do not fit together, or there are not ``count`` names.
    """
    template: list[int] = columns[f"{key}_template"].tolist()
    templates = json.loads(columns[f"{key}_text"].tobytes())
    if not isinstance(templates, list) or not all(
        isinstance(parts, list) and parts and all(isinstance(part, str) for part in parts)
        for parts in templates
    ):
        raise InvalidGraphError(f"{key}_text is no list of templates")
    if count is not None and len(template) != count:
        raise InvalidGraphError(f"there are {len(template)} {key}; expected {count}")
    if template and not 0 <= min(template) <= max(template) < len(templates):
        raise InvalidGraphError(f"{key}_template leaves the {len(templates)} templates")
    if _length(templates, columns[f"{key}_template"]) > MAX_NAME_CHARACTERS:
        raise InvalidGraphError(f"{key} are longer in all than is read")
    # Literals and "%d"s: written by one formatting call per name.
    formats = ["%d".join(part.replace("%", "%%") for part in parts) for parts in templates]
    places = [len(parts) - 1 for parts in templates]
    before: list[tuple[int, ...]] = [(0,) * count for count in places]
    code: list[int] = columns[f"{key}_number"].tolist()
    if sum(places[index] for index in template) != len(code):
        raise InvalidGraphError(f"{key}_number does not fit {key}_template")
    names: list[str] = []
    at = 0
    for index in template:
        width = places[index]
        if width == 0:
            names.append(formats[index] % ())
            continue
        if width == 1:  # by far the most frequent
            c = code[at]
            values: tuple[int, ...] = (before[index][0] + (-(c + 1 >> 1) if c & 1 else c >> 1),)
        else:
            values = tuple(
                last + (-(c + 1 >> 1) if c & 1 else c >> 1)
                for last, c in zip(before[index], code[at : at + width], strict=True)
            )
        before[index] = values
        at += width
        names.append(formats[index] % values)
    return tuple(names)


def _length(templates: list[list[str]], template: NDArray[Any]) -> float:
    """Characters of all names, numbers not counted."""
    lengths = np.array([sum(map(len, parts)) + len(parts) for parts in templates], np.float64)
    return float(lengths[template.astype(np.int64)].sum()) if len(template) else 0.0
