"""The page of REGAL's results, made of stored values."""

from pathlib import Path

import pytest

from opgym.errors import InvalidDatasetError
from opgym.runs.reproduce.regal import bars
from opgym.runs.reproduce.regal.page import with_results
from opgym.runs.reproduce.regal.results_file import store
from opgym.runs.reproduce.regal.table import DEVIATIONS
from opgym.runs.reproduce.regal.texts import file_name

from .test_table import ROWS, _document

PAGE = "before\n<!-- results: memory-1 -->\nstale\n<!-- end of results -->\nafter\n"


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


def test_the_page_says_why_headroom_is_missing(tmp_path: Path) -> None:
    store(_document(*ROWS), tmp_path / "regal-memory-1.jsonl")
    assert "No headroom" not in with_results(PAGE, tmp_path)
    graphs = [graph | {"best_known": None} for graph in ROWS]
    store(
        _document(*graphs, task="time-links") | {"reference_version": None},
        tmp_path / "regal-time-links.jsonl",
    )
    page = with_results(PAGE.replace("memory-1", "time-links"), tmp_path)
    assert "\n\nNo headroom: best known values are stored for transfers that take no time only.\n" in page


def test_a_page_takes_nothing_but_the_test_of_its_task(tmp_path: Path) -> None:
    store(_document(*ROWS) | {"part": "validation"}, tmp_path / "regal-memory-1.jsonl")
    with pytest.raises(InvalidDatasetError, match="holds memory-1, validation; expected memory-1, test"):
        with_results(PAGE, tmp_path)


def line(metric: str, value: float, low: float | None, task: str = "memory-1") -> dict[str, object]:
    high = None if low is None else 2 * value - low
    return {
        "task": f"{task}/synthetic",
        "method": "regal-plus",
        "metric": metric,
        "value": value,
        "low": low,
        "high": high,
    }


def test_a_bar_is_held_by_the_whole_interval_or_where_it_is_an_aim_by_the_figure() -> None:
    rows = bars.rows(
        {
            "memory-1": [
                line("improvement", 0.061, 0.035),
                line("improvement_over:idrs-5k", 0.02, 0.001),
                line("improvement_over:key-search-5k", 0.02, None),
            ],
            "memory-2": [line("improvement", 0.0799, 0.07, "memory-2")],
        }
    )
    said = {text: (measured, held) for text, measured, held in rows}
    assert len(said) == len(bars.BARS)
    assert said["memory-1: better than `brkga-5k` by more than the paper's 3.56 %, clearly"] == (
        "6.1 [3.5, 8.7]",
        "no",
    )
    assert said["memory-1: by 6 % (aim)"][1] == "yes"
    assert said["memory-1: clearly better than `idrs-5k`"] == ("2.0 [0.1, 3.9]", "yes")
    assert said["memory-1: clearly better than `key-search-5k`"] == (
        "2.0",
        "no",
    )  # too few graphs to be clear
    assert said["memory-1: clearly better than `brkga-tuned-5k`"] == ("-", "not measured yet")
    assert said["memory-2: better than `brkga-5k` by 8 % (aim)"][1] == "no"


def test_the_page_has_a_row_for_each_bar(tmp_path: Path) -> None:
    store(_document(*ROWS), tmp_path / "regal-memory-1.jsonl")
    page = with_results(PAGE.replace("memory-1", "bars"), tmp_path)
    assert page.count("| not measured yet |") == len(bars.BARS)
    assert page.startswith("before\n<!-- results: bars -->\n| bar | measured, % | held |\n|---|--:|--:|\n")
