"""What Hydra is told beside the files of ``conf/``: schemas, and groups whose members a registry knows."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

from .application import Application

#: The package that holds the files of settings.
CONFIGURATION = "opgym.conf"
_PROVIDER = "opgym"


def register(application: Application[Any]) -> None:
    """Makes the schema of an application, the agents, suites and launchers known to Hydra."""
    from hydra.core.config_store import ConfigStore

    ConfigStore.instance().store(
        name=f"{application.name}_schema", node=application.schema, provider=_PROVIDER
    )
    _register_names()


@cache
def _register_names() -> None:
    from hydra.core.config_store import ConfigStore
    from hydra.core.plugins import Plugins

    from ... import datasets
    from ...agents.registry import names
    from ...problems import PlacementProblem, SchedulingProblem
    from . import grid_sweeper, launchers, optuna_sweeper

    store = ConfigStore.instance()
    stored = files(CONFIGURATION).joinpath("agent")
    for agent in sorted({*names(PlacementProblem), *names(SchedulingProblem)}):
        if stored.joinpath(f"{agent}.yaml").is_file():
            continue  # settings of that name
        store.store(group="agent", name=agent, node={"solver": agent, "options": {}}, provider=_PROVIDER)
    for suite in datasets.suite_names():
        store.store(group="suite", name=suite, node={"name": suite}, provider=_PROVIDER)
    plugins = Plugins.instance()  # the first use finds installed plugins; ours replace those of the same name
    for kind in (*launchers.PLUGINS, grid_sweeper.PLUGIN, optuna_sweeper.PLUGIN):
        plugins.register(kind.plugin)
        # Hydra makes plugins of this namespace alone.
        plugins.class_name_to_class[kind.target] = kind.plugin
        store.store(group=kind.group, name=kind.name, node=kind.settings, provider=_PROVIDER)
