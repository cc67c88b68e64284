"""Placeto: a policy that improves a placement, group after group, and generalises to other graphs."""

from .placeto import Placeto

__all__ = ["Placeto"]
