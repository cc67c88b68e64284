"""Rows of ``opgym benchmark search``: what they hold, and that both sides solve the same problem."""

import json
import time
from dataclasses import fields

import pytest
from typer.testing import CliRunner

from opgym.benchmark import search
from opgym.benchmark.search_peers import pymoo_brkga
from opgym.cli.app import app

SMALL = "synthetic/ws?n=40&seed=2"


@pytest.fixture
def small(monkeypatch):
    pytest.importorskip("pymoo")
    pytest.importorskip("simanneal")
    monkeypatch.setattr(search, "EVALUATIONS", 900)
    monkeypatch.setattr(search, "MOVES", 900)


@pytest.mark.parametrize("devices", [1, 2])
def test_a_row_of_brkga(small, devices):
    row = search._brkga(SMALL, devices, pymoo_brkga, 1000.0, 0.0, "brkga-small")
    assert (row.case, row.ops, row.devices, row.peer) == ("brkga-small", 40, devices, "pymoo")
    assert row.evaluations == row.peer_evaluations == 900
    assert row.seconds > 0
    assert row.ratio_to_peer > 0
    assert row.within_bar is True
    # Two runs of one algorithm on one problem, with other random numbers.
    assert row.value == pytest.approx(row.peer_value, rel=0.15)


def test_a_bar_that_is_missed_is_said_to_be(small):
    assert search._brkga(SMALL, 1, pymoo_brkga, 1000.0, 1e9, "brkga-small").within_bar is False
    assert search._brkga(SMALL, 1, pymoo_brkga, 0.0, 0.0, "brkga-small").within_bar is False


def test_rows_of_annealing(small):
    orders = search._annealing(SMALL, 900, "annealing-small")
    assert orders.evaluations == 900
    assert orders.peer_evaluations == 901
    assert orders.value <= orders.peer_value  # ours starts from the best of several heuristics
    assert search._annealing(SMALL, 100, "annealing-small").peer_value is None
    assert search._pairs(SMALL, "annealing-small").peer_evaluations == 901
    assert search._whole_peaks(SMALL, "annealing-small").ratio_to_peer > 0


def test_every_case_is_named_for_its_search_and_only_once():
    names = [name for name, _ in search._cases()]
    assert len(set(names)) == len(names)
    assert all(name.startswith(("brkga-", "annealing-")) for name in names)


@pytest.mark.slow
def test_the_command_takes_less_than_100_s_and_prints_every_field():
    pytest.importorskip("brkga_mp_ipr")
    began = time.process_time()
    result = CliRunner().invoke(app, ["benchmark", "search", "--json"])
    assert result.exit_code == 0, result.stderr
    assert time.process_time() - began < 100
    rows = json.loads(result.stdout)
    assert [row["case"] for row in rows] == [name for name, _ in search._cases()]
    assert all(row.keys() == {field.name for field in fields(search.Row)} for row in rows)
