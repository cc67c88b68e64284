"""What is claimed of GDP: figures of the paper, and whether ours confirm them."""

from typing import Any

import pytest

from opgym.runs.reproduce.gdp.claims import CLAIMS, PAPER, Claim, Standing, verdicts, with_paper

CLAIM = {claim.name: claim for claim in CLAIMS}


def line(
    claim: Claim, value: float, low: float | None, high: float | None, n: int = 28, **other: Any
) -> dict[str, Any]:
    return {
        "task": claim.task, "method": claim.method, "metric": claim.metric, "value": value, "low": low, "high": high,
        "n": n, "paper": None,
    } | other  # fmt: skip


@pytest.mark.parametrize(
    ("name", "low", "high", "standing"),
    [
        ("over-human", 0.17, 0.30, "confirmed"),
        ("over-human", 0.16, 0.30, "confirmed"),
        ("over-human", 0.15, 0.30, "not confirmed"),
        ("over-human", -0.1, 0.30, "not confirmed"),
        ("over-human", -0.2, -0.01, "reversed"),
        ("over-human", None, None, "not confirmed"),
        ("over-hdp", 0.093, 0.2, "confirmed"),
        ("attention", 0.01, 0.2, "confirmed"),
        ("attention", 0.0, 0.0, "not confirmed"),
        ("attention", -0.2, -0.1, "reversed"),
        ("unseen-size:near", -0.09, 0.01, "confirmed"),
        ("unseen-size:near", -0.12, -0.02, "not confirmed"),
        ("unseen-family:near", -0.5, -0.2, "reversed"),
        ("speed-up", 15.5, 20.0, "confirmed"),
        ("speed-up", 2.0, 20.0, "not confirmed"),
        ("speed-up", 0.2, 0.9, "reversed"),
    ],
)
def test_the_interval_decides(name: str, low: float | None, high: float | None, standing: str) -> None:
    assert CLAIM[name].standing([line(CLAIM[name], 0.2, low, high)]) == standing
    assert CLAIM[name].standing([]) is Standing.NOT_MEASURED


def test_no_speed_up_is_confirmed_where_a_run_never_arrives() -> None:
    claim = CLAIM["speed-up"]
    reached = line(claim, 30.0, 20.0, 40.0)
    most = line(claim, 25.0, 18.0, 30.0, metric="search_speedup_at_most_over:hdp")
    missed = line(claim, 1, None, None, metric="never_reaches:hdp")
    assert claim.standing([reached, most, missed | {"value": 0}]) is Standing.CONFIRMED
    assert claim.standing([reached, most, missed]) is Standing.NOT_CONFIRMED
    assert claim.measured([reached, most, missed]) == most
    slow = most | {"value": 0.3, "low": 0.1, "high": 0.5}
    assert claim.standing([slow, missed]) is Standing.REVERSED


@pytest.mark.parametrize(("rows", "standing"), [(12, "confirmed"), (11, "not confirmed"), (0, "reversed")])
def test_every_row_has_to_be_better(rows: int, standing: str) -> None:
    claim = CLAIM["unseen-size:beats"]
    assert claim.standing([line(claim, rows, None, None, 12)]) == standing


def test_what_was_read_in_a_review_is_no_word_of_the_paper() -> None:
    for claim in CLAIMS:
        assert claim.said.startswith("read in a review: ") or claim.said == "no figure" or claim.own_words
        if claim.own_words:
            assert claim.floor == PAPER[claim.metric]
    assert set(PAPER.values()) == {0.16, 0.092, 15.0}


def test_the_figures_of_the_paper_stand_beside_those_of_gdp_alone() -> None:
    ours = line(CLAIM["over-hdp"], 0.1, None, None)
    others = [
        ours | change for change in ({"method": "placeto@5000"}, {"task": "one/pcie"}, {"metric": "seconds"})
    ]
    assert [each["paper"] for each in with_paper([ours, *others])] == [0.092, None, None, None]
    review = line(CLAIM["attention"], 0.2, None, None)
    assert with_paper([review]) == [review]


def test_verdicts_are_figures_of_what_is_measured() -> None:
    lines = [line(CLAIM["over-human"], 0.2, 0.17, 0.3), line(CLAIM["over-hdp"], -0.2, -0.3, -0.1, 27)]
    assert {(each["metric"], each["value"], each["n"]) for each in verdicts(lines)} == {
        ("verdict:over-human", 1, 28), ("verdict:over-hdp", -1, 27),
    }  # fmt: skip
