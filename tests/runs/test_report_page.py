"""The page of a report: bytes that do not change, names that stay names, tables that somebody made to do harm."""

from __future__ import annotations

import math
import re
import warnings
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from markdown_it import MarkdownIt

from opgym.errors import InvalidDatasetError
from opgym.runs.evaluate import result_tables
from opgym.runs.evaluate.result_tables import CURVE_COLUMNS, CURVES, RESULT_COLUMNS, RESULTS, read_table
from opgym.runs.report import report
from opgym.runs.report.figures import drawable
from opgym.runs.report.markdown import escaped
from opgym.runs.report.markdown import page as page_of
from opgym.runs.report.numbers import document
from opgym.runs.report.sections import read_sections
from opgym.statistics import bootstrap_interquartile_mean

from .made_tables import PICTURES, PROBLEMS, made, result, write

# --- The page -----------------------------------------------------------------------------------------------


def test_what_was_learned_before_is_outside_of_the_budget(tmp_path: Path) -> None:
    rows = [result(problem, "a", 100.0, trained_on="nothing") for problem in PROBLEMS[:3]]
    for name, trained_on in (("b", "other_graphs"), ("c", "unknown_graphs")):
        rows += [result(problem, name, 110.0, trained_on=trained_on) for problem in PROBLEMS[:3]]
    rows += [result(problem, "d", 90.0, trained_on="this_graph") for problem in PROBLEMS[:2]]
    rows.append(result("p2", "d", 90.0, trained_on="other_graphs"))
    [found] = read_sections([write(tmp_path / "made", rows)])
    numbers = document(found)
    assert {a["agent"]: (a["trained_before"], a["trained_on_these"]) for a in numbers["agents"]} == {
        "a": (False, 0), "b": (True, 0), "c": (True, None), "d": (True, 2),
    }  # fmt: skip
    text = page_of([numbers], [PICTURES], [])
    told = " ".join(text.split())
    assert "An agent marked † was trained before, and what its training took is in no budget" in told
    assert "d had learned from 2 of these graphs before." in text
    assert "It is not known which graphs c had learned from." in text
    assert "b had" not in text
    assert [line.split(" | ")[0] for line in text.splitlines() if line.endswith("| 10 | 0.5 |")] == [
        "| d †", "| a", "| b †", "| c †",
    ]  # fmt: skip


def test_equal_tables_give_equal_bytes(tmp_path: Path) -> None:
    rows = [row | {"step_time_ns": int(row["value"] or 0), "peak_bytes": 2**30} for row in made()]
    points = [(row, [(1, 0.1, 200.0), (5, 0.3, row["value"])]) for row in rows if row["verdict"] == "ok"]
    folder = write(tmp_path / "made", rows, points)
    files: list[dict[str, bytes]] = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        names = report([folder], tmp_path / name)["files"]
        files.append({file: (tmp_path / name / file).read_bytes() for file in names})
    assert files[0] == files[1]
    assert list(files[0]) == ["report.md", "means-1.svg", "profile-1.svg", "anytime-1.svg", "memory-1-1.svg"]
    for data in list(files[0].values())[1:]:
        ET.fromstring(data)
        assert b"<dc:date>" not in data
    page = files[0]["report.md"].decode()
    assert "## made: peak\\_memory, real graphs, 10 evaluations" in page
    mean = bootstrap_interquartile_mean([[1.0, 1.1]] * 6, range(6))
    told = f"{mean.estimate:.3f} [{mean.low:.3f}, {mean.high:.3f}]"
    assert f"| a | 2 | {told} | 1.049 | 50% | 1 | 5 | 100% | 10 | 0.5 |" in page
    assert "| b \\* | 1 | 1.200 [1.200, 1.200] | 1.200 | 0% | 0 | 0 | 100% | 1 | 0.5 |" in page
    assert "c **failed** on 1 of them." in page
    assert "| p0 | 100 B | tie: a, c | 1.050 | 1.100 | 1.200 |" in page
    for file in re.findall(r"\]\(([^)]+)\)", page):
        assert file in files[0]


SMALL, LARGE = 1e-30, 1e30


