"""What all launchers share: jobs are made and checked before any starts, and each is reported as it ends."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Generator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from hydra.core.utils import JobReturn, JobStatus
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, open_dict

from ....errors import InvalidRunError
from ...run_folder import Progress
from ..arguments import refuse_composed_targets
from ..composed import plain_settings
from ..mistakes import composing
from ..sweep import Job, Report, Sweep, skip_finished


class SweepLauncher(Launcher):
    """Runs the jobs of a sweep; subclasses say where.

    A job that fails is reported at once and its value is infinite; the others are not touched by it.
    """

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """Takes what Hydra knows."""
        self._context, self._config = hydra_context, config
        assert isinstance(task_function, Sweep)
        self._sweep: Sweep = task_function

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        """Runs jobs to their end.

        Raises:
            OpgymError: A job has wrong settings; none was started.
        """
        folder = Path(str(self._config.hydra.sweep.dir))
        configs = [self._compose(number, job) for number, job in enumerate(job_overrides, initial_job_idx)]
        jobs = [
            self._job(number, overrides, config, folder)
            for number, (overrides, config) in enumerate(
                zip(job_overrides, configs, strict=True), initial_job_idx
            )
        ]
        _refuse_twins(jobs)
        progress = {job.number: self._prepare(job) for job in jobs}
        folder.mkdir(parents=True, exist_ok=True)
        self._sweep.begin(folder, jobs)
        left = skip_finished(self._sweep, jobs, progress)
        if left:
            with closing(self._run(left)) as reports:  # whatever happens here, what runs is ended
                for report in reports:
                    self._sweep.end(report)
        return [
            self._returned(config, job, self._sweep.row(job.number).score)
            for config, job in zip(configs, jobs, strict=True)
        ]

    def check(self, job_overrides: Sequence[Sequence[str]]) -> None:
        """Refuses jobs as :meth:`launch` would; makes nothing.

        Raises:
            OpgymError: A job has wrong settings.
        """
        folder = Path(str(self._config.hydra.sweep.dir))
        for number, overrides in enumerate(job_overrides):
            self._prepare(self._job(number, overrides, self._compose(number, overrides), folder))

    @abstractmethod
    def _run(self, jobs: Sequence[Job]) -> Generator[Report]:
        """Runs jobs; yields the report of each as it ends."""

    def _prepare(self, job: Job) -> Progress:
        application = self._sweep.application
        return application.prepare(application.settings(job.settings), Path(job.folder))

    def _compose(self, number: int, overrides: Sequence[str]) -> DictConfig:
        with composing():
            config = self._context.config_loader.load_sweep_config(self._config, list(overrides))
        with open_dict(config):
            config.hydra.job.id = f"{config.hydra.job.name}_{number}"
            config.hydra.job.num = number
        refuse_composed_targets(config)
        return config

    def _job(self, number: int, overrides: Sequence[str], config: DictConfig, folder: Path) -> Job:
        return Job(
            number,
            tuple(overrides),
            self._sweep.application.in_sweep(plain_settings(config)),
            str((folder / str(config.hydra.sweep.subdir)).absolute()),
        )

    def _returned(self, config: DictConfig, job: Job, score: float | None) -> JobReturn:
        return JobReturn(
            overrides=list(job.overrides),
            cfg=config,
            hydra_cfg=config,
            working_dir=job.folder,
            task_name=self._sweep.application.name,
            status=JobStatus.COMPLETED,  # a sweeper goes on whatever became of one job; the record knows of failures
            _return_value=math.inf if score is None else score,
        )


def _refuse_twins(jobs: Sequence[Job]) -> None:
    seen: dict[str, Job] = {}
    for job in jobs:
        twin = seen.setdefault(job.folder, job)
        if twin is not job:
            raise InvalidRunError(
                f"two jobs of the sweep are the same run, in {job.folder}: {' '.join(twin.overrides)} and "
                f"{' '.join(job.overrides)}; leave one out"
            )


def require_positive(name: str, value: Any) -> None:
    """Refuses a setting of a launcher that is no positive number.

    Raises:
        InvalidRunError: It is none.
    """
    if value is not None and not value > 0:
        raise InvalidRunError(f"hydra.launcher.{name} = {value}; expected more than 0")
