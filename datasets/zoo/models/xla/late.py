"""JAX under its usual names, loaded when one of them is first used: definitions can be listed without it."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__all__ = ["jax", "jnp", "lax", "nn"]

if TYPE_CHECKING:
    import jax
    from jax import lax, nn
    from jax import numpy as jnp
else:

    class _Late:
        """A module that is imported when something of it is asked for."""

        def __init__(self, name: str) -> None:
            self._name = name

        def __getattr__(self, attribute: str) -> Any:
            return getattr(importlib.import_module(self._name), attribute)

    jax, jnp, lax, nn = map(_Late, ("jax", "jax.numpy", "jax.lax", "jax.nn"))
