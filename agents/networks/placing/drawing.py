"""Drawing of devices by their probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def drawn(probability: NDArray[np.floating[Any]], uniform: NDArray[np.floating[Any]]) -> NDArray[np.int64]:
    """Draws a device for each row of probabilities, ``[..., rows] int64``; never one without probability.

    Args:
        probability: ``[rows, devices]``; rows need not sum to exactly 1.
        uniform: Random numbers in [0, 1), ``[..., rows]``.
    """
    rising = probability.cumsum(axis=1)
    reached = rising <= uniform[..., None] * rising[:, -1:]
    chosen: NDArray[np.int64] = reached.sum(axis=-1)
    possible: NDArray[np.int64] = (probability > 0).cumsum(axis=1).argmax(axis=1)
    return np.minimum(chosen, possible)  # rounding may have drawn what has no probability
