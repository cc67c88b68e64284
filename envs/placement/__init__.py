"""``GraphPlacement-v0``: which op runs on which device."""

from .env import GraphPlacementEnv
from .types import PlacementState

__all__ = ["GraphPlacementEnv", "PlacementState"]
