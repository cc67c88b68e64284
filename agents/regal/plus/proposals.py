"""From what the network says of ops to Beta distributions of genes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from ...search.keys import KeyEncoding, Proposal, betas

Floats = NDArray[np.float64]

#: Means stand on a grid, shares of the largest variance at powers of the square root of 2, probabilities on a grid:
#: distributions that genes share are computed once.
_MEANS, _SHARES_PER_OCTAVE, _PROBABILITIES = 64, 2, 32
_LEAST_SHARE, _MOST_SHARE = 1e-3, 0.75
#: Exponents between which devices are as good as certain.
_EXPONENTS = np.linspace(1.0, 8.0, 701)


@dataclass(frozen=True, eq=False)
class Expected:
    """What the network expects of the ops of one graph.

    Attributes:
        position: Mean position of each op in the order, from 0 to 1, ``[ops] float64``.
        share: Of the largest variance that a position of this mean can have, ``[ops] float64``.
        device_1: Probability that the op is on device 1, ``[ops] float64``.
    """

    position: Floats
    share: Floats
    device_1: Floats


@dataclass(frozen=True)
class Placing:
    """Where BRKGA uses what the network expects.

    Attributes:
        initial: For the first generation.
        mutants: For mutants.
        spread: Factor on the standard deviation of priorities.
        uniform_share: Share of the chromosomes that are drawn uniformly all the same.
    """

    initial: bool
    mutants: bool
    spread: float
    uniform_share: float

    def proposal(self, encoding: KeyEncoding, expected: Expected) -> Proposal:
        """What BRKGA draws from."""
        genes = genes_of(encoding, expected, self.spread)
        return Proposal(
            mutants=genes if self.mutants else None,
            initial=genes if self.initial else None,
            uniform_share=self.uniform_share,
        )


def genes_of(encoding: KeyEncoding, expected: Expected, spread: float = 1.0) -> Floats:
    """The Beta distribution of each gene, ``[genes, 2]``.

    A priority is 1 - position. The two affinities of a group have distributions ``(k, 1)`` and ``(1, k)``, or the
    other way round, with the ``k`` at which the larger one names device 1 with the mean probability of its ops. Keys
    of transfers, of which the network says nothing, stay uniform.

    Args:
        encoding: Of the problem.
        expected: Of its ops.
        spread: Factor on the standard deviation of priorities.
    """
    result = np.ones((encoding.genes, 2))
    position = expected.position[encoding.ops]
    mean = np.round((1 - position) * _MEANS) / _MEANS
    octave = np.log2(np.clip(expected.share[encoding.ops] * spread**2, _LEAST_SHARE, _MOST_SHARE))
    share = 2.0 ** (np.floor(octave * _SHARES_PER_OCTAVE + 0.5) / _SHARES_PER_OCTAVE)
    result[encoding.priorities] = betas(mean.clip(0.5 / _MEANS, 1 - 0.5 / _MEANS), share.clip(None, 0.9))
    affinities = result[encoding.affinities]
    if len(affinities):
        size = np.bincount(encoding.group)
        probability = np.bincount(encoding.group, expected.device_1) / size
        result[encoding.affinities] = _affinities(probability).reshape(affinities.shape)
    return result


def _affinities(device_1: Floats) -> Floats:
    """``(a, b)`` of both affinities, ``[groups, 2, 2]``, so that the second is larger with a given probability."""
    probability = np.floor(device_1 * _PROBABILITIES + 0.5) / _PROBABILITIES
    likely = np.maximum(probability, 1 - probability)
    # With U and V uniform, U^(1/k) > 1 - V^(1/k) has probability 1 - Gamma(k + 1)^2 / Gamma(2 k + 1).
    unlikely = np.exp(2 * gammaln(_EXPONENTS + 1) - gammaln(2 * _EXPONENTS + 1))
    exponent = np.interp(1 - likely, unlikely[::-1], _EXPONENTS[::-1])
    high, low = (
        np.stack([exponent, np.ones_like(exponent)], 1),
        np.stack([np.ones_like(exponent), exponent], 1),
    )
    second = (probability > 0.5)[:, None]
    return np.stack([np.where(second, low, high), np.where(second, high, low)], axis=1)