@pytest.mark.parametrize(
    ("values", "best_known"),
    [
        ({"a": None, "b": None}, 100.0),
        ({"a": LARGE, "b": SMALL}, None),
        ({"a": LARGE, "b": 9e29}, SMALL),
        ({"a": 0.0, "b": 5.0}, 0.0),
        ({"\u65e5\u672c": 100.0, "\U0001f9e0": 110.0}, None),
    ],
)
def test_any_values_and_names_can_be_drawn_without_a_warning(
    tmp_path: Path, values: dict[str, float | None], best_known: float | None
) -> None:
    rows = [
        result(problem, name, value, best_known=best_known, step_time_ns=2**62, peak_bytes=2**62)
        for problem in PROBLEMS
        for name, value in values.items()
    ]
    points = [(row, [(1, 0.0, LARGE), (2, LARGE, row["value"])]) for row in rows if row["value"] is not None]
    points = [(row, curve[-1:] if row["value"] == LARGE else curve) for row, curve in points]
    (tmp_path / "out").mkdir()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        report([write(tmp_path / "made", rows, points)], tmp_path / "out")
    for path in (tmp_path / "out").glob("*.svg"):
        assert "nan" not in path.read_text(encoding="utf-8")


def test_a_name_that_the_font_lacks_is_spelled_out() -> None:
    assert drawable("m-etf \u65e5\u672c \U0001f9e0 \u00e9") == r"m-etf \u65e5\u672c \U0001f9e0 é"


HOSTILE = [
    "<script>alert(1)</script>",
    "a | b | c\n# heading",
    "![x](http://example.org/x.png) [y](javascript:alert(1)) <http://example.org>",
    "**bold** `code` ~~no~~ &lt;b&gt; https://example.org www.example.org a@example.org",
    "../../etc/passwd",
    r"$\frac{1}{0}$ \$",
    "_hidden",
    "\x00\x1b[31mred\u202egnp.exe",
    "x" * 900,
]


def test_names_that_are_markup_stay_names(tmp_path: Path) -> None:
    rows = [result("p", name, 100.0 + i) for i, name in enumerate(HOSTILE)]
    rows += [result(name, other, 100.0) for name in HOSTILE[:4] for other in HOSTILE]
    (tmp_path / "out").mkdir()
    told = report([write(tmp_path / "made", rows)], tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["made", "out"]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted(told["files"])
    page = (tmp_path / "out" / "report.md").read_text(encoding="utf-8")
    html = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).render(page)
    tags = set(re.findall(r"<(/?[a-zA-Z!][^ >]*)", html))
    known = ["h1", "h2", "h3", "p", "code", "table", "thead", "tbody", "tr", "th", "td", "img", "strong"]
    assert tags <= {*known, *(f"/{tag}" for tag in known)}
    assert set(re.findall(r'src="([^"]*)"', html)) == {"means-1.svg", "profile-1.svg", "anytime-1.svg"}
    assert "href" not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    assert "\x1b" not in page
    assert "\u202e" not in page
    for path in (tmp_path / "out").glob("*.svg"):
        assert "<script" not in path.read_text(encoding="utf-8")
        ET.parse(path)


@pytest.mark.parametrize("name", [*HOSTILE[:6], "m-etf", "zoo/gnmt-8l-train on 8xP100@nvlink: step_time"])
def test_a_renderer_shows_an_escaped_name_as_it_is(name: str) -> None:
    import html

    rendered = MarkdownIt("commonmark", {"html": True}).render(f"x {escaped(name)}")
    assert html.unescape(rendered.removeprefix("<p>x ").removesuffix("</p>\n")) == " ".join(name.split())


# --- Tables from anywhere -----------------------------------------------------------------------------------


def spoiled(folder: Path, name: str, change: Any) -> Path:
    """A folder with a table that a function has changed."""
    write(folder, [result("p", "a", 100.0)])
    pq.write_table(change(pq.read_table(folder / name)), folder / name)
    return folder


