"""Cells and rows of the tables that a reader is shown."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from ..result_page import TextTable, percent
from .figures import ALL, GROUPS, Line
from .tables import Table
from .workloads import Workload

#: Figures by task, method and metric.
By = Mapping[tuple[str, str, str], Line]
NOTHING = "-"
_OUT_OF_MEMORY = "OOM"
_SHORT = {"human-expert": "human", "metis": "METIS", "m-topo": "m-TOPO", "m-etf": "m-ETF", "m-sct": "m-SCT",
          "heft": "HEFT", "annealing as many": "as many"}  # fmt: skip


def figures_by(table: Table) -> By:
    """Figures of a table by what they are of."""
    return {(one["task"], one["method"], one["metric"]): one for one in table.lines}


def heading(column: str) -> str:
    """A column's name where there is little room."""
    short = _SHORT.get(column, column).removeprefix("gdp-unseen-")
    return short.replace("annealing-metis", "ann.-METIS").replace("annealing", "ann.")


def times(one: Line | None) -> str:
    """A factor with its interval, if it has one."""
    if one is None:
        return NOTHING
    interval = "" if one["low"] is None else f" [{one['low']:.2f}, {one['high']:.2f}]"
    return f"{one['value']:.3f}{interval}"


def reached(one: Line | None) -> str:
    """How many runs arrive, of a count of those that do not."""
    return NOTHING if one is None else f"{one['n'] - one['value']} of {one['n']}"


def told(rows: Sequence[Sequence[str]]) -> list[Sequence[str]]:
    """Rows with something beside their name."""
    return [row for row in rows if any(cell != NOTHING for cell in row[1:])]


def means(
    table: Table, by: By, metric: str, what: str, groups: Sequence[str] = tuple(GROUPS)
) -> list[TextTable]:
    """Means of columns over groups of rows; then what fits, mean evaluations and seconds, and the most memory.

    Args:
        table: The table.
        by: Its figures.
        metric: What means are of.
        what: The same in words.
        groups: Of rows.
    """
    names = [name for name in table.columns if "-seed" not in name]
    rows = [
        [name, *(times(by.get((f"{table.name}/{group}", name, metric))) for group in groups)]
        for name in names
    ]
    return [
        TextTable(f"{table.name}: {what}", ("column", *groups), told(rows)),
        TextTable(f"{table.name}: what a run spent", ("column", "fits", "evaluations", "s", "MB"),
                  told([[name, *_spent(table, name, by)] for name in names])),
    ]  # fmt: skip


def _spent(table: Table, name: str, by: By) -> list[str]:
    task = f"{table.name}/{ALL}"
    if (fits := by.get((task, name, "feasible"))) is None:
        return [NOTHING] * 4
    evaluations, seconds = (by[task, name, metric]["value"] for metric in ("evaluations", "seconds"))
    peak = by.get((task, name, "peak_memory_bytes"))
    return [
        f"{round(fits['value'] * fits['n'])} of {fits['n']}", f"{evaluations:,.0f}", f"{seconds:.1f}",
        NOTHING if peak is None else f"{peak['value'] / 1e6:,.0f}",
    ]  # fmt: skip


def better(task: str, by: By, names: Sequence[str], bases: Sequence[str]) -> list[Sequence[str]]:
    """Improvements of columns over others, in per cent."""
    rows = [
        [name, *(percent(by.get((task, name, f"improvement_over:{base}"))) for base in bases)]
        for name in names
    ]
    return told(rows)


def by_row(table: Table, by: By, *groups: Sequence[str]) -> list[TextTable]:
    """Step times of groups of columns on every row, and the same as multiples of the best known; * marks controls."""
    step_times: list[TextTable] = []
    ratios: list[TextTable] = []
    for names in filter(None, groups):
        rows = [row for row in table.workloads if any(table.columns[name].of(row) for name in names)]
        head = [heading(name) for name in names]
        best = [] if step_times else ["best known"]  # once is enough
        cells = [
            [row.brief, *(f"{(row.case.best_known or math.nan) / 1e6:.1f}" for _ in best),
             *(_cell(table, by, row, name, "step_time_ms", 1) for name in names)]
            for row in rows
        ]  # fmt: skip
        multiples = [
            [row.brief, *(_cell(table, by, row, name, "ratio_to_best_known", 3) for name in names)]
            for row in rows
        ]
        title = f"{table.name}: simulated step time, ms (* control)"
        step_times.append(TextTable(title, ["row", *best, *head], cells))
        title = f"{table.name}: multiples of the best known (* control)"
        ratios.append(TextTable(title, ["row", *head], multiples))
    return [*step_times, *ratios]


def _cell(table: Table, by: By, row: Workload, name: str, metric: str, digits: int) -> str:
    """A value, with how many seeds ran out of memory."""
    task = f"{table.name}/{row.label}"
    out = by.get((task, name, "out_of_memory"))
    if out is None:
        return NOTHING
    if (one := by.get((task, name, metric))) is None:
        return _OUT_OF_MEMORY
    some = f" ({out['value']} {_OUT_OF_MEMORY})" if out["value"] else ""
    return f"{one['value']:.{digits}f}{some}"
