"""The page of ``opgym reproduce regal``, docs/regal_results.md, from stored values.

``python docs/generate.py`` makes its tables anew from docs/results/regal-TASK.jsonl, and a test holds them against
these files. ``opgym reproduce regal --out DIR`` leaves such files in DIR; copying them publishes them.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

from ....errors import InvalidDatasetError
from ..result_page import BLOCK, markdown
from . import bars
from .results_file import stored
from .table import DEVIATIONS, lines_of
from .tasks import TASKS
from .texts import file_name, tables, without_headroom

_BARS, _DEVIATIONS = "bars", "deviations"


def with_results(page: str, folder: Path) -> str:
    """A page with its results made anew.

    Args:
        page: Text with ``<!-- results: NAME -->`` and ``<!-- end of results -->`` around the tables of each file
            ``regal-NAME.jsonl``, a task and what it is called beside; for ``bars``, around what was asked for; for
            ``deviations``, around what is not as in the paper.
        folder: Where the files are.

    Raises:
        InvalidDatasetError: A file is damaged, or holds something else than the test of its task.
    """

    @cache
    def reported(name: str) -> tuple[dict[str, Any], list[dict[str, Any]]] | None:
        document = _measured(folder / file_name(name), name)
        return None if document is None else (document, lines_of(document))

    def made(match: re.Match[str]) -> str:
        name = match["name"]
        if name == _DEVIATIONS:
            text = "".join(f"- {deviation}\n" for deviation in DEVIATIONS)
        elif name == _BARS:
            known = {bar.task: reported(bar.task) for bar in bars.BARS}
            rows = bars.rows({task: found[1] for task, found in known.items() if found is not None})
            text = markdown(("bar", "measured, %", "held"), rows)
        else:
            found = reported(name)
            text = _not_measured(name) if found is None else _tables(*found)
        return match[1] + text + match[3]

    return BLOCK.sub(made, page)


def _measured(path: Path, name: str) -> dict[str, Any] | None:
    """What a file holds; ``None`` if there is none."""
    if not path.exists():
        return None
    document = stored(path)
    if not (f"{name}-".startswith(f"{document['task']}-") and document["part"] == "test"):
        raise InvalidDatasetError(
            f"{path}: holds {document['task']}, {document['part']}; expected {name}, test"
        )
    return document


def _not_measured(name: str) -> str:
    task = max((task for task in TASKS if f"{name}-".startswith(f"{task}-")), key=len, default=name)
    more = name.removeprefix(task).removeprefix("-")
    return f"Not measured yet: `opgym reproduce regal --task {task}{' --name ' * bool(more)}{more}`.\n"


def _tables(document: dict[str, Any], lines: list[dict[str, Any]]) -> str:
    """The tables of a task, each under its title."""
    text = [f"**{title}**\n\n{markdown(headings, rows)}" for title, headings, rows in tables(document, lines)]
    if (reason := without_headroom(document)) is not None:
        text.append(f"No headroom: {reason}.\n")
    return "\n" + "\n".join(text) + "\n"
