"""GDP: one policy that places every op of a graph in one forward pass, and generalises to others."""

from .gdp import Gdp

__all__ = ["Gdp"]
