"""Tables of results as text, and pages of ``docs/`` whose tables are made anew from stored values."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

#: A block of a page that is made anew.
BLOCK = re.compile(r"(<!-- results: (?P<name>[\w-]+) -->\n).*?(<!-- end of results -->)", re.DOTALL)


class TextTable(NamedTuple):
    """A table as text.

    Attributes:
        title: What it is about.
        headings: Of its columns.
        rows: Its cells.
    """

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]


def markdown(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table as Markdown."""
    rule = "|---|" + "--:|" * (len(headings) - 1)
    return "".join(f"{line}\n" for line in (_line(headings), rule, *map(_line, rows)))


def percent(line: Mapping[str, Any] | None, digits: int = 1) -> str:
    """A share in per cent, with its interval if it has one; ``-`` without a figure."""
    if line is None:
        return "-"
    mean = f"{100 * line['value']:.{digits}f}"
    if line["low"] is None:
        return mean
    return f"{mean} [{100 * line['low']:.{digits}f}, {100 * line['high']:.{digits}f}]"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
