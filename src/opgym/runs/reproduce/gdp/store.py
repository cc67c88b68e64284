"""Rows of ``opgym reproduce gdp``: those that come with the package and those of earlier runs, found by their key."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from ....outcome import Verdict
from ...evaluate.result_tables import FAILED, NOT_APPLICABLE, VERDICTS
from ...row_file import is_number, is_whole
from .methods import Method
from .workloads import Workload

#: Raised when what a row holds changes its meaning: rows of other versions are measured anew.
ROW_VERSION = 1
#: Rows that come with the package.
PACKAGED = Path(__file__).with_name("stored")
ROWS = "rows.jsonl"


def identity(workload: Workload, method: Method, seed: int) -> str:
    """What stored rows are found by."""
    row = workload.row
    return json.dumps(
        {
            "version": ROW_VERSION, "row": row.name, "fingerprint": row.fingerprint, "method": method.key,
            "seed": seed,
        },
        sort_keys=True,
    )  # fmt: skip


def packaged(folder: Path | None = None) -> list[dict[str, Any]]:
    """Rows that come with the package.

    Args:
        folder: Where else they are.
    """
    files = sorted((PACKAGED if folder is None else folder).glob("*.jsonl"))
    return [row for file in files for row in read(file)]


def read(path: Path) -> list[dict[str, Any]]:
    """Rows of a file, which is left as it is: what is damaged is passed over; none if there is no file."""
    rows = []
    for line in path.read_bytes().splitlines() if path.is_file() else ():
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(row, dict):
            rows.append(row)
    return rows


class Store:
    """Rows by what was measured.

    Args:
        rows: As they lie in files; those of other versions, and damaged ones, are passed over.
    """

    def __init__(self, rows: Iterable[Mapping[str, Any]] = ()) -> None:
        self._by_key: dict[str, Mapping[str, Any]] = {}
        self._by_name: dict[tuple[str, str, int], list[Mapping[str, Any]]] = {}
        self._weights: dict[str, str] = {}
        for row in rows:
            self.take(row)

    def take(self, row: Mapping[str, Any]) -> None:
        """Takes up one more row; what is there stays."""
        if not is_row(row) or row["key"] in self._by_key:
            return
        self._by_key[row["key"]] = row
        self._by_name.setdefault((row["row"], row["method"], row["seed"]), []).append(row)
        self._weights[row["method"]] = row["weights"]

    @property
    def methods(self) -> list[str]:
        """Names of all methods of which there is a row."""
        return list(dict.fromkeys(method for _, method, _ in self._by_name))

    def find(self, workload: Workload, method: Method, seed: int) -> Mapping[str, Any] | None:
        """The row of a run; ``None``: it was not measured.

        Of what cannot be run here, such as weights that are not there, the last that was measured under its name.
        """
        if method.contestant is not None:
            return self._by_key.get(identity(workload, method, seed))
        rows = [
            row
            for row in self._by_name.get((workload.name, method.name, seed), ())
            if row["weights"] == self._weights[method.name]
        ]
        return rows[-1] if rows else None


def is_row(row: Mapping[str, Any]) -> bool:
    """Whether a row holds all that tables are made of."""
    texts = all(isinstance(row.get(key), str) for key in ("key", "row", "method", "note", "weights"))
    counts = all(is_whole(row.get(key)) for key in ("seed", "ops", "evaluations"))
    peak = row.get("peak_bytes", "")
    if not (texts and counts and is_number(row.get("seconds")) and isinstance(row.get("seen"), bool)):
        return False
    if not (peak is None or is_whole(peak)) or row.get("verdict") not in VERDICTS or not _is_curve(row):
        return False
    has_value = any(point[2] is not None for point in row["curve"])
    if row["verdict"] == Verdict.OK.value:
        return has_value
    return not has_value and row["verdict"] != FAILED


def applies(row: Mapping[str, Any]) -> bool:
    """Whether the method applies to the problem."""
    return bool(row["verdict"] != NOT_APPLICABLE)


def _is_curve(row: Mapping[str, Any]) -> bool:
    """Whether it descends from what does not fit to the best value, within what was spent."""
    curve = row.get("curve")
    if not isinstance(curve, list) or not all(map(_is_point, curve)):
        return False
    spent = [point[0] for point in curve]
    values = [point[2] for point in curve if point[2] is not None]
    descends = all(later < earlier for earlier, later in pairwise(values))
    empty = [point[2] is None for point in curve]
    in_order = spent == sorted(spent) and empty == sorted(empty, reverse=True)
    return descends and in_order and (not spent or (spent[0] >= 1 and spent[-1] <= row["evaluations"]))


def _is_point(point: Any) -> bool:
    if not (isinstance(point, list) and len(point) == 3):
        return False
    value: Any = point[2]
    fits = value is None or (is_number(value) and bool(value > 0))
    return fits and is_whole(point[0]) and is_number(point[1])
