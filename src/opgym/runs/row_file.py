"""Rows of a long run in a file, one JSON object a line, so that an interrupted run goes on where it was."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import ImportFailedError
from ..graphs.atomic import naming

#: What no value, no count and no time of a run comes near.
_MOST = 2**63


class RowFile:
    """An append-only file of rows.

    A row is written with one call and then synchronised, so after a crash at most the last line is incomplete;
    it is cut off when the file is opened again. Without a path nothing is stored.

    Args:
        path: The file; made if absent.

    Raises:
        ImportFailedError: A line is no JSON object, and no beginning of one at the end.
        OSError: It cannot be read or written.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self.rows: list[dict[str, Any]] = []
        if path is None or not path.exists():
            return
        data = path.read_bytes()
        whole = data[: data.rfind(b"\n") + 1]
        torn = data[len(whole) :]
        if torn and not torn.startswith(b"{"):
            raise ImportFailedError(f"{path}: ends in no row of an earlier run; move the file away")
        for number, line in enumerate(whole.splitlines(), 1):
            try:
                row = json.loads(line)
            except (ValueError, RecursionError):
                row = None
            if not isinstance(row, dict):
                raise ImportFailedError(f"{path}:{number}: no row of an earlier run; move the file away")
            self.rows.append(row)
        if torn:
            with path.open("r+b") as file:
                file.truncate(len(whole))

    def append(self, row: Mapping[str, Any]) -> None:
        """Adds a row, also to :attr:`rows`.

        Raises:
            OSError: The disk is full, or the like; it names the file.
        """
        line = json.dumps(row, allow_nan=False) + "\n"
        self.rows.append(json.loads(line))
        if self._path is None:
            return
        with naming(self._path), self._path.open("ab") as file:
            file.write(line.encode())
            file.flush()
            os.fsync(file.fileno())


def is_number(value: Any) -> bool:
    """Whether it is a finite number, 0 or more."""
    known = isinstance(value, int | float) and not isinstance(value, bool)
    return known and 0 <= value < _MOST and math.isfinite(value)


def is_whole(value: Any) -> bool:
    """Whether it is a whole number, 0 or more."""
    return isinstance(value, int) and is_number(value)
