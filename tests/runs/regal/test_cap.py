"""How much memory leaves most to gain: the question, not the long answer."""

import pytest

from opgym.errors import InvalidProblemError
from opgym.runs.reproduce.regal.cap import run


def test_more_graphs_than_there_are() -> None:
    with pytest.raises(InvalidProblemError, match=r"4,000,001 validation graphs; there are 4,000,000"):
        run(4_000_001)
