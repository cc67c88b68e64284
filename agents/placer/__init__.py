"""opgym's own placer: a policy that plays ``GraphPlacement-v0`` on any graph and any cluster."""

from __future__ import annotations

from .gdp_plus import GdpPlus
from .ladder import GdpPlusAnneal, GdpPlusFinetune, GdpPlusSamples

__all__ = ["GdpPlus", "GdpPlusAnneal", "GdpPlusFinetune", "GdpPlusSamples"]
