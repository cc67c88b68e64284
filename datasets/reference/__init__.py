"""Values that others are measured against, stored with the solutions that reach them."""

from .best_known import PACKAGED, BestKnown, Known, packaged_best_known

__all__ = ["PACKAGED", "BestKnown", "Known", "packaged_best_known"]
