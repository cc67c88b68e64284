"""Starts the two processes, tells them what to run, and ends them whatever happens."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from multiprocessing.shared_memory import SharedMemory
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....errors import ExecutionFailedError
from ...parallel import no_interrupts
from .plan import DEVICES, LinkTimes, Plan
from .task import Task
from .worker import Seat, places, serve

#: Blocks by which the link is measured, in bytes, and how often each is sent.
_BLOCKS = tuple(4**power for power in range(5, 12))
_SENDINGS = 40
#: For importing torch and recording the step; for ending, and for a message about the other one to arrive.
_START_S, _ENDING_S = 120.0, 5.0


@dataclass(frozen=True)
class StepTimes:
    """How long a step really took; one entry per repetition.

    Attributes:
        makespan_ns: From the common start to the last end, ``[repetitions] int64``.
        ops_ns: Time in ops on each device, ``[repetitions, devices] int64``.
        sends_ns: Time in sends, likewise.
        waiting_ns: Time of waiting for the other process, likewise.
    """

    makespan_ns: NDArray[np.int64]
    ops_ns: NDArray[np.int64]
    sends_ns: NDArray[np.int64]
    waiting_ns: NDArray[np.int64]


def usable_cores() -> list[int]:
    """The cores that this process may use.

    Raises:
        ExecutionFailedError: Less than two, or a system on which processes cannot be bound to cores.
    """
    if not hasattr(os, "sched_getaffinity"):
        raise ExecutionFailedError("processes cannot be bound to cores on this system; run it on Linux")
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < DEVICES:
        raise ExecutionFailedError(
            f"{len(cores)} core may be used; two processes need two: give more to this process or container"
        )
    return cores


class Pair:
    """Two processes, each bound to a core, that run steps of one task; a context manager.

    Args:
        task: The step.
        cores: One for each.
        patience_s: How long the two wait for each other, and this process for an answer, before giving up.

    Raises:
        ExecutionFailedError: A process fails, dies or hangs, here and in all methods.
    """

    def __init__(self, task: Task, cores: Sequence[int], *, patience_s: float = 120.0) -> None:
        self._patience_s = patience_s
        self._processes: list[SpawnProcess] = []
        self._pipes: list[Connection[Any, Any]] = []
        # Pages that nothing is sent through are never touched.
        self._memory = SharedMemory(
            create=True, size=max(places(task.graph.tensor_bytes.tolist())[-1], _BLOCKS[-1])
        )
        try:
            self._start(task, cores)
            self._answers("start", _START_S)
        except BaseException:
            self.close()
            raise
        finally:
            # Both have it open now, or are gone: without a name nothing can be left behind.
            self._memory.close()
            self._memory.unlink()

    def _start(self, task: Task, cores: Sequence[int]) -> None:
        context = get_context("spawn")  # a fork would copy locks of threads that do not exist in the child
        arrived = context.Semaphore(0), context.Semaphore(0)
        here = context.Semaphore(0), context.Semaphore(0)
        self._semaphores = arrived, here  # whose names go when nobody holds them here any more
        with no_interrupts():
            for device in range(DEVICES):
                ours, theirs = context.Pipe()
                self._pipes.append(ours)
                seat = Seat(device, cores[device], self._memory.name, arrived, here, self._patience_s)
                process = context.Process(target=serve, args=(seat, task, theirs), daemon=True)
                process.start()
                theirs.close()
                self._processes.append(process)

    def __enter__(self) -> Pair:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends both processes."""
        for pipe in self._pipes:
            pipe.close()
        for process in self._processes:
            process.terminate()
        deadline = time.monotonic() + _ENDING_S
        for process in self._processes:
            process.join(max(0.0, deadline - time.monotonic()))
            if process.is_alive():
                process.kill()
                process.join()

    # --- what they do

    def link(self) -> LinkTimes:
        """Measures the way through shared memory from device 0 to device 1."""
        sent, received = self._both("copy_times", (_BLOCKS, _SENDINGS))
        copy_ns = np.median(sent[:, :, 1] - sent[:, :, 0], axis=1)
        signal_ns = np.median(received[:, :, 0] - sent[:, :, 1])
        # Least squares of the relative error: blocks of all sizes count alike.
        sizes = np.array(_BLOCKS, np.float64)
        rows = np.stack([1 / copy_ns, sizes / copy_ns], axis=1)
        (fixed_ns, ns_per_byte), *_ = np.linalg.lstsq(rows, np.ones(len(sizes)), rcond=None)
        return LinkTimes(
            max(0, round(float(fixed_ns))),
            max(1, round(1e9 / max(float(ns_per_byte), 1e-3))),
            max(0, round(float(signal_ns))),
        )

    def alone(self, plan: Plan, device: int, repetitions: int) -> NDArray[np.int64]:
        """Runs a plan that needs one process, while the other one sleeps.

        Returns:
            Time of each of the process's actions in each repetition, ``[repetitions, actions] int64`` ns.
        """
        (clocks,) = self._ask([device], "steps", (plan, repetitions, False))
        return np.stack([clock[1:, 1] - clock[1:, 0] for clock in clocks])

    def steps(self, plan: Plan, repetitions: int) -> StepTimes:
        """Runs a plan again and again, each time from a common start."""
        clocks = [np.stack(found) for found in self._both("steps", (plan, repetitions, True))]
        ends = [clock[:, -1, 1] for clock in clocks]
        starts = [clock[:, 0, 0] for clock in clocks]
        ops, sends, waits = [], [], []
        for device, clock in enumerate(clocks):
            is_send = np.array([action.tensor >= 0 for action in plan.actions[device]], np.bool_)
            busy = clock[:, 1:, 1] - clock[:, 1:, 0]
            ops.append(busy[:, ~is_send].sum(1))
            sends.append(busy[:, is_send].sum(1))
            waits.append((clock[:, 1:, 0] - clock[:, :-1, 1]).sum(1))
        return StepTimes(
            np.max(ends, axis=0) - np.min(starts, axis=0),
            np.stack(ops, 1),
            np.stack(sends, 1),
            np.stack(waits, 1),
        )

    def results(self, plan: Plan) -> dict[int, NDArray[Any]]:
        """Runs a plan once and gives the outputs, and the variables as they are afterwards."""
        first, second = self._both("results", (plan,))
        return {**first, **second}

    # --- how they are told

    def _both(self, name: str, args: tuple[Any, ...]) -> list[Any]:
        return self._ask(range(DEVICES), name, args)

    def _ask(self, devices: Sequence[int], name: str, args: tuple[Any, ...]) -> list[Any]:
        for device in devices:
            try:
                self._pipes[device].send((name, args))
            except BrokenPipeError:
                raise self._death(device) from None
        return self._answers(name, self._patience_s + _ENDING_S, devices)

    def _answers(self, what: str, patience_s: float, devices: Sequence[int] = range(DEVICES)) -> list[Any]:
        found: dict[int, Any] = {}
        deadline = time.monotonic() + patience_s
        while len(found) < len(devices):
            pending = {self._pipes[d]: d for d in devices if d not in found}
            ready = wait(list(pending), deadline - time.monotonic())
            if not ready:
                raise ExecutionFailedError(
                    f"the two processes gave no answer to {what!r} within {patience_s:g} s; they were ended"
                )
            for pipe in ready:
                device = pending[pipe]  # type: ignore[index]
                try:
                    ok, answer = self._pipes[device].recv()
                except (EOFError, ConnectionResetError):
                    raise self._death(device) from None
                if not ok:
                    raise ExecutionFailedError(f"the process of device {device} failed:\n{answer}")
                found[device] = answer
        return [found[device] for device in devices]

    def _death(self, device: int) -> ExecutionFailedError:
        process = self._processes[device]
        process.join(_ENDING_S)
        return ExecutionFailedError(
            f"the process of device {device} ended with exit code {process.exitcode}; a negative code is a signal "
            "(-9: killed, often for lack of memory; -7: shared memory is full, see the size of /dev/shm)"
        )
