"""How environments read actions: an illegal one never raises and never corrupts the state."""

from __future__ import annotations

from typing import Any

import numpy as np


def read_choice(action: Any) -> int | None:
    """Reads one choice.

    Integers of any kind count, numpy's too, and so does an integer array that holds exactly one (a policy
    on one environment returns such). Floats, even whole ones, booleans, ``None`` and everything else do
    not.

    Args:
        action: What was given to ``step``.

    Returns:
        The integer, or ``None`` if there is none.
    """
    if type(action) is int:
        return action
    if isinstance(action, np.ndarray) and action.size == 1:
        action = action.reshape(())[()]
    if isinstance(action, (int, np.integer)) and not isinstance(action, (bool, np.bool_)):
        return int(action)
    return None


def read_choices(action: Any, length: int) -> list[int | None]:
    """Reads a vector of choices.

    Args:
        action: What was given to ``step``: a sequence or array of integers, ``[length]``.
        length: How many choices are expected.

    Returns:
        Each choice, or ``None`` where it is no integer; all ``None`` if the whole has another length or kind.
    """
    if isinstance(action, np.ndarray):
        if action.shape != (length,):
            return [None] * length
        if np.issubdtype(action.dtype, np.integer):
            values: list[int | None] = action.tolist()
            return values
    if isinstance(action, (list, tuple, np.ndarray)) and len(action) == length:
        return [read_choice(item) for item in action]
    return [None] * length
