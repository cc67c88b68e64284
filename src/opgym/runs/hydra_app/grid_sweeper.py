"""Every combination of the values with commas, in one batch; the launcher checks the jobs."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from hydra.core.override_parser.types import Override
from hydra.core.plugins import Plugins
from hydra.plugins.sweeper import Sweeper
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig

from ...errors import InvalidProblemError
from .plugin import PluginKind, last_of_each, no_values, target


@dataclass
class GridSettings:
    """There is nothing to set."""

    _target_: str = target("GridSweeper")


class GridSweeper(Sweeper):
    """Every combination of the values with commas."""

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """Takes what Hydra knows, and makes the launcher."""
        self._loader = hydra_context.config_loader
        self._launcher = Plugins.instance().instantiate_launcher(
            hydra_context=hydra_context, task_function=task_function, config=config
        )

    def sweep(self, arguments: list[str]) -> None:
        """Runs all jobs."""
        overrides = last_of_each(self._loader, arguments)
        jobs = [list(job) for job in itertools.product(*map(_values, overrides))]
        self._launcher.launch(jobs, initial_job_idx=0)


def _values(override: Override) -> list[str]:
    """An override for each value of a sweep.

    Raises:
        InvalidProblemError: It is a range without members.
    """
    key = override.get_key_element()
    if not override.is_sweep_override():
        return [f"{key}={override.get_value_element_as_str()}"]
    if not override.is_discrete_sweep():
        raise InvalidProblemError(
            f"{override.input_line}: an interval is for hydra/sweeper=optuna; give values with commas"
        )
    values = [f"{key}={value}" for value in override.sweep_string_iterator()]
    if not values:
        raise no_values(override)
    return values


PLUGIN = PluginKind("hydra/sweeper", "basic", GridSweeper, GridSettings)
