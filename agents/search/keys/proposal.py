"""Where good keys are expected: a distribution per gene, guessed or learned."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv

from ....errors import InvalidProblemError

#: Steps of probability between the quantiles that stand for a Beta distribution.
_STEPS = 128
#: Where the outer ones stand: at 0 and 1, a narrow distribution would have wide tails.
_OUTER = 1 / 4096
#: Quantiles are rounded to this, far above what the incomplete Beta function of two machines may differ by.
_GRAIN = 2.0**-20

#: What the core draws from: quantiles ``[rows, steps + 1] float32``, row of each gene ``[genes] int32``, share of
#: chromosomes drawn uniformly all the same.
Distribution = tuple[NDArray[np.float32], NDArray[np.int32], float]


@dataclass(frozen=True, eq=False)
class Proposal:
    """Beta distributions from which BRKGA draws, instead of drawing keys uniformly.

    REGAL (Paliwal et al. 2020) predicts those of the mutants with a graph neural network. Here each place where BRKGA
    draws can have its own: the mutants, the first generation, and, per gene, how often a child inherits from its elite
    parent. Genes are those of :class:`~opgym.agents.search.keys.KeyEncoding`.

    Attributes:
        mutants: ``(a, b)`` of each gene, ``[genes, 2] float``, positive; ``None``: uniform.
        initial: The same for the first generation.
        inherit: Probability that a gene of a child is its elite parent's, ``[genes] float``; ``None``: the solver's
            ``bias``. (A probability that is itself drawn from a Beta for every child is the same as its mean.)
        uniform_share: Share of the chromosomes that are drawn uniformly all the same, a safety against bad proposals.
    """

    mutants: ArrayLike | None = None
    initial: ArrayLike | None = None
    inherit: ArrayLike | None = None
    uniform_share: float = 0.0


def betas(mean: ArrayLike, variance_share: ArrayLike) -> NDArray[np.float64]:
    """Beta distributions by mean and spread.

    Args:
        mean: m in (0, 1), any shape.
        variance_share: r in (0, 1); the variance is ``r m (1 - m)``. m = .5 with r = 1/3 is uniform.

    Returns:
        ``(a, b)``, the shape of the arguments with a last axis of 2.

    Raises:
        InvalidProblemError: A mean or share outside (0, 1).
    """
    m, r = np.broadcast_arrays(np.asarray(mean, np.float64), np.asarray(variance_share, np.float64))
    for name, values in (("mean", m), ("variance_share", r)):
        if not ((values > 0) & (values < 1)).all():
            raise InvalidProblemError(f"{name} must lie strictly between 0 and 1")
    size = 1 / r - 1
    return np.stack([m * size, (1 - m) * size], axis=-1)


def distribution(beta: ArrayLike | None, genes: int, uniform_share: float, what: str) -> Distribution | None:
    """Beta distributions as the core draws from them; ``None``: uniform.

    Args:
        beta: ``[genes, 2]``, or ``[2]`` for all genes.
        genes: How many genes there are.
        uniform_share: Share of the chromosomes drawn uniformly.
        what: Name of the argument, for messages.

    Raises:
        InvalidProblemError: A wrong shape, or numbers that are no Beta distribution.
    """
    if not 0 <= uniform_share <= 1:
        raise InvalidProblemError(f"uniform_share = {uniform_share}; expected a share from 0 to 1")
    if beta is None:
        return None
    pair = _numbers(beta, what)
    if pair.shape == (2,):
        pair = np.broadcast_to(pair, (genes, 2))
    if pair.shape != (genes, 2):
        raise InvalidProblemError(
            f"{what} has shape {pair.shape}; expected ({genes}, 2): a and b of each gene"
        )
    if not (np.isfinite(pair).all() and (pair > 0).all()):
        raise InvalidProblemError(f"{what} holds a Beta parameter that is not positive and finite")
    if (pair == 1).all():
        return None
    distinct, row = np.unique(pair, axis=0, return_inverse=True)
    quantile = np.stack([_quantiles(a, b) for a, b in distinct.tolist()])
    if not np.isfinite(quantile).all():
        raise InvalidProblemError(
            f"{what} holds a Beta parameter that is too large or too small to draw with"
        )
    return quantile, row.ravel().astype(np.int32), uniform_share


@lru_cache(maxsize=4096)
def _quantiles(a: float, b: float) -> NDArray[np.float32]:
    """Quantiles of a Beta distribution, ``[steps + 1] float32``.

    Proposals from quantised means and variances share few distributions, and one takes as long as an evaluation.
    """
    probability = np.linspace(0, 1, _STEPS + 1).clip(_OUTER, 1 - _OUTER)
    quantile = np.clip(np.round(betaincinv(a, b, probability) / _GRAIN) * _GRAIN, 0, 1)
    rising = np.maximum.accumulate(quantile).astype(np.float32)
    rising.setflags(write=False)
    return rising


def inheritance(proposal: Proposal, genes: int) -> NDArray[np.float64] | None:
    """The checked ``inherit`` of a proposal, ``[genes] float64``."""
    if proposal.inherit is None:
        return None
    share = _numbers(proposal.inherit, "inherit")
    if share.shape != (genes,) or not ((share >= 0) & (share <= 1)).all():
        raise InvalidProblemError(f"inherit has shape {share.shape}; expected ({genes},) probabilities")
    return np.ascontiguousarray(share)


def _numbers(values: ArrayLike, what: str) -> NDArray[Any]:
    array = np.asarray(values)
    if array.dtype.kind not in "fiu":
        raise InvalidProblemError(f"{what} has dtype {array.dtype}; expected numbers")
    return array.astype(np.float64)
