"""Results of REGAL in files and on the page."""

import json
from pathlib import Path

import pytest

from opgym.errors import InvalidDatasetError
from opgym.runs.reproduce.regal import Settings
from opgym.runs.reproduce.regal_results import file_name, sample_name, store, stored, tables, with_results
from opgym.runs.reproduce.regal_table import DEVIATIONS

from .test_regal_table import ROWS, _document

PAGE = "before\n<!-- results: memory-1 -->\nstale\n<!-- end of results -->\nafter\n"


def test_results_come_back(tmp_path: Path) -> None:
    document, path = _document(*ROWS), tmp_path / "r.jsonl"
    store(document, path)
    assert stored(path) == document
    assert len(path.read_text().splitlines()) == 1 + len(ROWS)
    values = json.loads(path.read_text().splitlines()[1])["columns"]["tuned"]
    assert json.dumps(values["values"]) == "[90, 100]"


@pytest.mark.parametrize("text", ["", "{", "[]\n", '{"format": "x"}\n'])
def test_other_files_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text(text)
    with pytest.raises(InvalidDatasetError, match=r"r\.jsonl: no results"):
        stored(path)


def test_a_damaged_line_is_named(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    store(_document(*ROWS), path)
    path.write_text(path.read_text() + '{"graph": "x"}\n')
    with pytest.raises(InvalidDatasetError, match=r"r\.jsonl:4: expected graph"):
        stored(path)


def test_the_page_is_made_anew_from_the_files(tmp_path: Path) -> None:
    assert "Not measured yet: `opgym reproduce regal --task memory-1`." in with_results(PAGE, tmp_path)
    store(_document(*ROWS), tmp_path / "regal-memory-1.jsonl")
    page = with_results(PAGE, tmp_path)
    assert page.startswith(
        "before\n<!-- results: memory-1 -->\n\n**memory-1, synthetic graphs of the test part; brkga-5k"
    )
    assert page.endswith("<!-- end of results -->\nafter\n")
    assert "stale" not in page
    assert with_results(page, tmp_path) == page
    lines = page.splitlines()
    assert "| column | better, % | headroom, % | won / tied / lost | fits | s | evaluations |" in lines
    assert "| tuned | 1.5 | 6 | 1 / 2 / 1 | 4 of 4 | 1.00 | 20 |" in lines
    assert "| regal | improvement" not in page
    assert "| regal | better, % | 18.75 | 3.56 |" in lines
    assert "| regal | of headroom, % | 71.43 | 54 |" in lines


def test_a_file_of_its_own_name_has_a_place_of_its_own(tmp_path: Path) -> None:
    store(_document(*ROWS), tmp_path / file_name("memory-1", "ablations"))
    page = PAGE.replace("memory-1", "memory-1-ablations")
    assert "| tuned | 1.5 |" in with_results(page, tmp_path)
    assert "Not measured yet" in with_results(PAGE, tmp_path)
    store(_document(*ROWS) | {"task": "memory-2"}, tmp_path / file_name("memory-1", "ablations"))
    with pytest.raises(InvalidDatasetError, match="holds memory-2, test; expected memory-1-ablations"):
        with_results(page, tmp_path)


def test_the_page_lists_deviations(tmp_path: Path) -> None:
    page = with_results(PAGE.replace("memory-1", "deviations"), tmp_path)
    assert page.count("\n- ") == len(DEVIATIONS)
    assert with_results(page, tmp_path) == page


def test_a_page_takes_nothing_but_the_test_of_its_task(tmp_path: Path) -> None:
    store(_document(*ROWS) | {"part": "validation"}, tmp_path / "regal-memory-1.jsonl")
    with pytest.raises(InvalidDatasetError, match="holds memory-1, validation; expected memory-1, test"):
        with_results(PAGE, tmp_path)


def test_tables_have_as_many_cells_as_headings() -> None:
    found = tables(_document(*ROWS))
    assert [table.headings[0] for table in found] == ["column", "agent", "agent"]
    assert found[1].headings == ("agent", "tuned", "rule", "dear")  # whatever has the budget of the base
    for _, headings, rows in found:
        assert rows
        assert all(len(row) == len(headings) for row in rows)


def test_what_is_less_than_the_whole_test_has_another_name() -> None:
    assert sample_name(Settings()) == ""
    assert sample_name(Settings(agents=("regal",))) == ""
    assert sample_name(Settings(quick=True)) == "quick"
    assert sample_name(Settings(part="validation", quick=True)) == "validation"
    for less in (Settings(graphs=3), Settings(seeds=2), Settings(columns=("idrs-5k",))):
        assert sample_name(less) == "sample"
    assert sample_name(Settings(evaluations=1_000)) == "sample"
    assert sample_name(Settings(evaluations=1_000), "1k") == "1k"
    assert sample_name(Settings(part="validation"), "x") == "validation-x"
    assert sample_name(Settings(quick=True), "x") == "quick-x"
    assert file_name("time") == "regal-time.jsonl"
    assert file_name("time", "quick") == "regal-time-quick.jsonl"
