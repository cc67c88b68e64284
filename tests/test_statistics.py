"""Intervals of means: right where the right answer is known."""

import warnings

import numpy as np
import pytest
import scipy.stats

from opgym.statistics import (
    Interval,
    bootstrap_interquartile_mean,
    clustered_mean,
    clustered_ratio,
    geometric_mean,
    interquartile_mean,
    kendall_tau,
    performance_profile,
    probability_of_improvement,
)


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


def test_a_ratio_weighs_by_what_is_shared():
    found = clustered_ratio([1.0, 1.0, 3.0, 0.0], [1.0, 4.0, 3.0, 2.0], ["a", "b", "c", "d"])
    assert found.estimate == 0.5  # and not the mean of 1, 1/4, 1 and 0
    assert 0 <= found.low < 0.5 < found.high <= 1
    assert found.clusters == 4


def test_a_mean_is_a_ratio_to_ones():
    values = np.random.default_rng(4).normal(1, 1, 30)
    assert clustered_ratio(values, np.ones(30), np.arange(30) // 2) == clustered_mean(
        values, np.arange(30) // 2
    )


def test_equal_ratios_have_no_width_and_what_has_nothing_to_share_adds_none():
    assert clustered_ratio([1.0, 2.0, 0.0], [2.0, 4.0, 0.0], [0, 1, 2]) == Interval(0.5, 0.5, 0.5, 3)


def test_where_a_sample_may_have_nothing_to_share_there_is_no_interval_and_no_warning():
    shares, of = np.zeros(8), np.zeros(8)
    shares[:2], of[:2] = (1.0, 1.0), (2.0, 4.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = clustered_ratio(shares, of, np.arange(8))
    assert found.estimate == pytest.approx(2 / 6)
    assert np.isnan([found.low, found.high]).all()
    assert found.document()["low"] is None


def test_a_ratio_to_nothing_is_refused():
    with pytest.raises(ValueError, match="positive sum"):
        clustered_ratio([1.0, 1.0], [1.0, -1.0], [0, 1])
    with pytest.raises(ValueError, match="as many"):
        clustered_ratio([1.0, 1.0], [1.0], [0, 1])


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


# --- Runs of several agents on the same problems ------------------------------------------------------------


def test_the_interquartile_mean_by_hand():
    # Eight values: two are cut off at each end.
    assert interquartile_mean([8.0, 1.0, 3.0, 2.0, 100.0, 4.0, 6.0, -50.0]) == (2 + 3 + 4 + 6) / 4
    # Of five, a quarter is one value.
    assert interquartile_mean([5.0, 1.0, 2.0, 4.0, 3.0]) == 3
    assert interquartile_mean([5.0, 1.0, 3.0]) == 3


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 7, 8, 30, 31])
def test_the_interquartile_mean_is_the_trimmed_mean_that_rliable_takes(size):
    values = np.random.default_rng(size).lognormal(size=(3, size))
    expected = scipy.stats.trim_mean(values, proportiontocut=0.25, axis=1)
    np.testing.assert_allclose(interquartile_mean(values), expected, rtol=1e-14)


def test_runs_without_a_result_count_where_they_are_not_cut_off():
    assert interquartile_mean([1.0, 2.0, 3.0, np.inf]) == 2.5
    assert interquartile_mean([1.0, 2.0, np.inf, np.inf]) == np.inf


def test_what_is_no_value_is_left_out():
    found = interquartile_mean([[np.nan, 1.0, 2.0, 6.0], [np.nan, 4.0, np.nan, 5.0]])
    np.testing.assert_array_equal(found, [3.0, 4.5])
    assert np.isnan(interquartile_mean([np.nan]))


def test_the_geometric_mean():
    assert geometric_mean([1.0, 4.0, 16.0]) == pytest.approx(4)
    assert geometric_mean([1.0, np.inf]) == np.inf
    for wrong in ([], [1.0, 0.0], [np.nan]):
        with pytest.raises(ValueError, match="positive"):
            geometric_mean(wrong)


