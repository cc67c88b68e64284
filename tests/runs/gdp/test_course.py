"""Courses of runs: what was found after so many evaluations."""

import math

import pytest

from opgym.runs.reproduce.gdp.course import Course, best_of

from .made import row

COURSE = Course.of(row("rnnlm-2l on 2xP100", "gdp", [[1, None], [4, 200.0], [90, 120.0]], spent=100))


def test_a_cut_has_what_was_found_by_then() -> None:
    assert COURSE.value == 120.0
    assert COURSE.at(89).value == 200.0
    assert COURSE.at(89).evaluations == 89
    assert COURSE.at(89).seconds == pytest.approx(8.9)
    assert COURSE.at(90).value == 120.0
    assert COURSE.at(1).value == math.inf


def test_a_cut_beyond_the_budget_has_all_and_says_what_was_spent() -> None:
    assert COURSE.at(5_000) == COURSE
    assert COURSE.at(5_000).evaluations == 100


def test_evaluations_to_a_value_that_is_at_least_as_good() -> None:
    assert COURSE.evaluations_to(200.0) == 4
    assert COURSE.evaluations_to(199.0) == 90
    assert COURSE.evaluations_to(120.0) == 90
    assert COURSE.evaluations_to(119.0) is None


def test_the_best_of_several_spends_what_all_of_them_do() -> None:
    others = [
        Course(0, 2, 1.0, ((1, 0.5, 300.0), (2, 1.0, 250.0))),
        Course(0, 0, 0.0, (), applies=False),
        Course(0, 3, 2.0, ((1, 0.5, 280.0), (3, 1.5, 200.0))),
        Course(0, 1, 1.0, ((1, 0.5, None),)),
    ]
    best = best_of(others)
    assert (best.value, best.evaluations, best.seconds) == (200.0, 6, 4.0)
    assert best.curve == ((1, 0.5, 300.0), (2, 1.0, 250.0), (5, 2.5, 200.0))
    assert best_of(others[3:]).value == math.inf
    assert math.isnan(best_of(others[1:2]).value)
