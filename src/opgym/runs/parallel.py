"""Independent tasks on several processes; results come in the order of the tasks, whatever finishes first."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context, parent_process
from typing import TypeVar

from ..errors import InvalidProblemError

_Task = TypeVar("_Task")
_Result = TypeVar("_Result")


def in_order(work: Callable[[_Task], _Result], tasks: Sequence[_Task], workers: int) -> Iterator[_Result]:
    """Results of ``work`` on each task, in the order of the tasks.

    Args:
        work: A function of a module (processes find it by name).
        tasks: What to work on.
        workers: Processes; with 1 the work is done in this one.

    Raises:
        InvalidProblemError: Less than one worker.
    """
    if workers < 1:
        raise InvalidProblemError(f"{workers} workers; expected at least 1")
    if workers == 1 or len(tasks) < 2:
        yield from map(work, tasks)
        return
    # spawn: a fork would copy locks of threads that do not exist in the child.
    pool = ProcessPoolExecutor(min(workers, len(tasks)), get_context("spawn"), prepare_worker)
    try:
        with no_interrupts():
            futures = [pool.submit(work, task) for task in tasks]
        for future in futures:
            yield future.result()
    finally:  # also when the caller stops reading: what runs is finished, the rest is dropped
        pool.shutdown(cancel_futures=True)


@contextmanager
def no_interrupts() -> Iterator[None]:
    """Puts Ctrl-C off; processes that start meanwhile never hear of it, not even while they still import."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def prepare_worker() -> None:
    """Ctrl-C is for the parent, which then ends its workers; and none outlives a parent that was killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_follow_parent, daemon=True).start()


def _follow_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
