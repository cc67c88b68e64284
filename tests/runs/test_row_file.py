"""Rows survive interruptions, and a file that is something else is left alone."""

import os
import subprocess
import sys

import pytest

from opgym.errors import ImportFailedError
from opgym.runs.row_file import RowFile


def test_rows_come_back_in_order(tmp_path):
    path = tmp_path / "rows.jsonl"
    first = RowFile(path)
    for i in range(3):
        first.append({"i": i, "text": "ä\n"})
    assert RowFile(path).rows == first.rows == [{"i": i, "text": "ä\n"} for i in range(3)]


def test_a_torn_last_line_is_cut_off_and_the_next_row_is_whole(tmp_path):
    path = tmp_path / "rows.jsonl"
    RowFile(path).append({"i": 0})
    with path.open("a") as file:
        file.write('{"i": 1, "val')
    again = RowFile(path)
    assert again.rows == [{"i": 0}]
    again.append({"i": 2})
    assert RowFile(path).rows == [{"i": 0}, {"i": 2}]


def test_without_a_path_rows_are_in_memory_only(tmp_path):
    file = RowFile(None)
    file.append({"i": 0})
    assert file.rows == [{"i": 0}]
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "line", ["[1]\n", "no json\n", "{}{}\n", pytest.param('{"a":' * 100_000 + "\n", id="deep")]
)
def test_another_file_is_refused_and_untouched(tmp_path, line):
    path = tmp_path / "rows.jsonl"
    path.write_text('{"i": 0}\n' + line)
    with pytest.raises(ImportFailedError, match=r"rows.jsonl:2: no row"):
        RowFile(path)
    assert path.read_text() == '{"i": 0}\n' + line


@pytest.mark.parametrize("text", ["notes of mine", 'notes\n{"i": 1', '{"i": 0}\nnotes'])
def test_another_file_without_a_last_line_end_is_untouched(tmp_path, text):
    path = tmp_path / "rows.jsonl"
    path.write_text(text)
    with pytest.raises(ImportFailedError, match=r"rows.jsonl.* no row of an earlier run; move the file away"):
        RowFile(path)
    assert path.read_text() == text


def test_what_is_no_number_is_refused(tmp_path):
    with pytest.raises(ValueError, match="JSON compliant"):
        RowFile(tmp_path / "rows.jsonl").append({"value": float("nan")})


def test_a_killed_run_leaves_whole_rows(tmp_path):
    path = tmp_path / "rows.jsonl"
    script = (
        "import os, sys\nfrom pathlib import Path\nfrom opgym.runs.row_file import RowFile\n"
        f"file = RowFile(Path({str(path)!r}))\n"
        "for i in range(5): file.append({'i': i})\nos.kill(os.getpid(), 9)\n"
    )
    run = subprocess.run([sys.executable, "-c", script], check=False)
    assert run.returncode == -9
    assert RowFile(path).rows == [{"i": i} for i in range(5)]


def test_a_full_disk_names_the_file(tmp_path):
    path = tmp_path / "rows.jsonl"
    file = RowFile(path)
    path.symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left") as caught:
        file.append({"i": 0})
    assert caught.value.filename == str(path)
