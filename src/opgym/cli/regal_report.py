"""How much search leaves on the suites in the manner of REGAL: the tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .console import new_table, note, show


def show_regal(documents: Sequence[dict[str, Any]]) -> None:
    """Prints a table for each suite.

    Args:
        documents: What ``runs.regal_lines.report`` returns of each.
    """
    from ..statistics import LEAST_CLUSTERS

    for document in documents:
        columns = list(document["tables"][0]["columns"])
        headings = {"graphs": "left", "rows": "left", "n": "right", "samples": "right", "proven": "right"}
        grid = new_table(
            headings | dict.fromkeys(columns, "wrap"),
            f"{document['suite']}, version {document['suite_version']}; lines of version "
            f"{document['reference_version']}: left to the best known, %",
        )
        for table in document["tables"]:
            counts = [str(table[key]) for key in ("rows", "clusters", "proven")]
            cells = [_left(table["columns"][column], table["rows"]) for column in columns]
            rows = "all" if table["role"] == "all" else "tasks"
            grid.add_row(table["population"], rows, *counts, *cells)
        show(grid)
    note(
        "95 % intervals over graphs, or over families of real ones (twins as one), where there are "
        f"{LEAST_CLUSTERS}; in brackets: rows with something feasible"
    )


def show_cap(lines: Sequence[dict[str, Any]]) -> None:
    """Prints what more or less memory leaves.

    Args:
        lines: What ``runs.reproduce.regal.cap.run`` returns.
    """
    grid = new_table(
        {
            "memory x peak": "right",
            "brkga left, %": "right",
            "runs that fit": "right",
            "heuristics fit": "right",
        }
    )
    for line in lines:
        left = _left(line, line["feasible"])
        heuristics = f"{line['heuristic_feasible']} of {line['graphs']}"
        grid.add_row(f"{line['factor']:.2f}", left, f"{line['feasible']} of {line['runs']}", heuristics)
    show(grid)


def _left(column: dict[str, Any], rows: int) -> str:
    some = "" if column["feasible"] == rows else f" ({column['feasible']})"
    if column["left"] is None:
        return f"-{some}"
    left = column["left"]
    interval = "" if left["low"] is None else f" [{100 * left['low']:.1f}, {100 * left['high']:.1f}]"
    return f"{100 * left['estimate']:.1f}{interval}{some}"
