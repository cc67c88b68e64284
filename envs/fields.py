"""The numbers of an observation: their names, bounds and meanings, and the boxes made of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

Float32 = NDArray[np.float32]


class Field(NamedTuple):
    """One number of an observation."""

    name: str
    low: float
    high: float
    unit: str
    meaning: str


def bounds(columns: tuple[Field, ...]) -> tuple[Float32, Float32]:
    """Lowest and highest values of fields, each ``[fields] float32``."""
    return np.array([f.low for f in columns], np.float32), np.array([f.high for f in columns], np.float32)


def box(shape: tuple[int, ...], columns: tuple[Field, ...]) -> spaces.Box:
    """A float32 box ``[..., fields]`` with the bounds of its fields."""
    low, high = (np.broadcast_to(b, (*shape, len(columns))) for b in bounds(columns))
    return spaces.Box(low, high, dtype=np.float32)


def clipped(values: NDArray[np.float64], columns: tuple[Field, ...]) -> Float32:
    """Values ``[..., fields]`` within the bounds of their fields, as float32."""
    low, high = np.array([f.low for f in columns]), np.array([f.high for f in columns])
    return np.clip(values, low, high).astype(np.float32)
