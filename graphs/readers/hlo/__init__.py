"""HLO, the text that XLA prints of a program: ``jax.jit(f).lower(...).compile().as_text()``."""

from .reader import read_hlo, read_hlo_text

__all__ = ["read_hlo", "read_hlo_text"]
