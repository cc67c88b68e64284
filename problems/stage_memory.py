"""Memory that a device needs as a stage of a pipeline: what stays there, and what is in flight."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..graphs import DIRECTIONS, Graph

if TYPE_CHECKING:
    from .placement import PlacementProblem


def readers_on(
    graph: Graph, device: NDArray[Any], devices: int, ops: NDArray[np.bool_] | None = None
) -> NDArray[np.bool_]:
    """Whether an op (of all, or of a subset) on a device reads a tensor, ``[tensors, devices] bool``."""
    reader = np.repeat(np.arange(graph.num_ops), np.diff(graph.input_ptr))
    tensor = graph.input_tensor
    if ops is not None:
        kept = ops[reader]
        reader, tensor = reader[kept], tensor[kept]
    reads = np.zeros((graph.num_tensors, devices), np.bool_)
    reads[tensor, device[reader]] = True
    return reads


def resident_bytes(problem: PlacementProblem, device: NDArray[Any]) -> NDArray[np.int64]:
    """Bytes that stay on each device from start to end, ``[devices] int64``.

    Source tensors (parameters, inputs, constants) on every device with a reader, and the outputs of variable
    ops on their home.
    """
    graph, devices = problem.graph, len(problem.cluster)
    producer = graph.tensor_producer
    resident = (producer < 0)[:, None] & readers_on(graph, device, devices)
    homed = np.flatnonzero((producer >= 0) & graph.is_variable[producer])
    resident[homed, device[producer[homed]]] = True
    total: NDArray[np.int64] = np.where(resident, graph.tensor_bytes[:, None], 0).sum(axis=0)
    return total


def in_flight_bytes(
    problem: PlacementProblem, device: NDArray[Any], micro_batches: int, schedule: str
) -> NDArray[np.int64]:
    """Bytes beside the resident ones at the worst moment of each device, ``[devices] int64``.

    The running micro-batch needs its liveness peak in program order (copies from their first to their last
    local reader; gradients that updates read, and copies of variables, to the end of the step). Every other
    micro-batch whose forward pass has run and whose backward pass has not needs its stash: the forward
    tensors that backward ops of the device read. ``gpipe`` holds all micro-batches, ``1f1b`` as many as there
    are stages from this one to the last; stages follow one another in the order of their first op. Buffers
    are not shared in place.
    """
    graph, devices = problem.graph, len(problem.cluster)
    backward = graph.op_direction == DIRECTIONS.index("backward")
    forward = graph.op_direction == DIRECTIONS.index("forward")
    producer = graph.tensor_producer
    activation = (producer >= 0) & ~graph.is_variable[producer] & forward[producer]
    stashed = readers_on(graph, device, devices, backward) & activation[:, None]
    stash = np.where(stashed, graph.tensor_bytes[:, None], 0).sum(axis=0)

    first_op = np.full(devices, graph.num_ops, np.int64)
    np.minimum.at(first_op, device, np.arange(graph.num_ops))
    used = first_op < graph.num_ops
    stage = np.argsort(np.argsort(first_op, kind="stable"))  # unused devices come last
    held = np.full(devices, micro_batches)
    if schedule == "1f1b":
        held = np.minimum(held, np.count_nonzero(used) - stage)
    others = np.where(used, held - 1, 0)
    in_flight: NDArray[np.int64] = _liveness_peak_bytes(problem, device) + others * stash
    return in_flight


def _liveness_peak_bytes(problem: PlacementProblem, device: NDArray[Any]) -> NDArray[np.int64]:
    """Peak of what comes and goes over one micro-batch in program order, ``[devices] int64`` bytes."""
    graph, devices = problem.graph, len(problem.cluster)
    ops, last = graph.num_ops, graph.num_ops - 1
    reader = np.repeat(np.arange(ops), np.diff(graph.input_ptr))
    first = np.full(
        (graph.num_tensors, devices), ops, np.int64
    )  # first and last op on the device that needs it
    final = np.full((graph.num_tensors, devices), -1, np.int64)
    np.minimum.at(first, (graph.input_tensor, device[reader]), reader)
    np.maximum.at(final, (graph.input_tensor, device[reader]), reader)

    produced = np.flatnonzero(graph.tensor_producer >= 0)
    producer = graph.tensor_producer[produced]
    home = device[producer]
    variable = produced[graph.is_variable[producer]]
    copied = final[variable] >= 0
    first[variable] = np.where(copied, 0, ops)  # sent once per step, so kept for all micro-batches
    final[variable] = np.where(copied, last, -1)

    gradient = np.zeros(graph.num_tensors, np.bool_)
    gradient[graph.input_tensor[(graph.op_direction == DIRECTIONS.index("update"))[reader]]] = True
    kept = graph.tensor_is_output[produced] | gradient[produced]
    first[produced, home] = producer
    final[produced, home] = np.where(kept, last, np.maximum(final[produced, home], producer))
    in_place_of_variable = graph.is_variable[producer] | (graph.op_update_of[producer] >= 0)
    first[produced[in_place_of_variable], home[in_place_of_variable]] = (
        ops  # resident, or written into what is
    )
    first[graph.tensor_producer < 0] = ops

    live = np.zeros((devices, ops + 1), np.int64)
    tensor, where = np.nonzero(first < ops)
    np.add.at(live, (where, first[tensor, where]), graph.tensor_bytes[tensor])
    np.subtract.at(live, (where, final[tensor, where] + 1), graph.tensor_bytes[tensor])
    np.cumsum(live, axis=1, out=live)
    scheduled = np.flatnonzero(~graph.is_variable)
    live[device[scheduled], scheduled] += graph.op_workspace_bytes[scheduled]
    peak: NDArray[np.int64] = live.max(axis=1)
    return peak
