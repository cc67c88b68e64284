"""Rows of ``opgym reproduce regal`` that earlier runs have stored: what is damaged counts as not measured."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ...row_file import is_number, is_whole


def known_rows(rows: Iterable[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Rows by their key, those of different seeds of the same column on the same graph as one.

    Args:
        rows: As they lie in a file, which may hold rows of other versions, and damaged ones: both are passed over.
    """
    known: dict[str, dict[str, Any]] = {}
    for row in rows:
        if is_row(row):
            take(known, row)
    return known


def take(known: dict[str, dict[str, Any]], row: dict[str, Any]) -> None:
    """Takes up one more row."""
    before = known.setdefault(row["key"], row)
    if before is not row:
        before["runs"] |= row["runs"]


def is_row(row: Mapping[str, Any]) -> bool:
    """Whether a row holds all that tables are made of: runs, or why there are none."""
    runs, skipped = row.get("runs"), row.get("skipped", 0)
    if not isinstance(row.get("key"), str) or not is_whole(row.get("ops")) or not isinstance(runs, dict):
        return False
    if isinstance(skipped, str):
        return not runs
    return skipped is None and bool(runs) and all(map(_is_run, runs.values()))


def _is_run(run: Any) -> bool:
    if not isinstance(run, dict) or "value" not in run:
        return False
    fits = run["value"] is None or (is_number(run["value"]) and run["value"] > 0)
    return fits and is_whole(run.get("evaluations")) and is_number(run.get("seconds"))
