"""How a launcher or a sweeper of this package becomes one of Hydra's plugins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

#: Hydra makes plugins whose names begin like this, and no others.
NAMESPACE = "hydra_plugins.opgym"


@dataclass(frozen=True)
class PluginKind:
    """A plugin and its settings.

    Attributes:
        group: ``"hydra/launcher"`` or ``"hydra/sweeper"``.
        name: By which it is chosen.
        plugin: Its class.
        settings: Dataclass of its arguments; ``_target_`` is :attr:`target`.
    """

    group: str
    name: str
    plugin: type[Any]
    settings: type[Any]

    @property
    def target(self) -> str:
        """The name by which Hydra finds the class."""
        return target(self.plugin.__name__)


def target(class_name: str) -> str:
    """The name by which Hydra finds a class of ours."""
    return f"{NAMESPACE}.{class_name}"
