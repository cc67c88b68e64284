"""Jobs of a cluster that Slurm runs, through submitit."""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ....errors import ExecutionFailedError, MissingExtraError, unknown_id
from ..application import Application
from ..plugin import target
from ..sweep import Job, Report, execute, one_line
from .base import SweepLauncher, require_positive

_EXECUTORS = ("slurm", "local", "debug")
_LOOK_S = 1.0


@dataclass
class SubmititSettings:
    """What to ask Slurm for.

    Attributes:
        executor: ``"slurm"``; ``"local"``: processes of this machine; ``"debug"``: this process.
        partition: Of Slurm; ``None``: its default.
        timeout_min: Minutes that a job may take; it is started again from its last checkpoint until it is done.
        cpus_per_task: Cores of each job.
        gpus_per_node: GPUs of each job.
        mem_gb: Memory of each job; ``None``: the default of Slurm.
        array_parallelism: Jobs at the same time.
        max_requeues: How often a job that ran out of time, or was pre-empted, is started again.
        additional: Further parameters of ``sbatch``, by name.
    """

    _target_: str = target("SubmititLauncher")
    executor: str = "slurm"
    partition: str | None = None
    timeout_min: int = 240
    cpus_per_task: int = 1
    gpus_per_node: int = 0
    mem_gb: float | None = None
    array_parallelism: int = 64
    max_requeues: int = 20
    additional: dict[str, Any] = field(default_factory=dict)


class SubmititLauncher(SweepLauncher):
    """Jobs of a cluster that Slurm runs."""

    def __init__(self, executor: str = "slurm", max_requeues: int = 20, **parameters: Any) -> None:
        if executor not in _EXECUTORS:
            raise unknown_id("executor of submitit", executor, list(_EXECUTORS))
        for name in ("timeout_min", "cpus_per_task", "array_parallelism"):
            require_positive(name, parameters.get(name))
        self._executor, self._requeues, self._parameters = executor, max_requeues, parameters

    def _run(self, jobs: Sequence[Job]) -> Generator[Report]:
        try:
            import submitit
        except ImportError:
            raise MissingExtraError(
                "hydra/launcher=submitit needs submitit: pip install 'opgym[train]'"
            ) from None
        assert self._sweep.folder is not None
        logs = self._sweep.folder / "submitit"
        slurm = {"slurm_max_num_timeout": self._requeues} if self._executor == "slurm" else {}
        try:
            executor = submitit.AutoExecutor(logs, cluster=self._executor, **slurm)
        except RuntimeError as error:
            raise ExecutionFailedError(
                f"submitit found no Slurm here ({error}); try executor=local"
            ) from None
        executor.update_parameters(**self._request())
        with executor.batch():
            submitted = [executor.submit(_Work(self._sweep.application, job)) for job in jobs]
        waiting = dict(zip(submitted, jobs, strict=True))
        try:
            while waiting:
                done = [handle for handle in waiting if self._executor == "debug" or handle.done()]
                for handle in done:
                    yield _report(handle, waiting.pop(handle))
                if waiting and not done:
                    time.sleep(_LOOK_S)
        except (KeyboardInterrupt, GeneratorExit):
            for handle in waiting:
                handle.cancel()
            raise

    def _request(self) -> dict[str, Any]:
        given = {key: value for key, value in self._parameters.items() if value is not None}
        request: dict[str, Any] = {
            key: given[key]
            for key in ("timeout_min", "cpus_per_task", "gpus_per_node", "mem_gb")
            if key in given
        }
        request["name"] = f"opgym-{self._sweep.application.name}"
        if self._executor == "slurm":
            request["slurm_array_parallelism"] = given.get("array_parallelism")
            if "partition" in given:
                request["slurm_partition"] = given["partition"]
            if given.get("additional"):
                request["slurm_additional_parameters"] = dict(given["additional"])
        return request


@dataclass(frozen=True)
class _Work:
    """A job as submitit runs it; out of time, it asks to be started again, and goes on from its last checkpoint."""

    application: Application[Any]
    job: Job

    def __call__(self) -> Report:
        return execute(self.application, self.job)

    def checkpoint(self) -> Any:
        import submitit

        return submitit.helpers.DelayedSubmission(self)


def _report(handle: Any, job: Job) -> Report:
    try:
        report: Report = handle.result()
    except Exception as error:
        return Report(job.number, error=f"its job {handle.job_id} failed: {one_line(error)[:200]}")
    return report
