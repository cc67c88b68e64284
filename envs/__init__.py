"""The environments: problems, made steppable. ``import opgym`` registers them for ``gymnasium.make``."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gymnasium.envs.registration import register, registry

if TYPE_CHECKING:
    from .placement import GraphPlacementEnv, GraphPlacementVectorEnv
    from .scheduling import OpSchedulingEnv, OpSchedulingVectorEnv

__all__ = [
    "ENTRY_POINTS",
    "PLACEMENT",
    "SCHEDULING",
    "VECTOR_ENTRY_POINTS",
    "GraphPlacementEnv",
    "GraphPlacementVectorEnv",
    "OpSchedulingEnv",
    "OpSchedulingVectorEnv",
    "register_environments",
]

#: Ids. An id's version goes up whenever its behaviour changes.
PLACEMENT, SCHEDULING = "GraphPlacement-v0", "OpScheduling-v0"

#: Every environment, by id.
ENTRY_POINTS = {
    PLACEMENT: "opgym.envs.placement:GraphPlacementEnv",
    SCHEDULING: "opgym.envs.scheduling:OpSchedulingEnv",
}

#: Their native batches, for ``gymnasium.make_vec``.
VECTOR_ENTRY_POINTS = {
    PLACEMENT: "opgym.envs.placement:GraphPlacementVectorEnv",
    SCHEDULING: "opgym.envs.scheduling:OpSchedulingVectorEnv",
}


def register_environments() -> None:
    """Makes every environment known to ``gymnasium.make`` and ``make_vec``; imports none of them."""
    for environment_id, entry_point in ENTRY_POINTS.items():
        if environment_id not in registry:
            vector_entry_point = VECTOR_ENTRY_POINTS[environment_id]
            register(id=environment_id, entry_point=entry_point, vector_entry_point=vector_entry_point)


def __getattr__(name: str) -> Any:
    # Environments load what they need (graphs, problems, METIS) when they are first used, not with `import
    # opgym`.
    for entry_point in (*ENTRY_POINTS.values(), *VECTOR_ENTRY_POINTS.values()):
        module, _, class_name = entry_point.partition(":")
        if name == class_name:
            return getattr(import_module(module), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
