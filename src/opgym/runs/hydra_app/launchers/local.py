"""Jobs on the cores of this machine: joblib hands them out, each of its threads to a process of its own.

joblib's own processes end all together when one of them is killed, and the finished ones of the batch are lost with
it; here a process that dies takes its job with it and nothing else.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Generator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any

from ....errors import MissingExtraError
from ...parallel import no_interrupts, prepare_worker
from ..application import Application
from ..plugin import target
from ..sweep import Job, Report, execute
from .base import SweepLauncher, require_positive


@dataclass
class JoblibSettings:
    """How many jobs at once.

    Attributes:
        n_jobs: Processes; ``None``: as many as there are cores. Never more than cores.
    """

    _target_: str = target("JoblibLauncher")
    n_jobs: int | None = None


class JoblibLauncher(SweepLauncher):
    """Jobs on the cores of this machine."""

    def __init__(self, n_jobs: int | None = None) -> None:
        require_positive("n_jobs", n_jobs)
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        self._processes = min(n_jobs or cores, cores)

    def _run(self, jobs: Sequence[Job]) -> Generator[Report]:
        try:
            from joblib import Parallel, delayed
        except ImportError:
            raise MissingExtraError(
                "a sweep on the cores of this machine needs joblib: pip install 'opgym[train]'"
            ) from None
        pool = _Processes(self._sweep.application)
        try:
            parallel = Parallel(
                n_jobs=min(self._processes, len(jobs)),
                backend="threading",
                return_as="generator_unordered",
                batch_size=1,
                pre_dispatch="n_jobs",
            )
            yield from parallel(delayed(pool.run)(job) for job in jobs)
        finally:
            pool.close()


class _Processes:
    """One process for each thread that asks; after its death a new one."""

    def __init__(self, application: Application[Any]) -> None:
        self._application = application
        self._lock = threading.Lock()
        self._closed = False
        self._free: list[ProcessPoolExecutor] = []
        self._all: set[ProcessPoolExecutor] = set()

    def run(self, job: Job) -> Report:
        """Does a job in a process."""
        with self._lock:
            if self._closed:
                return Report(job.number, error="not started: the sweep was ended")
            with no_interrupts():
                process, future = self._start(job)
        try:
            report = future.result()
        except BrokenProcessPool:
            with self._lock:
                self._drop(process)
            return Report(
                job.number, error="its process died (killed from outside, out of memory, or crashed)"
            )
        with self._lock:
            self._free.append(process)
        return report

    def _start(self, job: Job) -> tuple[ProcessPoolExecutor, Future[Report]]:
        """Gives a job to a free process, or to a new one where there is none, or where all died while they waited."""
        while self._free:
            process = self._free.pop()
            try:
                return process, process.submit(execute, self._application, job)
            except BrokenProcessPool:
                self._drop(process)
        # spawn: a fork would copy locks of threads that do not exist in the child.
        process = ProcessPoolExecutor(1, get_context("spawn"), prepare_worker)
        self._all.add(process)
        return process, process.submit(execute, self._application, job)

    def _drop(self, process: ProcessPoolExecutor) -> None:
        self._all.discard(process)
        process.shutdown(wait=False)

    def close(self) -> None:
        """Ends all processes, also those that work."""
        with self._lock:
            self._closed = True
            for executor in self._all:
                for process in list((executor._processes or {}).values()):
                    process.kill()
                executor.shutdown(wait=False, cancel_futures=True)
