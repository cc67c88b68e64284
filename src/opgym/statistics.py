"""Means with intervals that respect which values belong together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True)
class Interval:
    """An estimate and its confidence interval.

    Attributes:
        estimate: The mean of all values.
        low: Lower end; that of the estimate where there is only one cluster.
        high: Upper end.
        clusters: Independent clusters behind it.
    """

    estimate: float
    low: float
    high: float
    clusters: int


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
    given = np.asarray(values, np.float64)
    labels = np.asarray(cluster)
    if given.ndim != 1 or not len(given) or labels.shape != given.shape:
        raise ValueError(
            f"{given.shape} values in clusters {labels.shape}; expected as many, and at least one"
        )
    if not np.isfinite(given).all():
        raise ValueError("a value is not finite")
    index = np.unique(labels, return_inverse=True)[1].ravel()
    totals = np.bincount(index, weights=given)
    counts = np.bincount(index).astype(np.float64)
    estimate = float(given.mean())
    means = totals / counts
    if len(totals) == 1 or np.ptp(means) == 0:
        return Interval(estimate, estimate, estimate, len(totals))
    from scipy.stats import bootstrap

    def mean(total: NDArray[Any], count: NDArray[Any], axis: int) -> NDArray[Any]:
        ratio: NDArray[Any] = total.sum(axis=axis) / count.sum(axis=axis)
        return ratio

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
    return Interval(estimate, float(found.low), float(found.high), len(totals))


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
