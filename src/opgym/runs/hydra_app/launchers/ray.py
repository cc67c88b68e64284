"""Jobs on a Ray cluster, or on a Ray of this machine that lives as long as the sweep."""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import signal
import sys
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ....errors import ExecutionFailedError, InvalidRunError, MissingExtraError
from ..application import Application
from ..plugin import target
from ..sweep import Job, Report, execute, one_line
from .base import SweepLauncher, require_positive


@dataclass
class RaySettings:
    """Where, and what each job needs.

    Attributes:
        address: Of a running cluster, whose machines share the folder of the sweep; ``None``: Ray is started on this
            machine, and ended with the sweep.
        num_cpus: Cores of this machine that Ray may use; ``None``: all.
        cpus_per_job: Cores that each job takes.
        gpus_per_job: GPUs that each job takes.
        retries: How often a job is started again, from its last checkpoint, when its process or machine died.
    """

    _target_: str = target("RayLauncher")
    address: str | None = None
    num_cpus: int | None = None
    cpus_per_job: float = 1.0
    gpus_per_job: float = 0.0
    retries: int = 1


class RayLauncher(SweepLauncher):
    """Jobs on Ray."""

    def __init__(
        self,
        address: str | None = None,
        num_cpus: int | None = None,
        cpus_per_job: float = 1.0,
        gpus_per_job: float = 0.0,
        retries: int = 1,
    ) -> None:
        require_positive("num_cpus", num_cpus)
        require_positive("cpus_per_job", cpus_per_job)
        if address is not None and num_cpus is not None:
            raise InvalidRunError(
                "hydra.launcher.num_cpus is about a Ray of this machine; address names another"
            )
        self._address, self._num_cpus = address, num_cpus
        self._needs: dict[str, Any] = {
            "num_cpus": cpus_per_job,
            "num_gpus": gpus_per_job,
            "max_retries": retries,
        }

    def _run(self, jobs: Sequence[Job]) -> Generator[Report]:
        # No statistics of use leave the machine, and nothing is asked of a network.
        os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        try:
            import ray
        except ImportError:
            raise MissingExtraError("hydra/launcher=ray needs Ray: pip install 'opgym[ray]'") from None
        folder = self._sweep.folder
        assert folder is not None
        ours = not ray.is_initialized()
        if ours:
            # Ray puts the current folder on the path of its workers, where a folder such as datasets/ would shadow
            # a package of that name: it is started in a folder without any modules.
            with contextlib.chdir(folder):
                start(ray, self._address, self._num_cpus)
        try:
            remote = ray.remote(**self._needs)(_execute)
            # Workers start in folders of their own.
            here, path = str(Path.cwd()), list(sys.path)
            waiting = {remote.remote(self._sweep.application, job, here, path): job for job in jobs}
            while waiting:
                done, _ = ray.wait(list(waiting), num_returns=1)
                for reference in done:
                    yield _report(ray, reference, waiting.pop(reference))
        finally:
            if ours:
                ray.shutdown()


def start(ray: Any, address: str | None, num_cpus: int | None) -> None:
    """Connects to a cluster, or starts a Ray of this machine that nobody else can reach.

    Raises:
        ExecutionFailedError: It does not start.
    """
    local: dict[str, Any] = {}
    if address is None:
        # A secret of its own, for this sweep alone, and not in a file of the home folder.
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
        # Jobs are what the machine is there for: without this every other process goes first.
        os.environ.setdefault("RAY_worker_niceness", "0")
        local = {"num_cpus": num_cpus, "include_dashboard": False, "_node_ip_address": "127.0.0.1"}
    # Ray says through its logger that it asks for the token.
    logging.getLogger("ray").setLevel(logging.ERROR)
    try:
        ray.init(
            address=address or "local",
            configure_logging=False,
            logging_level=logging.ERROR,
            log_to_driver=False,
            **local,
        )
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise ExecutionFailedError(f"Ray did not start ({one_line(error)})") from None


def in_worker(folder: str, path: list[str]) -> None:
    """Makes a worker look like the process that asks: its path for modules, and its current folder."""
    sys.path[:] = path
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that asks
    if Path(folder).is_dir():  # on another machine it may not exist
        os.chdir(folder)


def _execute(application: Application[Any], job: Job, folder: str, path: list[str]) -> Report:
    in_worker(folder, path)
    return execute(application, job)


def _report(ray: Any, reference: Any, job: Job) -> Report:
    try:
        report: Report = ray.get(reference)
    except ray.exceptions.RayError as error:
        return Report(job.number, error=f"its process died: {one_line(error)[:200]}")
    return report
