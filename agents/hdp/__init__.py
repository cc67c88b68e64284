"""HDP: a grouper puts ops into groups, a placer puts the groups on devices, and both learn from what it is worth."""

from .hdp import Hdp

__all__ = ["Hdp"]
