"""Searches in stages: what a gain is where nothing is feasible, and when a mean has an interval."""

import math

import numpy as np
import pytest

from opgym.runs.reproduce.staged_search import gain_text, gains, mean_gain, search
from opgym.runs.reproduce.tuning import STAGES
from opgym.statistics import LEAST_CLUSTERS, clustered_mean


@pytest.mark.parametrize(
    ("untuned", "value", "gain"),
    [(10, 8, 0.2), (10, 12, -0.2), (10, math.inf, -math.inf), (math.inf, 8, 1), (math.inf, math.inf, 0)],
)
def test_a_gain_knows_what_is_not_feasible(untuned: float, value: float, gain: float) -> None:
    found = gains(np.array([untuned, value]).reshape(2, 1, 1))
    assert found.ravel().tolist() == pytest.approx([0.0, gain])


def test_a_setting_that_finds_nothing_on_one_problem_is_not_kept() -> None:
    values = {"best but for one": [1.0, 1.0, math.inf], "worse than the defaults": [11.0, 11.0, 11.0]}
    candidates = [{"name": name} for name in values]
    (kept,) = search(
        {},
        candidates,
        STAGES[-1:],
        lambda _, tried: np.array([values.get(setting.get("name", ""), [10.0] * 3) for setting in tried])[..., None],
    )  # fmt: skip
    assert kept.settings == ({"name": "worse than the defaults"},)
    assert kept.document()["kept"][0]["gain"] == pytest.approx(-0.1)


def test_there_are_intervals_from_five_graphs_on() -> None:
    found = np.array([0.1, 0.0, 0.2, 0.4, 0.1])
    few = mean_gain(found[:4], list("abcd"))
    assert few == {
        "estimate": pytest.approx(0.175),
        "low": None,
        "high": None,
        "clusters": LEAST_CLUSTERS - 1,
    }
    assert gain_text(few) == "17.5 %"
    whole = clustered_mean(found, list("abcde"))
    enough = mean_gain(found, list("abcde"))
    assert (enough["low"], enough["high"]) == (whole.low, whole.high)
    assert gain_text(enough) == f"16.0 % [{100 * whole.low:.1f}, {100 * whole.high:.1f}]"


def test_an_infinite_gain_leaves_no_interval() -> None:
    found = mean_gain([0.1, 0.2, 0.3, 0.4, -math.inf], list("abcde"))
    assert found == {"estimate": -math.inf, "low": None, "high": None, "clusters": 5}
    assert "nothing feasible" in gain_text(found)
