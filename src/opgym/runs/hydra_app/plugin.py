"""What launchers and sweepers share: how they become plugins of Hydra, and how they read its overrides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hydra.core.config_loader import ConfigLoader
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override

from ...errors import InvalidProblemError

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


def last_of_each(loader: ConfigLoader, arguments: Sequence[str]) -> list[Override]:
    """Overrides of a command line; of those of one key the last one counts."""
    parser = OverridesParser.create(config_loader=loader)
    return list({o.key_or_group: o for o in parser.parse_overrides(list(arguments))}.values())


def no_values(override: Override) -> InvalidProblemError:
    """The error for a sweep over nothing, which would run nothing and seem to be done."""
    return InvalidProblemError(f"{override.input_line}: a sweep over no values; nothing would run")


def target(class_name: str) -> str:
    """The name by which Hydra finds a class of ours."""
    return f"{NAMESPACE}.{class_name}"
