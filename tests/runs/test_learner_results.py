"""Tables of stored evaluations: means over seeds, in the order of what was found."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opgym.errors import InvalidDatasetError
from opgym.runs.reproduce.learner_results import COLUMNS, store, stored, table, with_tables


def _row(agent: str, row: str, seed: int, ratio: float | None, **other: Any) -> dict[str, Any]:
    known = {"agent": agent, "row": row, "seed": seed, "ratio_to_best_known": ratio}
    verdict = "out_of_memory" if ratio is None else "ok"
    return dict.fromkeys(COLUMNS, "") | {"verdict": verdict} | known | other


_ONE, _TWO = "zoo/a-train on 2xP100: step_time", "zoo/b-infer on one device: peak_memory"
ROWS = [
    *(_row("ppo", _ONE, seed, ratio) for seed, ratio in enumerate((1.2, 1.3, 1.7))),
    *(_row("ppo", _TWO, seed, ratio) for seed, ratio in enumerate((1.1, 1.1, 1.1))),
    _row("m-etf", _ONE, 0, 1.25),
    _row("m-etf", _TWO, 0, 1.0),
    _row("single", _ONE, 0, 1.0),
    _row("single", _TWO, 0, None),
]


def test_the_table_holds_means_between_lowest_and_highest_best_first() -> None:
    assert table(ROWS).splitlines() == [
        "| agent | `a-train on 2xP100` | `b-infer` | geometric mean |",
        "|---|--:|--:|--:|",
        f"| `m-etf` | 1.250 | 1.000 | {np.sqrt(1.25):.3f} |",
        f"| `ppo` | 1.400 (1.200 to 1.700) | 1.100 (1.100 to 1.100) | {np.sqrt(1.4 * 1.1):.3f} |",
        "| `single` | 1.000 | - | - |",
    ]


def test_of_one_problem_there_is_no_mean() -> None:
    lines = table([row for row in ROWS if row["row"] == _TWO]).splitlines()
    assert lines[:3] == ["| agent | `b-infer` |", "|---|--:|", "| `m-etf` | 1.000 |"]
    assert lines[-1] == "| `single` | - |"


def test_one_seed_without_a_value_leaves_no_mean() -> None:
    rows = [*ROWS, _row("ppo", _TWO, 3, None)]
    (line,) = [line for line in table(rows).splitlines() if line.startswith("| `ppo` | 1.400 ")]
    assert line.endswith(" | - | - |")


def test_rows_come_back_and_pages_are_made_anew(tmp_path: Path) -> None:
    extra = [{**row, "seconds": 1.5} for row in ROWS]
    store(extra, tmp_path / "first.jsonl")
    assert stored(tmp_path / "first.jsonl") == ROWS
    page = "Before\n<!-- table: first -->\nstale\n<!-- end of table -->\nafter <!-- table: x -->\n"
    fresh = f"Before\n<!-- table: first -->\n{table(ROWS)}<!-- end of table -->\nafter <!-- table: x -->\n"
    assert with_tables(page, tmp_path) == fresh
    assert with_tables(fresh, tmp_path) == fresh


def test_other_rows_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(ROWS[0]) + "\n" + json.dumps({"agent": "ppo"}) + "\n")
    with pytest.raises(InvalidDatasetError, match=r"rows\.jsonl:2"):
        stored(path)
