"""Means, shares and ranks of results, with intervals that respect which values belong together.

Lower values are better, and infinity stands for a run without a result: it is never left out.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

#: A bootstrap of fewer independent samples tells nothing: their mean stands alone.
LEAST_CLUSTERS = 5
#: Share that an interquartile mean cuts off at each end.
_CUT = 0.25
#: Most values that a bootstrap holds at once.
_MOST_VALUES = 4_000_000

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Interval:
    """An estimate and its confidence interval.

    Attributes:
        estimate: That of all values.
        low: Lower end; that of the estimate where there is only one cluster, ``nan`` where it is unknown.
        high: Upper end.
        clusters: Independent clusters behind it.
    """

    estimate: float
    low: float
    high: float
    clusters: int

    def document(self) -> dict[str, float | None]:
        """As JSON data; without ends where they are unknown, or there are fewer than ``LEAST_CLUSTERS`` clusters."""
        told = self.clusters >= LEAST_CLUSTERS and bool(np.isfinite(self.low))
        return {
            "estimate": self.estimate,
            "low": self.low if told else None,
            "high": self.high if told else None,
            "clusters": self.clusters,
        }


def clustered_mean(
    values: ArrayLike,
    cluster: ArrayLike,
    *,
    confidence: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
) -> Interval:
    """The mean of values, with a bootstrap interval that draws whole clusters.

    Runs of one graph resemble each other, so the graph is what is drawn (with replacement), with all its runs.
    The interval is bias-corrected and accelerated (Efron 1987).

    Args:
        values: ``[values] float``, finite.
        cluster: Which of them belong together, ``[values]``, e.g. the graph of each.
        confidence: Of the interval.
        resamples: Bootstrap samples.
        seed: Of the samples: the same values give the same interval.

    Raises:
        ValueError: No values, values that are not finite, or lengths that differ.
    """
    given, index = _clustered(values, cluster)
    totals = np.bincount(index, weights=given).astype(np.float64)
    counts = np.bincount(index).astype(np.float64)
    return _ratio(float(given.mean()), totals, counts, confidence, resamples, seed)


def clustered_ratio(
    values: ArrayLike,
    of: ArrayLike,
    cluster: ArrayLike,
    *,
    confidence: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
) -> Interval:
    """The sum of values over the sum of what they are shares of, with the interval of :func:`clustered_mean`.

    A mean of single shares would hang on the smallest things that they are shares of. Where so few clusters have
    anything to be a share of that a sample may have none, there is no interval: its ends are ``nan``.

    Args:
        values: ``[values] float``, finite, e.g. what was gained in each run.
        of: ``[values] float``, finite, with a positive sum, e.g. what could have been gained.
        cluster: Which of them belong together, ``[values]``.
        confidence: Of the interval.
        resamples: Bootstrap samples.
        seed: Of the samples: the same values give the same interval.

    Raises:
        ValueError: No values, values that are not finite, lengths that differ, or a sum that is not positive.
    """
    given, index = _clustered(values, cluster)
    whole, _ = _clustered(of, cluster)
    if not whole.sum() > 0:
        raise ValueError(f"a ratio to {whole.sum()}; expected a positive sum")
    totals, counts = (np.bincount(index, weights=of).astype(np.float64) for of in (given, whole))
    return _ratio(float(given.sum() / whole.sum()), totals, counts, confidence, resamples, seed)


def _clustered(values: ArrayLike, cluster: ArrayLike) -> tuple[Floats, NDArray[np.int64]]:
    """Values and the number of the cluster of each."""
    given = np.asarray(values, np.float64)
    labels = np.asarray(cluster)
    if given.ndim != 1 or not len(given) or labels.shape != given.shape:
        raise ValueError(
            f"{given.shape} values in clusters {labels.shape}; expected as many, and at least one"
        )
    if not np.isfinite(given).all():
        raise ValueError("a value is not finite")
    return given, np.unique(labels, return_inverse=True)[1].ravel()


def _ratio(
    estimate: float, totals: Floats, counts: Floats, confidence: float, resamples: int, seed: int
) -> Interval:
    """A ratio of sums over clusters, with its bootstrap interval."""
    some = counts != 0
    if len(totals) == 1 or (np.ptp(totals[some] / counts[some]) == 0 and not totals[~some].any()):
        return Interval(estimate, estimate, estimate, len(totals))
    from scipy.stats import DegenerateDataWarning, bootstrap

    def mean(total: NDArray[Any], count: NDArray[Any], axis: int) -> NDArray[Any]:
        ratio: NDArray[Any] = total.sum(axis=axis) / count.sum(axis=axis)
        return ratio

    with warnings.catch_warnings(), np.errstate(divide="ignore", invalid="ignore"):
        warnings.simplefilter(
            "ignore", DegenerateDataWarning
        )  # a sample of nothing, for which there is no interval
        found = bootstrap(
            (totals, counts),
            mean,
            paired=True,
            vectorized=True,
            n_resamples=resamples,
            batch=max(1, 10_000_000 // len(totals)),
            confidence_level=confidence,
            method="BCa",
            rng=np.random.default_rng(seed),
        ).confidence_interval
    low, high = (float(end) for end in (found.low, found.high))
    if not (np.isfinite(low) and np.isfinite(high)):
        low = high = float("nan")
    return Interval(estimate, low, high, len(totals))


def kendall_tau(first: ArrayLike, second: ArrayLike, *, margin: float = 0.0) -> tuple[float | None, int]:
    """How alike two lists of positive values rank the same things: Kendall's tau over the pairs that differ.

    A pair that both lists order alike counts 1, one that they order differently -1, and one that is tied in one of
    them 0; tau is the mean. It is left out where neither list sees a difference above the margin.

    Args:
        first: ``[things] float``.
        second: ``[things] float``.
        margin: Share of the smaller value that a difference has to exceed in one of the lists.

    Returns:
        Tau, ``None`` without pairs, and the number of pairs.

    Raises:
        ValueError: Lengths that differ, or a value that is not positive and finite.
    """
    a, b = np.asarray(first, np.float64), np.asarray(second, np.float64)
    if a.ndim != 1 or a.shape != b.shape:
        raise ValueError(f"values of shapes {a.shape} and {b.shape}; expected two lists of one length")
    if not (np.isfinite(a).all() and np.isfinite(b).all() and (a > 0).all() and (b > 0).all()):
        raise ValueError("a value is not positive and finite")
    i, j = np.triu_indices(len(a), 1)

    def differs(values: NDArray[Any]) -> NDArray[Any]:
        distance: NDArray[Any] = np.abs(values[i] - values[j])
        above: NDArray[Any] = distance > margin * np.minimum(values[i], values[j])
        return above

    counted = differs(a) | differs(b)
    agreement = (np.sign(a[i] - a[j]) * np.sign(b[i] - b[j]))[counted]
    return (float(agreement.mean()), len(agreement)) if len(agreement) else (None, 0)


# --- Runs of several agents on the same problems ------------------------------------------------------------


def interquartile_mean(values: ArrayLike) -> Floats:
    """The mean of the middle half: the lowest and the highest quarter are cut off, rounded down to whole values.

    What ``scipy.stats.trim_mean(values, 0.25)`` gives, which is the IQM of Agarwal et al. (2021, section 4.3).

    Args:
        values: ``[..., values] float``; infinity is a value, NaN is none.

    Returns:
        ``[...] float``; NaN without values.
    """
    ordered = np.sort(np.asarray(values, np.float64), axis=-1)  # NaN at the end
    count = (~np.isnan(ordered)).sum(axis=-1, keepdims=True)
    cut = (_CUT * count).astype(np.int64)
    position = np.arange(ordered.shape[-1])
    middle = (position >= cut) & (position < count - cut)
    with np.errstate(invalid="ignore"):
        mean: Floats = np.where(middle, ordered, 0.0).sum(axis=-1) / (count - 2 * cut)[..., 0]
    return mean


def geometric_mean(values: ArrayLike) -> float:
    """The geometric mean; infinite if one of the values is.

    Raises:
        ValueError: No values, or one that is not positive.
    """
    given = np.asarray(values, np.float64)
    if not given.size or not (given > 0).all():
        raise ValueError("expected at least one value, and positive ones")
    return float(np.exp(np.log(given).mean()))


def performance_profile(ratios: ArrayLike, factors: ArrayLike) -> Floats:
    """Shares of runs within factors of the best (Dolan and More 2002).

    Args:
        ratios: ``[problems, seeds] float``, value / best.
        factors: ``[factors] float``.

    Returns:
        ``[factors] float``, the share of all runs whose ratio is at most the factor.
    """
    ordered = np.sort(np.asarray(ratios, np.float64), axis=None)
    return np.searchsorted(ordered, np.asarray(factors, np.float64), side="right") / len(ordered)


def bootstrap_interquartile_mean(
    values: ArrayLike,
    cluster: ArrayLike,
    *,
    confidence: float = 0.95,
    resamples: int = 2_000,
    seed: int = 0,
) -> Interval:
    """The interquartile mean of all runs, with a percentile bootstrap that draws clusters, problems and seeds.

    A sample draws as many clusters as there are, of each drawn one as many problems as it has, and of each of those as
    many seeds as there are, all with replacement. Few runs of each of few families so give wide intervals, however
    many problems a family has.

    Args:
        values: ``[problems, seeds] float``; infinity where there is no result.
        cluster: Which problems are not independent of each other, ``[problems]``, e.g. the family of each.
        confidence: Of the interval.
        resamples: Bootstrap samples.
        seed: Of the samples: the same values give the same interval.

    Raises:
        ValueError: No values, NaN, or lengths that differ.
    """
    given = _runs(values)

    def statistic(problem: NDArray[np.int64], rng: np.random.Generator) -> Floats:
        seeds = rng.integers(given.shape[1], size=(*problem.shape, given.shape[1]))
        drawn = np.where(problem[..., None] >= 0, given[problem[..., None], seeds], np.nan)
        return interquartile_mean(drawn.reshape(len(problem), -1))

    estimate = float(interquartile_mean(given.ravel()))
    return _bootstrapped(estimate, statistic, cluster, given.size, confidence, resamples, seed)


def probability_of_improvement(
    first: ArrayLike,
    second: ArrayLike,
    cluster: ArrayLike,
    *,
    confidence: float = 0.95,
    resamples: int = 2_000,
    seed: int = 0,
) -> Interval:
    """How often a run of the first is better than one of the second on the same problem; equal ones count half.

    The mean over problems of the share of pairs of runs (Agarwal et al. 2021, section 4.3), with the bootstrap of
    :func:`bootstrap_interquartile_mean`.

    Args:
        first: ``[problems, seeds] float``, lower is better; infinity where there is no result.
        second: ``[problems, other seeds] float``.
        cluster: Which problems are not independent of each other, ``[problems]``.
        confidence: Of the interval.
        resamples: Bootstrap samples.
        seed: Of the samples.

    Raises:
        ValueError: No values, NaN, or lengths that differ.
    """
    a, b = _runs(first), _runs(second)
    if len(a) != len(b):
        raise ValueError(f"runs of {len(a)} and {len(b)} problems; expected as many")

    def share(one: Floats, other: Floats) -> Floats:
        better = one[..., :, None] < other[..., None, :]
        equal = one[..., :, None] == other[..., None, :]
        shares: Floats = (better + 0.5 * equal).mean(axis=(-2, -1))
        return shares

    def statistic(problem: NDArray[np.int64], rng: np.random.Generator) -> Floats:
        chosen = [
            runs[problem[..., None], rng.integers(runs.shape[1], size=(*problem.shape, runs.shape[1]))]
            for runs in (a, b)
        ]
        mean: Floats = np.nanmean(np.where(problem >= 0, share(*chosen), np.nan), axis=-1)
        return mean

    pairs = len(a) * a.shape[1] * b.shape[1]
    return _bootstrapped(float(share(a, b).mean()), statistic, cluster, pairs, confidence, resamples, seed)


def _runs(values: ArrayLike) -> Floats:
    given = np.asarray(values, np.float64)
    if given.ndim != 2 or not given.size or np.isnan(given).any():
        raise ValueError(f"runs of shape {given.shape}; expected [problems, seeds], at least one, and no NaN")
    return given


def _bootstrapped(
    estimate: float,
    statistic: Callable[[NDArray[np.int64], np.random.Generator], Floats],
    cluster: ArrayLike,
    size: int,
    confidence: float,
    resamples: int,
    seed: int,
) -> Interval:
    """A percentile interval; its ends are values of samples, as infinite ones cannot be interpolated."""
    rng = np.random.default_rng(seed)
    labels = np.asarray(cluster)
    clusters = len(np.unique(labels))
    if clusters == 1:
        return Interval(estimate, estimate, estimate, 1)
    batch = max(1, min(resamples, _MOST_VALUES // size))
    found = np.concatenate(
        [statistic(problem, rng) for problem in _drawn_problems(labels, resamples, batch, rng)]
    )
    tail = (1 - confidence) / 2
    low, high = np.quantile(found, (tail, 1 - tail), method="inverted_cdf")
    return Interval(estimate, float(low), float(high), clusters)


def _drawn_problems(
    labels: NDArray[Any], resamples: int, batch: int, rng: np.random.Generator
) -> Iterator[NDArray[np.int64]]:
    """Problems of bootstrap samples, ``[samples, draws] int64``, -1 behind the last of a sample."""
    index = np.unique(labels, return_inverse=True)[1].ravel()
    member = np.argsort(index, kind="stable")  # cluster by cluster
    count = np.bincount(index)
    first = np.cumsum(count) - count
    for start in range(0, resamples, batch):
        chosen = rng.integers(len(count), size=(min(batch, resamples - start), len(count)))
        draws = count[chosen].sum(axis=1)
        each = np.repeat(chosen.ravel(), count[chosen].ravel())
        problem = np.full((len(chosen), draws.max()), -1)
        problem[np.arange(draws.max()) < draws[:, None]] = member[first[each] + rng.integers(count[each])]
        yield problem
