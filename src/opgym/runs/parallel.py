"""Independent tasks on several processes: results in the order of the tasks, or as they finish."""

from __future__ import annotations

import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
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
    _require_workers(workers)
    if workers == 1 or len(tasks) < 2:
        yield from map(work, tasks)
        return
    pool = _pool(min(workers, len(tasks)))
    try:
        with no_interrupts():
            futures = [pool.submit(work, task) for task in tasks]
        for future in futures:
            yield future.result()
    finally:  # also when the caller stops reading: what runs is finished, the rest is dropped
        pool.shutdown(cancel_futures=True)


@dataclass(frozen=True)
class Died:
    """Stands for the result of a task whose process ended in the middle of it."""

    reason: str = "its process died: out of memory, killed from outside, or a crash in native code"


def as_they_finish(
    work: Callable[[_Task], _Result],
    tasks: Sequence[_Task],
    workers: int,
    follow_up: Callable[[_Task, _Result], Sequence[_Task]] | None = None,
) -> Iterator[tuple[_Task, _Result | Died]]:
    """Tasks with their results, whatever finishes first; a task that kills its process costs no other its result.

    Args:
        work: A function of a module (processes find it by name).
        tasks: What to work on.
        workers: Processes; with 1 the work is done in this one, in order, and nothing protects it.
        follow_up: Says what else is to be done now that the result of a task is known.

    Raises:
        InvalidProblemError: Less than one worker.
    """
    _require_workers(workers)
    more = follow_up or (lambda task, result: ())
    if workers == 1:
        todo = deque(tasks)
        while todo:
            task = todo.popleft()
            result = work(task)
            todo.extend(more(task, result))
            yield task, result
        return
    todo_next = list(tasks)
    while todo_next:
        pool = _pool(workers)
        lost: list[_Task] = []  # taken up by a pool that broke
        left: list[_Task] = []  # refused by it
        try:
            with no_interrupts():
                running = _submitted(pool, work, todo_next, left)
            while running:
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                # In the order of submission, which is that in which processes took them up.
                for future in [future for future in running if future in done]:
                    task = running.pop(future)
                    try:
                        result = future.result()
                    except BrokenProcessPool:
                        lost.append(task)
                        continue
                    running |= _submitted(pool, work, more(task, result), left)
                    yield task, result
        finally:  # also when the caller stops reading: what runs is finished, the rest is dropped
            pool.shutdown(cancel_futures=True)
        # One of those that ran when the pool broke is to blame: each gets a process of its own.
        suspects, todo_next = lost[:workers], lost[workers:] + left
        for task in suspects:
            outcome = _alone(work, task)
            if not isinstance(outcome, Died):
                todo_next.extend(more(task, outcome))
            yield task, outcome


def _submitted(
    pool: ProcessPoolExecutor,
    work: Callable[[_Task], _Result],
    tasks: Sequence[_Task],
    left: list[_Task],
) -> dict[Future[_Result], _Task]:
    """Submits tasks; those that a pool takes no more, as it has just broken, are left."""
    futures = {}
    for task in tasks:
        try:
            futures[pool.submit(work, task)] = task
        except BrokenProcessPool:
            left.append(task)
    return futures


def _alone(work: Callable[[_Task], _Result], task: _Task) -> _Result | Died:
    """The result of a task in a process of its own."""
    pool = _pool(1)
    try:
        with no_interrupts():
            future = pool.submit(work, task)
        return future.result()
    except BrokenProcessPool:
        return Died()
    finally:
        pool.shutdown(cancel_futures=True)


def _require_workers(workers: int) -> None:
    if workers < 1:
        raise InvalidProblemError(f"{workers} workers; expected at least 1")


def _pool(workers: int) -> ProcessPoolExecutor:
    # spawn: a fork would copy locks of threads that do not exist in the child.
    return ProcessPoolExecutor(workers, get_context("spawn"), prepare_worker)


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
