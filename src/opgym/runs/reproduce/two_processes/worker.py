"""One of the two processes: it is told over a pipe what to do, and meets the other one in shared memory."""

from __future__ import annotations

import ctypes
import gc
import os
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.shared_memory import SharedMemory
from multiprocessing.synchronize import Semaphore
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ....errors import ExecutionFailedError
from ...parallel import prepare_worker
from .plan import Action, Plan
from .task import Task

#: Starts of tensors in shared memory are multiples of this, as the allocator's are.
ALIGNMENT = 64
#: After which the receiver of a measured block is surely waiting for it.
_PAUSE_NS = 20_000
#: Measured blocks are spread over so much, more than caches hold: a step comes back to a place only in the next step.
_REGION_BYTES = 64 * 2**20


@dataclass(frozen=True)
class Seat:
    """What a process shares with the other one.

    Attributes:
        device: 0 or 1.
        core: Where it runs.
        memory: Name of the shared memory.
        arrived: For each device, counts what has been sent to it.
        here: For each device, counts that the other one has come to the start.
        patience_s: After which waiting for the other is given up.
    """

    device: int
    core: int
    memory: str
    arrived: tuple[Semaphore, Semaphore]
    here: tuple[Semaphore, Semaphore]
    patience_s: float


def places(sizes: Sequence[int]) -> list[int]:
    """Where each tensor lies in shared memory, and where the last one ends."""
    found = [0]
    for size in sizes:
        found.append(found[-1] + -(-size // ALIGNMENT) * ALIGNMENT)
    return found


def serve(seat: Seat, task: Task, pipe: Connection) -> None:
    """Answers what comes over the pipe until it is closed; an error is an answer, too."""
    prepare_worker()
    try:
        worker = _Worker(seat, task)
        pipe.send((True, None))
        while True:
            name, args = pipe.recv()
            pipe.send((True, getattr(worker, name)(*args)))
    except EOFError:
        pass
    except BaseException:
        pipe.send((False, traceback.format_exc(limit=-4)))
    finally:
        pipe.close()
        os._exit(0)  # tensors still lie in the shared memory, and its object would complain about that


class _Worker:
    def __init__(self, seat: Seat, task: Task) -> None:
        os.sched_setaffinity(0, {seat.core})
        _keep_freed_memory()
        torch.set_num_threads(1)
        torch.set_flush_denormal(True)
        self.seat = seat
        self.task = task
        self.program = task.program
        self.memory = SharedMemory(seat.memory)
        self.arena = np.ndarray(self.memory.size, np.uint8, self.memory.buf)
        sizes = task.graph.tensor_bytes.tolist()
        starts = places(sizes)
        #: Where each tensor arrives, as flat bytes with a storage of their own.
        self.slots = [self._block(start, size) for start, size in zip(starts, sizes, strict=False)]
        self.given = task.given()
        self.initial = {t: self.given[t].clone() for t in task.changed}
        gc.collect()
        gc.freeze()
        gc.disable()

    # --- what the parent asks for

    def copy_times(self, sizes: Sequence[int], repetitions: int) -> NDArray[np.int64]:
        """Sends (device 0) or receives (device 1) blocks.

        Returns:
            Clock of the start and the end of each send, or of each arrival twice,
            ``[sizes, repetitions, 2] int64`` ns.
        """
        clock = np.zeros((len(sizes), repetitions, 2), np.int64)
        region = self._block(0, min(self.memory.size, _REGION_BYTES))
        region.zero_()  # pages exist from here on
        for i, size in enumerate(sizes):
            block = torch.empty(size, dtype=torch.uint8)
            for j in range(repetitions):
                start = j * (len(region) - size) // repetitions // ALIGNMENT * ALIGNMENT
                slot = self._block(start, size)
                block.fill_(j)  # what is sent has just been written
                self._meet()
                if self.seat.device == 0:
                    begin = time.perf_counter_ns() + _PAUSE_NS
                    while (now := time.perf_counter_ns()) < begin:
                        pass
                    clock[i, j, 0] = now
                    slot.copy_(_flat(block.untyped_storage()))
                    self.seat.arrived[1].release()
                    clock[i, j, 1] = time.perf_counter_ns()
                else:
                    self._wait(self.seat.arrived[1])
                    clock[i, j] = time.perf_counter_ns()
                    slot.sum()  # as an op would read it
        return clock

    def steps(self, plan: Plan, repetitions: int, together: bool) -> list[NDArray[np.int64]]:
        """Runs the step again and again, from the same values.

        Args:
            plan: What to do.
            repetitions: How often.
            together: Whether to start at the same time as the other process.

        Returns:
            For each repetition the clock in ns, ``[actions + 1, 2]``: when what an action waits for was there, and
            when it ended; the first row is the start.
        """
        return [self._step(plan, together)[0] for _ in range(repetitions)]

    def results(self, plan: Plan) -> dict[int, NDArray[Any]]:
        """Runs the step once, with the other process; gives what this process wrote of outputs and variables."""
        _, held = self._step(plan, True)
        ops = [action.op for action in plan.actions[self.seat.device] if action.op >= 0]
        written = {
            t for op in ops for t in self.task.graph.outputs(op) if self.task.graph.tensor_is_output[t]
        }
        calls = [call for op in ops if (call := self.program.calls[op]) is not None]
        written |= {old for call in calls for old, _ in call.rewrites if old in self.initial}
        return {t: self.program.views[t].of(held[t]).numpy().copy() for t in sorted(written)}

    # --- how

    def _step(self, plan: Plan, together: bool) -> tuple[NDArray[np.int64], dict[int, Any]]:
        for tensor, value in self.initial.items():
            self.given[tensor].copy_(value)
        held = {t: value.untyped_storage() for t, value in self.given.items()}
        for action in plan.actions[1 - self.seat.device]:
            if action.tensor >= 0:
                held[action.tensor] = self.slots[action.tensor].untyped_storage()
        return self._run(plan.actions[self.seat.device], held, together), held

    def _run(self, actions: Sequence[Action], held: dict[int, Any], together: bool) -> NDArray[np.int64]:
        calls, run_op, slots = self.program.calls, self.program._run, self.slots
        mine, theirs = self.seat.arrived[self.seat.device], self.seat.arrived[1 - self.seat.device]
        clock = np.empty((len(actions) + 1, 2), np.int64)
        now = time.perf_counter_ns
        arrived = 0
        if together:
            self._meet()
        clock[0] = now()
        for position, action in enumerate(actions, start=1):
            while arrived < action.arrivals:
                self._wait(mine)
                arrived += 1
            clock[position, 0] = now()
            if action.op >= 0:
                call = calls[action.op]
                assert call is not None
                run_op(action.op, call, held)
            else:
                slots[action.tensor].copy_(_flat(held[action.tensor]))
                theirs.release()
            for tensor in action.frees:
                held.pop(tensor, None)
            clock[position, 1] = now()
        return clock

    def _block(self, start: int, size: int) -> Tensor:
        return torch.from_numpy(self.arena[start : start + size])

    def _meet(self) -> None:
        """Returns at the same time in both processes."""
        self.seat.here[1 - self.seat.device].release()
        self._wait(self.seat.here[self.seat.device])

    def _wait(self, semaphore: Semaphore) -> None:
        """Waits without sleeping: waking up would take longer than a small op."""
        if semaphore.acquire(False):
            return
        deadline = time.monotonic() + self.seat.patience_s
        while not semaphore.acquire(False):
            if time.monotonic() > deadline:
                raise ExecutionFailedError(
                    f"device {self.seat.device} waited {self.seat.patience_s:g} s for the other process"
                )


def _keep_freed_memory() -> None:
    """Lets the C library keep what is freed for the next op, as allocators of devices do.

    Else each large tensor comes from the system and page by page, which takes as long as a small op and varies. Where
    the C library is not glibc, it stays so.
    """
    trim_threshold, top_pad, mmap_threshold = -1, -2, -3  # of malloc.h
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(mmap_threshold, 32 * 2**20)
        mallopt(trim_threshold, 2**31 - 1)
        mallopt(top_pad, 64 * 2**20)


def _flat(storage: torch.UntypedStorage) -> Tensor:
    return torch.empty(0, dtype=torch.uint8).set_(storage, 0, (storage.nbytes(),), (1,))
