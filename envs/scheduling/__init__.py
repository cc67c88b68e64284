"""``OpScheduling-v0``: in which order one device runs its ops."""

from .env import OpSchedulingEnv
from .types import SchedulingState
from .vector import OpSchedulingVectorEnv

__all__ = ["OpSchedulingEnv", "OpSchedulingVectorEnv", "SchedulingState"]
