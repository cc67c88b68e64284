"""Results of REGAL in files and as tables."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from opgym.errors import InvalidDatasetError
from opgym.runs.reproduce.regal.reproduction import Settings
from opgym.runs.reproduce.regal.results_file import store, stored
from opgym.runs.reproduce.regal.texts import file_name, sample_name, tables

from .test_table import METHODS, ROWS, _document


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


def _two_columns(head: dict[str, Any], graph: dict[str, Any]) -> None:
    head["methods"].append(head["methods"][0])


def _gone(key: str) -> Any:
    def damage(head: dict[str, Any], graph: dict[str, Any]) -> None:
        del graph["columns"]["tuned"][key]

    return damage


def _in_head(**changes: Any) -> Any:
    return lambda head, graph: head.update(changes)


def _in_method(**changes: Any) -> Any:
    return lambda head, graph: head["methods"][1].update(changes)


def _in_graph(**changes: Any) -> Any:
    return lambda head, graph: graph.update(changes)


def _in_column(**changes: Any) -> Any:
    return lambda head, graph: graph["columns"]["tuned"].update(changes)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (_in_head(task="memory-9"), r":1: task = 'memory-9'; expected one of memory-1"),
        (_in_head(task=["time"]), r":1: task = \['time'\]; expected one of"),
        (_in_head(part="train"), r":1: part = 'train'; expected one of test, validation"),
        (_in_head(suite_version=True), r":1: suite_version = True; expected a whole number"),
        (_in_head(reference_version="1"), r":1: reference_version = '1'; expected a whole number or null"),
        (_in_head(seeds=2), r":1: seeds = 2; expected a list of whole numbers"),
        (_in_head(seeds=[0, "2"]), r":1: seeds = .*; expected a list of whole numbers"),
        (_in_head(methods={}), r":1: methods = {}; expected a list of columns"),
        (_in_head(methods=["brkga-5k"]), r":1: methods = .*; expected a list of columns"),
        (_in_head(methods=[{"name": "brkga-5k"}]), r":1: methods\[0\]: expected name, solver"),
        (_in_method(kind="rule"), r":1: methods\[1\]: kind = 'rule'; expected the kind of a column"),
        (_in_method(evaluations=5e3), r":1: methods\[1\]: evaluations = 5000\.0; expected a whole number"),
        (_in_method(random="no"), r":1: methods\[1\]: random = 'no'; expected true or false"),
        (_two_columns, r":1: two columns are called 'brkga-5k'"),
        (_in_head(seeds=[0]), r":2: column 'brkga-5k' has 2 values; expected 1"),
        (_in_graph(graph=7), r":3: graph = 7; expected a text"),
        (_in_graph(graph="a"), r":3: 'a' is there twice"),
        (_in_graph(population="made"), r":3: population = 'made'; expected one of synthetic, real"),
        (_in_graph(twins=None), r":3: twins = None; expected a text"),
        (_in_graph(ops="60"), r":3: ops = '60'; expected a whole number"),
        (_in_graph(best_known=0), r":3: best_known = 0; expected a number above 0 or null"),
        (_in_graph(columns=[]), r":3: columns = \[\]; expected a column by its name"),
        (_in_graph(columns={"other": {}}), r":3: columns has 'other', which is not among the methods"),
        (_in_graph(columns={"tuned": [90]}), r":3: column 'tuned': expected values, evaluations, seconds"),
        (_gone("seconds"), r":3: column 'tuned': expected values, evaluations, seconds"),
        (_in_column(values=90), r":3: column 'tuned': values = 90; expected a list of numbers"),
        (_in_column(values=["90", "100"]), r":3: column 'tuned': values = .*; expected a list of numbers"),
        (_in_column(values=[math.nan, 90]), r":3: column 'tuned': values = .*; expected a list of numbers"),
        (_in_column(values=[-1, 90]), r":3: column 'tuned': values = .*; expected a list of numbers"),
        (_in_column(values=[]), r":3: column 'tuned': values = \[\]; expected a list of numbers"),
        (_in_column(values=[1, 2, 3]), r":3: column 'tuned' has 3 values; expected 2, one for each seed"),
        (_in_column(values=[1]), r":3: column 'tuned' has 1 values; expected 2, one for each seed"),
        (_in_column(evaluations=None), r":3: column 'tuned': evaluations = None; expected a number"),
        (_in_column(seconds=10**400), r":3: column 'tuned': seconds = 1000.*; expected a number"),
    ],
)
def test_what_no_table_can_be_made_of_is_named_with_its_line(
    tmp_path: Path, damage: Any, message: str
) -> None:
    path = tmp_path / "r.jsonl"
    store(_document(*ROWS), path)
    head, *graphs = map(json.loads, path.read_text().splitlines())
    damage(head, graphs[1])
    path.write_text("".join(json.dumps(row) + "\n" for row in (head, *graphs)))
    with pytest.raises(InvalidDatasetError, match=rf"r\.jsonl{message}"):
        stored(path)


@pytest.mark.parametrize("line", ["", "{", "[1]", "[" * 100_000])
def test_a_line_that_is_no_object_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "r.jsonl"
    store(_document(*ROWS), path)
    path.write_text(f"{path.read_text()}{line}\n")
    with pytest.raises(InvalidDatasetError, match=r"r\.jsonl:4: expected graph"):
        stored(path)


def test_a_column_that_is_dear_may_have_fewer_seeds_and_lack_on_some_graphs(tmp_path: Path) -> None:
    document, path = _document(*json.loads(json.dumps(ROWS))), tmp_path / "r.jsonl"
    del document["graphs"][1]["columns"]["dear"]
    document["graphs"][0]["columns"]["tuned"]["values"] = [None, 100]
    store(document, path)
    assert stored(path) == document


def test_tables_have_as_many_cells_as_headings() -> None:
    found = tables(_document(*ROWS))
    assert [table.headings[0] for table in found] == ["column", "agent", "agent"]
    assert found[1].headings == ("agent", "tuned", "rule", "dear")  # whatever has the budget of the base
    for _, headings, rows in found:
        assert rows
        assert all(len(row) == len(headings) for row in rows)


def test_agents_beside_each_other_alone_have_no_table_of_other_columns() -> None:
    alone = {name: ROWS[0]["columns"][name] for name in ("brkga-5k", "regal")}
    methods = [method for method in METHODS if method["name"] in alone]
    [table] = tables(_document({**ROWS[0], "columns": alone}, methods=methods))
    assert table.headings[0] == "column"
    assert [row[0] for row in table.rows] == ["brkga-5k", "regal"]


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