def replaced(table: Any, column: str, values: Any) -> Any:
    return table.set_column(table.column_names.index(column), column, values)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        (RESULTS, lambda t: t.drop(["twins"]), "missing: \\['twins'\\]"),
        (RESULTS, lambda t: t.append_column("<b>", pa.array([1])), "not known: \\['<b>'\\]"),
        (RESULTS, lambda t: t.append_column("seed", pa.array([1])), "other columns"),
        (RESULTS, lambda t: replaced(t, "seed", pa.array(["0"])), "column seed is of type string; expected int64"),
        (RESULTS, lambda t: replaced(t, "value", pa.array([math.nan])), "column value holds nan"),
        (RESULTS, lambda t: replaced(t, "value", pa.array([math.inf])), "column value holds inf"),
        (RESULTS, lambda t: replaced(t, "value", pa.array([1.1e30])), "column value holds 1.1e\\+30; expected 0, or"),
        (RESULTS, lambda t: replaced(t, "value", pa.array([5e-324])), "column value holds 5e-324; expected 0, or"),
        (RESULTS, lambda t: replaced(t, "seconds", pa.array([-1.0])), "column seconds holds -1"),
        (RESULTS, lambda t: replaced(t, "agent", pa.array(["a" * 1001])), "a text of 1001 characters"),
        (RESULTS, lambda t: replaced(t, "agent", pa.array([None], pa.string())), "column agent has nulls"),
        (RESULTS, lambda t: replaced(t, "verdict", pa.array(["great"])), "verdict = 'great'"),
        (RESULTS, lambda t: replaced(t, "trained_on", pa.array(["all"])), "trained_on = 'all'"),
        (CURVES, lambda t: t.drop(["seconds"]), "missing: \\['seconds'\\]"),
    ],
)  # fmt: skip
def test_other_tables_are_refused(tmp_path: Path, name: str, change: Any, message: str) -> None:
    folder = spoiled(tmp_path / "made", name, change)
    with pytest.raises(InvalidDatasetError, match=message):
        read_sections([folder])


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1" + b"\xff" * 100 + b"PAR1", b"not parquet at all"])
def test_what_is_no_parquet_is_refused(tmp_path: Path, content: bytes) -> None:
    folder = write(tmp_path / "made", [result("p", "a", 100.0)])
    (folder / RESULTS).write_bytes(content)
    with pytest.raises(InvalidDatasetError, match="cannot be read as parquet"):
        read_table(folder, RESULTS)


def test_folders_without_tables_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidDatasetError, match="no such file; expected a folder that"):
        read_sections([tmp_path])


def test_too_much_is_refused_before_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write(tmp_path / "made", [result("p", "a", 100.0), result("q", "a", 100.0)])
    monkeypatch.setitem(result_tables._MOST, RESULTS, 1)
    with pytest.raises(InvalidDatasetError, match="has 2 rows; at most 1"):
        read_table(folder, RESULTS)
    monkeypatch.setattr(result_tables, "MOST_FILE_BYTES", 100)
    with pytest.raises(InvalidDatasetError, match="at most 100 are read"):
        read_table(folder, RESULTS)


def test_a_small_file_with_a_long_text_many_times_costs_no_memory(tmp_path: Path) -> None:
    folder = write(tmp_path / "made", [result("p", "a", 100.0)])
    table = pq.read_table(folder / RESULTS)
    many = pa.concat_tables([table] * 20_000)
    long = pa.DictionaryArray.from_arrays(pa.array([0] * 20_000, pa.int32()), pa.array(["x" * 1_000_000]))
    pq.write_table(replaced(many, "agent", long), folder / RESULTS)
    assert (folder / RESULTS).stat().st_size < 3_000_000
    with pytest.raises(InvalidDatasetError, match="a text of 1000000 characters"):
        read_table(folder, RESULTS)


@pytest.mark.parametrize("points", [[(1, 0.1, 5.0), (2, 0.2, 5.0)], [(2, 0.1, 5.0), (1, 0.2, 4.0)]])
def test_curves_that_do_not_descend_are_refused(tmp_path: Path, points: list[Any]) -> None:
    row = result("p", "a", 4.0)
    with pytest.raises(InvalidDatasetError, match="does not descend"):
        read_sections([write(tmp_path / "made", [row], [(row, points)])])


def test_the_page_of_the_docs_has_every_column_with_its_meaning() -> None:
    page = (Path(__file__).parents[2] / "docs" / "evaluation.md").read_text(encoding="utf-8")
    types = {"text": "string", "whole": "int64", "number": "double", "flag": "bool"}
    for columns in (RESULT_COLUMNS, CURVE_COLUMNS):
        lines = [
            f"| `{c.name}` | {types[c.kind]}{', null' if c.optional else ''} | {c.meaning} |" for c in columns
        ]
        assert "\n".join(lines) in page
