"""The front door of the C++ simulator: semantics in docs/simulator.md."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _core
from ..errors import InvalidCostError, InvalidSolutionError
from .cluster import CHANNELS, Cluster
from .costs import CostModel, RooflineCost
from .graph import Graph

Int64 = NDArray[np.int64]
