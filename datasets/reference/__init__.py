"""Values that others are measured against, stored with the solutions that reach them."""

from .best_known import BestKnown, Known, packaged_best_known

__all__ = ["BestKnown", "Known", "packaged_best_known"]
