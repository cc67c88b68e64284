"""The page of GDP's results, made of rows, and the tables on it."""

import json
import re
from pathlib import Path

import pytest

from opgym.runs.reproduce.gdp import methods
from opgym.runs.reproduce.gdp.claims import CLAIMS, DEVIATIONS
from opgym.runs.reproduce.gdp.page import with_gdp_results
from opgym.runs.reproduce.gdp.tables import tables
from opgym.runs.reproduce.gdp.texts import texts
from opgym.runs.reproduce.result_page import TextTable

from .made import measured, row, rules
from .test_tables import CONTROL, CORE, HELD, ONE, TRAINED

PAGE = "before\n<!-- results: {} -->\nstale\n<!-- end of results -->\nafter\n"


@pytest.fixture(autouse=True)
def empty_shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(methods.SHELF, "folder", tmp_path / "no weights")


def _page(name: str, folder: Path) -> list[str]:
    page = with_gdp_results(PAGE.format(name), folder, partly=True)
    assert page.startswith(f"before\n<!-- results: {name} -->\n")
    assert page.endswith("<!-- end of results -->\nafter\n")
    assert "stale" not in page
    assert with_gdp_results(page, folder, partly=True) == page
    return page.splitlines()


def test_the_page_is_made_anew_from_rows(tmp_path: Path) -> None:
    assert "Not measured yet." in _page("one", tmp_path)
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(each) + "\n" for each in ONE[:10]))
    (tmp_path / "b.jsonl").write_text("".join(json.dumps(each) + "\n" for each in ONE[10:]))
    lines = _page("one", tmp_path)
    assert "**one: multiples of the best known step time**" in lines
    [over] = [line for line in lines if line.startswith("| gdp@5000 | 12.5 |")]
    assert over == "| gdp@5000 | 12.5 | 23.8 | 6.4 | 6.4 |"
    assert any(line.startswith("| gdp@5000 | 0.894 | 2 of 4 |") for line in lines)
    assert "Not measured yet." in _page("batch", tmp_path)


def test_a_table_without_all_of_its_runs_is_not_on_the_page(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(each) + "\n" for each in ONE))
    page = with_gdp_results(PAGE.format("one"), tmp_path)
    assert re.search(r"\nNot measured yet: [1-9][0-9]* of [1-9][0-9]+ runs are\.\n", page)
    assert "**one" not in page
    claims = with_gdp_results(PAGE.format("claims"), tmp_path)
    assert claims.count("| not measured yet |") == len(CLAIMS)


def test_the_page_lists_claims_and_deviations(tmp_path: Path) -> None:
    assert sum("| not measured yet |" in line for line in _page("claims", tmp_path)) == len(CLAIMS)
    assert sum(line.startswith("- ") for line in _page("deviations", tmp_path)) == len(DEVIATIONS)


def test_cells_say_what_does_not_fit_and_what_does_not_apply() -> None:
    extra = [
        *(each for each in ONE if each["method"] != "m-sct" or "nvlink" in each["row"]),
        *(
            row(label, "m-sct", None, verdict="not_applicable", evaluations=0, curve=[])
            for label in (CORE, CONTROL)
        ),
    ]
    shown = texts(tables(measured(extra, tables=("one",))))
    [ratios, spent, *_] = shown["one"]
    assert _cells(ratios, "m-sct")["pcie"] == "-"
    assert ["m-sct", "1 of 1", "2", "0.2", "-"] in spent.rows  # on the one row where it applies
    [heuristics, searches, few, *_] = shown["one-rows"]
    cells = _cells(heuristics, "gnmt-2l, 2 PCIe")
    assert (cells["human"], cells["m-SCT"], cells["best known"]) == ("0.0", "-", "138.9")
    assert _cells(few, "gnmt-2l, 2 PCIe")["gdp@1"] == "0.0 (2 OOM)"
    assert _cells(few, "wavenet-4x36, 4 PCIe *")["hdp@100"] == "-"
    assert searches.rows == [["gnmt-2l, 2 PCIe", "0.0"]]  # rows without a run are left out
    [nothing, *_] = texts(tables(measured([row(HELD, "gdp", None)], tables=("one",))))["one-rows"]
    assert nothing.rows == [["wavenet-2x18, 2 NVLink *", "139.6", "OOM", "OOM"]]


def _cells(table: TextTable, first: str) -> dict[str, str]:
    [cells] = [cells for cells in table.rows if cells[0] == first]
    return dict(zip(table.headings, cells, strict=True))


def test_tables_of_trained_weights() -> None:
    found = texts(tables(measured(TRAINED, tables=("generalization",))), whole=False)
    [_, _, better, tuning] = found["generalization"]
    assert better.headings == ("than", "size zero-shot", "size fine-tuned")
    rows = {cells[0]: cells[1:] for cells in better.rows}
    assert rows["human-expert"] == ["-7.5", "15.0"]
    assert tuning.rows == [["gdp-unseen-size", "-27.9", "75.0", "1 of 2", "47.5"]]
    [claims] = found["claims"]
    assert [cells[2:4] for cells in claims.rows][-1] == ["1 of 2 rows", "not confirmed"]
    assert len(claims.rows) == 4
    assert "unscreened" not in found


def test_ablations_are_shown_row_by_row() -> None:
    label = "rnnlm-4l on 4xP100"
    rows = [row(label, "gdp", 100.0), row(label, "gdp-no-attention", 118.0), *rules(label, 120.0)]
    [loss, *_] = texts(tables(measured(rows, tables=("ablation",))))["ablation"]
    assert loss.headings == ("row", "gdp-no-attention")
    assert loss.rows == [[label, "18.0"], ["all", "18.0"]]
