"""``opgym train`` as an application of Hydra."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...errors import InvalidProblemError
from ..hydra_app import Application
from ..run_folder import Progress
from .config import OUTSIDE, TrainConfig


class TrainApplication(Application[TrainConfig]):
    """Trains an agent."""

    name = "train"
    schema = TrainConfig
    open_keys = ("agent.options", "env.options", "logger")
    several = ("logger",)
    outside = OUTSIDE

    def read(self, settings: Mapping[str, Any]) -> TrainConfig:
        """The settings, from plain data."""
        return TrainConfig.from_json(settings)

    def folder_name(self, settings: TrainConfig) -> str:
        """Agent, environment (but with several suites), problem, seed, and a digest."""
        return settings.folder_name

    def prepare(self, settings: TrainConfig, folder: Path) -> Progress:
        """Makes the learner and the problems, and looks at the folder."""
        from .training import make_learner, pose_for, require_place

        learner = make_learner(settings)
        _require_loggers(settings.logger)
        progress = require_place(settings, folder)
        if progress is not Progress.FINISHED:
            pose_for(learner, settings)
        return progress

    def run(self, settings: TrainConfig, folder: Path) -> dict[str, Any]:
        """Trains."""
        from .training import train

        return train(settings, folder).to_json()

    def result(self, folder: Path) -> dict[str, Any]:
        """The result of a finished training."""
        from .training import TrainResult

        return TrainResult.load(folder).to_json()

    def in_sweep(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Many jobs at once draw no progress bars."""
        loggers = {name: options for name, options in settings["logger"].items() if name != "console"}
        return {**settings, "logger": loggers}


def _require_loggers(loggers: Mapping[str, Mapping[str, Any] | None]) -> None:
    """Refuses a logger or an option that does not exist.

    Raises:
        OpgymError: With the nearest ones, or the extra that brings a logger.
    """
    from ..tracking import check_trackers

    check_trackers(list(loggers), loggers.get("wandb"))
    for name, options in loggers.items():
        if options and name != "wandb":
            raise InvalidProblemError(f"logger.{name} has no options; got {', '.join(options)}")
