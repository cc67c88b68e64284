"""Intervals of means: right where the right answer is known."""

import numpy as np
import pytest

from opgym.statistics import Interval, clustered_mean, kendall_tau


def test_of_equal_values_the_interval_is_a_point():
    assert clustered_mean([2.0] * 6, [0, 0, 1, 1, 2, 2]) == Interval(2.0, 2.0, 2.0, 3)


def test_one_cluster_says_nothing_about_others():
    assert clustered_mean([1.0, 3.0], ["a", "a"]) == Interval(2.0, 2.0, 2.0, 1)


def test_near_the_normal_interval_for_many_independent_values():
    values = np.random.default_rng(1).normal(5, 2, 400)
    found = clustered_mean(values, np.arange(400))
    half = 1.96 * values.std(ddof=1) / 20
    assert found.estimate == pytest.approx(values.mean())
    assert found.low == pytest.approx(values.mean() - half, abs=0.03)
    assert found.high == pytest.approx(values.mean() + half, abs=0.03)


def test_copies_of_a_value_add_no_certainty_within_a_cluster():
    values = np.random.default_rng(2).normal(0, 1, 50)
    once = clustered_mean(values, np.arange(50))
    copied = clustered_mean(np.repeat(values, 9), np.repeat(np.arange(50), 9))
    assert copied.high - copied.low == pytest.approx(once.high - once.low, rel=1e-9)
    naive = clustered_mean(np.repeat(values, 9), np.arange(450))
    assert naive.high - naive.low < 0.4 * (once.high - once.low)


def test_clusters_of_unequal_size_weigh_by_their_values():
    found = clustered_mean([0.0, 1.0, 1.0, 1.0], ["a", "b", "b", "b"])
    assert found.estimate == 0.75
    assert 0 <= found.low < 0.75 < found.high <= 1


def test_it_covers_the_truth_as_often_as_it_says():
    rng = np.random.default_rng(3)
    inside = 0
    for _ in range(200):
        centres = rng.exponential(1.0, 40)
        values = (centres[:, None] + rng.normal(0, 0.3, (40, 2))).ravel()
        found = clustered_mean(values, np.repeat(np.arange(40), 2), resamples=1_000)
        inside += found.low <= 1.0 <= found.high
    assert 0.88 <= inside / 200 <= 0.99


@pytest.mark.parametrize("values", [[], [1.0, np.nan], [1.0, np.inf], [[1.0, 2.0]]])
def test_refuses_what_has_no_mean(values):
    with pytest.raises(ValueError, match=r"finite|at least one"):
        clustered_mean(values, np.zeros(np.shape(values)))


def test_refuses_labels_of_another_length():
    with pytest.raises(ValueError, match="clusters"):
        clustered_mean([1.0, 2.0], [0])


def test_tau_counts_pairs():
    assert kendall_tau([1, 2, 3], [10, 20, 30]) == (1.0, 3)
    assert kendall_tau([1, 2, 3], [30, 20, 10]) == (-1.0, 3)
    assert kendall_tau([1, 2, 3, 4], [1, 2, 4, 3]) == (pytest.approx(4 / 6), 6)
    assert kendall_tau([1, 1, 2], [1, 2, 3]) == (pytest.approx(2 / 3), 3)  # a tie in one of them


def test_tau_leaves_out_pairs_that_differ_in_neither_list():
    assert kendall_tau([100, 101, 200], [101, 100, 200], margin=0.02) == (1.0, 2)
    assert kendall_tau([100, 101, 200], [103, 100, 200], margin=0.02) == (pytest.approx(1 / 3), 3)
    assert kendall_tau([1, 1], [2, 2]) == (None, 0)
    assert kendall_tau([5], [5]) == (None, 0)


def test_tau_is_scipys_without_ties():
    from scipy.stats import kendalltau

    rng = np.random.default_rng(3)
    a, b = rng.random(30) + 1, rng.random(30) + 1
    assert kendall_tau(a, b)[0] == pytest.approx(kendalltau(a, b).statistic)


@pytest.mark.parametrize(("first", "second"), [([1, 2], [1]), ([1, 0], [1, 2]), ([1, 2], [1, np.inf])])
def test_tau_of_what_cannot_be_ranked(first, second):
    with pytest.raises(ValueError, match=r"expected|positive"):
        kendall_tau(first, second)
