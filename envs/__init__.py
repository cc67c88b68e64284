"""The environments: problems, made steppable. ``import opgym`` registers them for ``gymnasium.make``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gymnasium.envs.registration import register, registry

if TYPE_CHECKING:
    from .placement import GraphPlacementEnv

__all__ = ["ENTRY_POINTS", "GraphPlacementEnv", "register_environments"]

#: Every environment, by id. An id's version goes up whenever its behaviour changes.
ENTRY_POINTS = {"GraphPlacement-v0": "opgym.envs.placement:GraphPlacementEnv"}


def register_environments() -> None:
    """Makes every environment known to ``gymnasium.make``; imports none of them."""
    for environment_id, entry_point in ENTRY_POINTS.items():
        if environment_id not in registry:
            register(id=environment_id, entry_point=entry_point)


def __getattr__(name: str) -> Any:
    # Environments load what they need (graphs, problems, METIS) when they are first used, not with `import
    # opgym`.
    if name == "GraphPlacementEnv":
        from .placement import GraphPlacementEnv

        return GraphPlacementEnv
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
