"""Max-load: the time of the busiest stage of a pipeline, and the memory that each stage needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidProblemError
from ..graphs import DIRECTIONS
from ..outcome import Outcome, Verdict
from .stage_memory import in_flight_bytes, readers_on, resident_bytes

if TYPE_CHECKING:
    from .placement import Placement, PlacementProblem

SCHEDULES = ("gpipe", "1f1b")
_FORWARD, _BACKWARD, _ONCE = 0, 1, 2  # phases of a step: per micro-batch, per micro-batch, once per step
_NS_PER_MS = 1e6


@dataclass(frozen=True)
class Pipeline:
    """How samples flow through the devices, for the objective ``max_load``.

    Attributes:
        micro_batches: Micro-batches per step; the graph describes one. ``None`` is the endless stream of
            Tarnawski et al. 2020: the value is the load of the busiest device and memory holds what stays
            there (parameters, inputs, constants, variables). A number adds filling and draining the pipeline,
            and the memory of what is in flight.
        schedule: ``"gpipe"`` (all forward passes, then all backward passes; Huang et al. 2019) or ``"1f1b"``
            (one forward, one backward; Narayanan et al. 2019), which holds fewer micro-batches at a time.

    Raises:
        InvalidProblemError: Fewer than one micro-batch, or an unknown schedule.
    """

    micro_batches: int | None = None
    schedule: str = "gpipe"

    def __post_init__(self) -> None:
        if self.micro_batches is not None and self.micro_batches < 1:
            raise InvalidProblemError(
                f"{self.micro_batches} micro-batches; expected at least 1, or None for a stream"
            )
        if self.schedule not in SCHEDULES:
            raise InvalidProblemError(
                f"pipeline schedule {self.schedule!r}; expected one of {', '.join(SCHEDULES)}"
            )


def max_load_ms(problem: PlacementProblem, solution: Placement) -> Outcome:
    """Judges a legal placement as a pipeline whose stages are the devices.

    The load of an accelerator is its computation, plus bringing in each tensor that it reads from outside
    once, plus writing out each tensor that somebody outside reads once; a CPU pays for computation alone. For
    a stream the value is the largest load. For ``M`` micro-batches it is the time of a step divided by ``M``,
    with ``f``, ``b`` and ``u`` a device's forward and backward load and what it does once per step (updates):

    - ``gpipe``: ``sum f + (M - 1) max f + sum b + (M - 1) max b + max u``;
    - ``1f1b``: ``sum (f + b) + (M - 1) max (f + b) + max u`` (Zheng et al. 2022, Alpa, section 5; exact for
      equal stages, optimistic for unequal ones).

    Both tend to the largest load for many micro-batches (``u`` apart).
    """
    device = np.asarray(solution.device)
    loads = _phase_loads_ns(problem, device)
    memory = resident_bytes(problem, device)
    micro_batches = problem.pipeline.micro_batches
    if micro_batches is not None:
        memory += in_flight_bytes(problem, device, micro_batches, problem.pipeline.schedule)
    load = loads.sum(axis=0)
    details: dict[str, Any] = {"load_ms": (load / _NS_PER_MS).tolist(), "peak_bytes": memory.tolist()}
    if micro_batches is None:
        value = float(load.max()) / _NS_PER_MS
    else:
        step_ms = _step_ns(loads, micro_batches, problem.pipeline.schedule) / _NS_PER_MS
        details["step_time_ms"] = step_ms
        value = step_ms / micro_batches
    capacity = problem.cluster.capacity_bytes
    over = memory - capacity
    share = float((over / capacity).max())
    if share > 0:
        details["over_capacity_bytes"] = int(over.max())
        return Outcome(value, problem.objective.unit, Verdict.OUT_OF_MEMORY, share, details)
    return Outcome(value, problem.objective.unit, details=details)


def _step_ns(loads: NDArray[np.int64], micro_batches: int, schedule: str) -> int:
    """Time of one step of a pipeline that fills and drains, from ``[phases, devices]`` loads."""
    more = micro_batches - 1
    forward, backward, once = loads[_FORWARD], loads[_BACKWARD], loads[_ONCE]
    if schedule == "gpipe":
        passes = (
            int(forward.sum()) + more * int(forward.max()) + int(backward.sum()) + more * int(backward.max())
        )
    else:
        both = forward + backward
        passes = int(both.sum()) + more * int(both.max())
    return passes + int(once.max())


def _phase_loads_ns(problem: PlacementProblem, device: NDArray[Any]) -> NDArray[np.int64]:
    """Load of each device by phase, ``[phases, devices] int64`` ns.

    A transfer belongs to the pass that produces its tensor. Once per step happen updates, transfers that only
    updates wait for (gradients are summed where they arise), and transfers of variables.
    """
    graph, devices = problem.graph, len(problem.cluster)
    loads = np.zeros((3, devices), np.int64)
    update = graph.op_direction == DIRECTIONS.index("update")
    phase = np.where(
        update, _ONCE, np.where(graph.op_direction == DIRECTIONS.index("backward"), _BACKWARD, _FORWARD)
    )
    np.add.at(loads, (phase, device), problem.cost_ns[np.arange(graph.num_ops), device])

    producer = graph.tensor_producer
    elsewhere = (producer >= 0)[:, None] & (np.arange(devices) != device[producer][:, None])
    sent = np.where(graph.is_variable, _ONCE, phase)[producer]  # of a source tensor: never used
    copies = readers_on(graph, device, devices) & elsewhere
    urgent = copies & readers_on(graph, device, devices, ~update)  # wanted within the micro-batch
    tensor, target = np.nonzero(copies)
    arrival = np.where(urgent[tensor, target], sent[tensor], _ONCE)
    np.add.at(loads, (arrival, target), problem.to_device_ns[tensor, target])
    tensor = np.flatnonzero(copies.any(axis=1))
    home = device[producer[tensor]]
    departure = np.where(urgent[tensor].any(axis=1), sent[tensor], _ONCE)
    np.add.at(loads, (departure, home), problem.from_device_ns[tensor, home])
    return loads
