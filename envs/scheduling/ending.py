"""What an episode came to: the same for a single environment and in a batch."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...outcome import Outcome
from .observation import Tables


def return_of(tables: Tables, outcome: Outcome) -> float:
    """What the rewards of an episode with this outcome sum to."""
    return 0.0 - outcome.value / tables.reference  # no negative zero


def final_info(tables: Tables, outcome: Outcome, op: NDArray[np.int32], peak_bytes: int) -> dict[str, Any]:
    """What is said at the end, beside what is always said.

    Args:
        tables: Of the problem.
        outcome: Of the order.
        op: The order, by the graph's index, ``[ops]``.
        peak_bytes: Its peak.
    """
    return {
        "outcome": outcome,
        "peak_bytes": peak_bytes,
        "resident_bytes": tables.problem.resident_bytes,
        # A tuple, as Gymnasium's vector environments stack arrays, and graphs differ in length.
        "order": tuple(op.tolist()),
    }