def test_a_performance_profile_by_hand():
    ratios = [[1.0, 1.5], [2.0, np.inf]]
    np.testing.assert_array_equal(
        performance_profile(ratios, [0.9, 1.0, 1.5, 1.9, 2.0, 1e9]), [0, 0.25, 0.5, 0.5, 0.75, 0.75]
    )


def test_the_probability_of_improvement_by_hand():
    # First problem: of four pairs one is better, one equal; second: all better; third: none has a result.
    first = [[1.0, 3.0], [1.0, 1.0], [np.inf, np.inf]]
    second = [[1.0, 2.0], [2.0, 3.0], [np.inf, np.inf]]
    found = probability_of_improvement(first, second, ["a", "b", "c"])
    assert found.estimate == pytest.approx(((1 + 0.5) / 4 + 1 + 0.5) / 3)
    back = probability_of_improvement(second, first, ["a", "b", "c"])
    assert found.estimate + back.estimate == pytest.approx(1)
    assert found.low <= found.estimate <= found.high
    assert found.clusters == 3


def test_other_numbers_of_seeds_compare():
    # 1.5 is worse than one of the three and better than two.
    assert probability_of_improvement([[1.5]], [[1.0, 2.0, 3.0]], [0]).estimate == pytest.approx(2 / 3)


def test_the_hierarchical_bootstrap_of_equal_runs_is_a_point():
    assert bootstrap_interquartile_mean(np.full((6, 3), 2.0), [0, 0, 1, 1, 2, 2]) == Interval(2, 2, 2, 3)
    assert bootstrap_interquartile_mean([[1.0, 2.0]], ["a"]) == Interval(1.5, 1.5, 1.5, 1)


def test_the_hierarchical_bootstrap_draws_clusters_then_problems_then_seeds():
    """Its distribution is that of a plain loop over draws, and another one than that of problems drawn freely."""
    rng = np.random.default_rng(5)
    cluster = np.array([0, 0, 0, 0, 0, 0, 1, 2, 3, 4])
    values = (np.array([0, 3, 1, 4, 2])[cluster] + rng.normal(0, 0.3, 10))[:, None] + rng.normal(
        0, 0.3, (10, 3)
    )

    def plain() -> float:
        drawn = []
        for family in rng.integers(5, size=5):
            problems = np.flatnonzero(cluster == family)
            for problem in rng.choice(problems, len(problems)):
                drawn += list(rng.choice(values[problem], 3))
        return float(scipy.stats.trim_mean(drawn, 0.25))

    expected = np.quantile([plain() for _ in range(4_000)], (0.025, 0.975))
    found = bootstrap_interquartile_mean(values, cluster, resamples=4_000)
    np.testing.assert_allclose((found.low, found.high), expected, atol=0.12)
    free = bootstrap_interquartile_mean(values, np.arange(10), resamples=4_000)
    assert free.high - free.low < 0.8 * (found.high - found.low)


def test_a_bootstrap_is_the_same_in_one_batch_and_in_many(monkeypatch):
    values = np.random.default_rng(6).lognormal(size=(20, 2))
    whole = bootstrap_interquartile_mean(values, np.arange(20) // 2)
    again = bootstrap_interquartile_mean(values, np.arange(20) // 2)
    assert whole == again
    monkeypatch.setattr("opgym.statistics._MOST_VALUES", 4_000)
    batched = bootstrap_interquartile_mean(values, np.arange(20) // 2)
    assert (batched.low, batched.high) == pytest.approx((whole.low, whole.high), rel=0.1)


def test_missing_results_make_an_interval_without_an_end():
    values = np.array([[1.0]] * 9 + [[np.inf]] * 3)
    found = bootstrap_interquartile_mean(values, np.arange(12))
    assert found.estimate == 1
    assert (found.low, found.high) == (1, np.inf)


@pytest.mark.parametrize("values", [[], [[]], [1.0], [[np.nan]]])
def test_refuses_what_are_no_runs(values):
    with pytest.raises(ValueError, match="at least one"):
        bootstrap_interquartile_mean(values, [0])
    with pytest.raises(ValueError, match="as many"):
        probability_of_improvement([[1.0]], [[1.0], [2.0]], [0])
