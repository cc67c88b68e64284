"""Random numbers that are the same on every machine: SplitMix64 by counter, and integer arithmetic.

No distribution of numpy is used, for their streams may change between versions, and no function of libm, for
their last bits differ between machines.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

Int64 = NDArray[np.int64]
UInt64 = NDArray[np.uint64]

#: Binary digits of :meth:`Stream.normal`: 65,536 is one standard deviation.
NORMAL_BITS = 16
_GAMMA = 0x9E3779B97F4A7C15
_FIRST_MULTIPLIER = np.uint64(0xBF58476D1CE4E5B9)
_SECOND_MULTIPLIER = np.uint64(0x94D049BB133111EB)
_PIECES = 12  # 16-bit uniforms per normal; the variance of their sum is 2^32 - 1
_BLOCK = 256


def split_mix(state: int, count: int, start: int = 0) -> UInt64:
    """Outputs ``start .. start + count - 1`` of SplitMix64 begun at ``state``, ``[count] uint64``.

    Steele, Lea, Flood 2014, "Fast splittable pseudorandom number generators", the variant of
    java.util.SplittableRandom: output ``i`` depends on ``state + (i + 1) * gamma`` alone.
    """
    z = np.arange(start + 1, start + count + 1, dtype=np.uint64)
    z *= np.uint64(_GAMMA)
    z += np.uint64(state)
    z ^= z >> np.uint64(30)
    z *= _FIRST_MULTIPLIER
    z ^= z >> np.uint64(27)
    z *= _SECOND_MULTIPLIER
    z ^= z >> np.uint64(31)
    return z


class Stream:
    """A sequence of 64-bit words that a text names; word ``i`` can be had without those before it.

    Args:
        name: E.g. ``"opgym.synthetic/1/er/3/edges"``; the first 8 bytes of its sha256 are the state.
    """

    def __init__(self, name: str) -> None:
        self._state = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little")

    def words(self, count: int, start: int = 0) -> UInt64:
        """Words ``start .. start + count - 1``, ``[count] uint64``."""
        return split_mix(self._state, count, start)

    def happens(self, probability: float, count: int, start: int = 0) -> NDArray[np.bool_]:
        """Whether each of ``count`` independent events of this probability happens, ``[count] bool``."""
        return (self.words(count, start) >> np.uint64(11)) < np.uint64(int(probability * 2.0**53))

    def below(self, bound: ArrayLike, count: int, start: int = 0) -> Int64:
        """Whole numbers from 0 to ``bound - 1``, ``[count] int64``; ``bound``: 1 to 2^31, one or ``[count]``.

        A number is more likely than another by at most ``bound / 2^32`` of its probability.
        """
        high = self.words(count, start) >> np.uint64(32)
        return ((high * np.asarray(bound, np.uint64)) >> np.uint64(32)).astype(np.int64)

    def permutation(self, count: int) -> Int64:
        """A permutation of ``0 .. count - 1``, ``[count] int64``."""
        return np.argsort(self.words(count), kind="stable").astype(np.int64)

    def normal(self, count: int) -> Int64:
        """Standard normal numbers times 2^16, rounded, ``[count] int64``.

        The sum of 12 uniform numbers of 16 bits (Irwin-Hall): mean 0 and variance 1 to within 2^-32, no value
        beyond 6 standard deviations, kurtosis 2.9.
        """
        pieces = self.words(_PIECES // 4 * count).reshape(count, _PIECES // 4).view(np.uint16)
        total: Int64 = pieces.sum(axis=1, dtype=np.int64)
        total -= _PIECES * (2**NORMAL_BITS - 1) // 2
        return total

    def halves(self) -> Draws:
        """The words one after another, for algorithms that cannot be written as array operations."""
        return Draws(self)


class Draws:
    """Draws numbers one at a time from the upper halves of a stream's words."""

    def __init__(self, stream: Stream) -> None:
        self._next = self._upper_halves(stream).__next__

    @staticmethod
    def _upper_halves(stream: Stream) -> Iterator[int]:
        start = 0
        while True:
            yield from (stream.words(_BLOCK, start) >> np.uint64(32)).tolist()
            start += _BLOCK

    def below(self, bound: int) -> int:
        """A whole number from 0 to ``bound - 1``."""
        return self._next() * bound >> 32

    def happens(self, probability: float) -> bool:
        """Whether an event of this probability happens."""
        return self._next() < probability * 2.0**32
