"""Rows of GDP's reproduction: found by their key, and passed over where they are damaged."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from opgym.runs.reproduce.gdp import methods
from opgym.runs.reproduce.gdp.store import Store, identity, is_row, packaged, read

from .made import method, row, workload

LABEL = "rnnlm-2l on 2xP100"


@pytest.fixture(autouse=True)
def empty_shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(methods.SHELF, "folder", tmp_path / "no weights")


def test_a_run_is_found_by_row_solver_budget_and_seed() -> None:
    known = row(LABEL, "annealing@100", 200.0)
    store = Store([known])
    few, many = method("annealing@100"), method("annealing@5000")
    assert store.find(workload(LABEL), few, 0) == known
    assert store.find(workload(LABEL), few, 1) is None
    assert store.find(workload(LABEL), many, 0) is None
    assert store.find(workload("rnnlm-2l on 2xP100@nvlink"), few, 0) is None
    assert store.methods == ["annealing@100"]


def test_other_options_are_another_run() -> None:
    keys = {
        identity(workload(LABEL), method(name).on(workload(LABEL)), 0) for name in ("gdp", *methods.ABLATIONS)
    }
    assert len(keys) == 3


def test_the_first_of_two_rows_of_one_run_counts() -> None:
    store = Store([row(LABEL, "metis", 200.0), row(LABEL, "metis", 100.0)])
    found = store.find(workload(LABEL), method("metis"), 0)
    assert found is not None
    assert found["curve"][-1][2] == 200.0


def test_of_weights_that_are_not_there_the_last_that_were_measured_count() -> None:
    name = "gdp-unseen-size zero-shot"
    other = "rnnlm-2l on 2xP100@nvlink"
    rows = [
        row(LABEL, name, 300.0, key="a", weights="old"),
        row(other, name, 310.0, key="b", weights="old"),
        row(LABEL, name, 200.0, key="c", weights="new"),
    ]
    store = Store(rows)
    assert method(name).contestant is None
    assert store.find(workload(LABEL), method(name), 0) == rows[2]
    assert (
        store.find(workload(other), method(name), 0) is None
    )  # of weights that nobody would show beside the new ones


def test_a_file_is_read_past_what_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    good = row(LABEL, "metis", 200.0)
    torn = json.dumps(good)[:40]
    path.write_text("\n".join(["[]", "{", json.dumps(good), "\x00", "[" * 100_000, torn]))
    before = path.read_bytes()
    assert read(path) == [good]
    assert path.read_bytes() == before
    assert read(tmp_path / "absent.jsonl") == []
    (tmp_path / "a.jsonl").write_text(json.dumps(good | {"seed": 7}) + "\n")
    assert [each["seed"] for each in packaged(tmp_path)] == [7, 0]


@pytest.mark.parametrize(
    "damage",
    [
        *({"key": value} for value in (3, None, ...)),
        *({"row": value} for value in (3, ...)),
        *({"method": value} for value in (3, ...)),
        *({"seed": value} for value in ("0", -1, True, 10**400, ...)),
        *({"evaluations": value} for value in (None, -1, 1.5, ...)),
        *({"seconds": value} for value in (None, "1", -1, math.nan, ...)),
        *({"peak_bytes": value} for value in ("1", -1, 1.5, ...)),
        *({"seen": value} for value in (None, 1, ...)),
        *({"verdict": value} for value in ("fine", "out_of_memory", "failed", None, ...)),
        {"curve": None},
        {"curve": []},
        {"curve": [[1, 0.1]]},
        {"curve": [[1, 0.1, "5"]]},
        {"curve": [[1, 0.1, 0]]},
        {"curve": [[1, 0.1, None]]},
        {"curve": [[0, 0.1, 200.0]]},
        {"curve": [[11, 0.1, 200.0]]},
        {"curve": [[1, 0.1, 200.0], [2, 0.1, 200.0]]},
        {"curve": [[3, 0.1, 200.0], [2, 0.1, 100.0]]},
        {"curve": [[1, 0.1, 200.0], [2, 0.1, None]]},
        {"curve": [[1, math.inf, 200.0]]},
    ],
)  # fmt: skip
def test_what_is_damaged_is_no_row(damage: dict[str, Any]) -> None:
    good = row(LABEL, "metis", 200.0)
    assert is_row(good)
    assert is_row(row(LABEL, "metis", [[1, None], [3, 200.0]]))
    assert is_row(row(LABEL, "metis", None))
    [(name, value)] = damage.items()
    bad = {**good, **damage}
    if value is ...:
        del bad[name]
    assert not is_row(bad)
    assert Store([bad]).methods == []
