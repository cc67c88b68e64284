"""Rows of a suite, as ``opgym train`` and ``opgym evaluate`` ask for them."""

from __future__ import annotations

from typing import Any

import pytest

from opgym import datasets
from opgym.errors import InvalidProblemError, UnknownIdError
from opgym.runs.evaluate.cases import cases_of_suite
from opgym.runs.suite_rows import chosen_rows
from opgym.runs.train.config import ProblemConfig
from opgym.runs.train.problems import pose

ROWS = datasets.suite("gdp").rows


@pytest.mark.parametrize(
    ("asked", "positions"),
    [
        (None, range(len(ROWS))),
        (2, [0, 1]),
        ([2, 0, 2], [2, 0]),
        ((1,), [1]),
        (ROWS[3].name, [3]),
        ([ROWS[0].graph, 0], [i for i, row in enumerate(ROWS) if row.graph == ROWS[0].graph]),
    ],
)
def test_rows_are_chosen_each_once(asked: Any, positions: Any) -> None:
    assert chosen_rows(ROWS, asked, "rows") == [ROWS[position] for position in positions]


@pytest.mark.parametrize(
    ("asked", "error", "message"),
    [
        (0, InvalidProblemError, "rows = 0; expected 1 .. 28"),
        (29, InvalidProblemError, "rows = 29; expected 1 .. 28"),
        ([28], InvalidProblemError, "rows holds 28; expected 0 .. 27"),
        ([-1], InvalidProblemError, "rows holds -1; expected 0 .. 27"),
        ([], InvalidProblemError, r"rows = \[\]; expected a number"),
        (1.5, InvalidProblemError, "rows = 1.5; expected a number"),
        (True, InvalidProblemError, "rows = True; expected a number"),
        ([True], InvalidProblemError, r"rows = \[True\]; expected a number"),
        ({"a": 1}, InvalidProblemError, "rows = {'a': 1}; expected a number"),
        ([[1]], InvalidProblemError, r"rows = \[\[1\]\]; expected a number"),
        (["zoo/rnnlm-2l"], UnknownIdError, "did you mean zoo/rnnlm-2l-train"),
    ],
)
def test_rows_that_cannot_be(asked: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        chosen_rows(ROWS, asked, "rows")


def test_training_and_evaluation_take_the_same_rows() -> None:
    asked = [1, 0, 1]
    config = ProblemConfig(suite="memory-order", part="test", rows=asked)
    posed = [named.name for named in pose(config, "OpScheduling-v0")]
    assert posed == [case.row.name for case in cases_of_suite("memory-order", part="test", rows=asked)]
    assert len(posed) == 2
