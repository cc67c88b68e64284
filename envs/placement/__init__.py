"""``GraphPlacement-v0``: which op runs on which device."""

from .env import GraphPlacementEnv
from .types import PlacementState
from .vector import GraphPlacementVectorEnv

__all__ = ["GraphPlacementEnv", "GraphPlacementVectorEnv", "PlacementState"]
