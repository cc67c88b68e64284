"""Generators as plain numbers, so that a checkpoint can hold them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidSolutionError

#: Words that hold a PCG64 generator: its state and its increment (two each), and half a word that it kept.
GENERATOR_WORDS = 6


def words_of(generator: np.random.Generator) -> list[int]:
    """A PCG64 generator in words of 64 bits."""
    state = generator.bit_generator.state
    low = 2**64 - 1
    words = [part for name in ("state", "inc") for part in divmod(state["state"][name], low + 1)]
    return [*words, state["has_uint32"], state["uinteger"]]


def generator_of(words: NDArray[np.uint64]) -> np.random.Generator:
    """The generator that :func:`words_of` gave.

    Raises:
        InvalidSolutionError: No generator is in such a state.
    """
    state_high, state_low, inc_high, inc_low, has_half, half = words.tolist()
    if inc_low % 2 == 0 or has_half > 1 or half >= 2**32:
        raise InvalidSolutionError(
            f"{words.tolist()} is no state of a PCG64 generator: its increment is odd, its flag 0 or 1, and its half "
            "word below 2^32; what was saved is damaged"
        )
    bits = np.random.PCG64()
    bits.state = {
        "bit_generator": "PCG64",
        "state": {"state": state_high << 64 | state_low, "inc": inc_high << 64 | inc_low},
        "has_uint32": has_half,
        "uinteger": half,
    }
    return np.random.Generator(bits)
