"""Solutions as keys in [0, 1], and back."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .... import _core
from ....errors import InvalidProblemError
from ....graphs import Cluster, Simulator
from ....problems import Objective, Order, Placement, PlacementProblem, SchedulingProblem
from ....problems.grouping import assign, colocation_units

Keys = NDArray[np.float32]

#: Objectives of which keys can stand for solutions: the others have no use for priorities.
SIMULATED = frozenset(objective for objective in Objective if objective.simulated)
#: The order of the core's objectives.
_MAKESPAN, _PEAK, _DYNAMIC_PEAK = range(3)
#: Up to this many units that share a device each has affinities of its own; above, parts of the graph do.
MOST_UNITS, DEFAULT_GROUPS = 2_000, "metis:256"


class KeyEncoding:
    """What the genes of a chromosome mean for one problem.

    In this order: an affinity for each (group, device), of which the largest names the device of the group's ops (none
    with one device); a priority for each op that is no variable; a priority for each (tensor, destination) that may
    have to be sent (none where transfers are free). Modelled on the chromosome of REGAL (Paliwal et al. 2020).

    Args:
        problem: The problem; objectives ``step_time`` and ``peak_memory``, or the peak of an order.
        groups: What shares a device: ``"op"`` (colocation units), ``"layer"``, ``"metis:K"``; by default units, or
            ``"metis:256"`` above 2,000 of them.
        transfer_keys: Whether transfers have keys; else they go by their best-ranked consumer.

    Attributes:
        problem: The problem.
        genes: How many genes a chromosome has.
        affinities: Those of (group, device).
        priorities: Those of ``ops``.
        transfers: Those of (``transfer_tensors``, device).
        group: Group of each op, ``[ops] int32``.
        ops: Ops that have a priority, ``int32``.
        transfer_tensors: Tensors that have transfer keys, ``int32``.
        decoder: What decodes and judges keys in the core.

    Raises:
        InvalidProblemError: Another objective, or a group that no device can run as a whole.
    """

    def __init__(
        self,
        problem: PlacementProblem | SchedulingProblem,
        groups: str | None = None,
        *,
        transfer_keys: bool = True,
    ) -> None:
        self.problem = problem
        graph = problem.graph
        self.ops = np.flatnonzero(~graph.is_variable).astype(np.int32)
        no_tensors = np.zeros(0, np.int32)
        if isinstance(problem, SchedulingProblem):
            # On one device only the order counts, and any cost gives the same one.
            self._simulator = Simulator(
                graph, Cluster.parse("1xREGAL"), np.ones((graph.num_ops, 1), np.int64)
            )
            self.group = np.zeros(graph.num_ops, np.int32)
            self.transfer_tensors = no_tensors
            allowed = np.ones((1, 1), np.bool_)
            capacity = np.full(1, np.iinfo(np.int64).max)
            objective = _DYNAMIC_PEAK
        else:
            if problem.objective not in SIMULATED:
                raise InvalidProblemError(f"keys do not stand for solutions of {problem.objective} problems")
            self._simulator = problem.simulator
            self.group = _groups(problem, groups)
            allowed = _allowed(problem, self.group)
            sends = transfer_keys and len(problem.cluster) > 1 and problem.cluster.channel != "free"
            self.transfer_tensors = _sent(problem, self.group) if sends else no_tensors
            capacity = problem.cluster.capacity_bytes.astype(np.int64)
            objective = _MAKESPAN if problem.objective is Objective.STEP_TIME else _PEAK
        self.decoder = _core.KeyDecoder(
            self._simulator.core, objective, self.group, allowed, self.transfer_tensors, capacity
        )
        self.genes = self.decoder.num_genes
        devices = self._devices
        affinities = len(allowed) * devices if devices > 1 else 0
        self.affinities = slice(0, affinities)
        self.priorities = slice(affinities, affinities + len(self.ops))
        self.transfers = slice(affinities + len(self.ops), self.genes)

    @property
    def _devices(self) -> int:
        return len(self._simulator.cluster)

    @cached_property
    def target(self) -> tuple[float, int]:
        """What no solution can beat, as the core compares: nothing over capacity, and the lower bound."""
        return 0.0, math.ceil(self.problem.lower_bound().value)

    def decode(self, keys: Keys) -> Placement | Order:
        """The solution that keys stand for."""
        device, priority, transfer = self.decoder.decode(np.ascontiguousarray(keys, np.float32))
        if isinstance(self.problem, SchedulingProblem):
            return Order(self._by_start(device, priority))
        shape = (self.problem.graph.num_tensors, self._devices)
        return Placement(device, priority, transfer.reshape(shape) if len(transfer) else None)

    def encode(self, solution: Placement | Order, *, keep_priorities: bool = False) -> Keys:
        """Keys for a solution, with the order in which its ops start as priorities.

        They stand for the same order, and for the same placement if no group has ops on several devices. With several
        devices the run may differ where the solution's transfers were in another order than its ops.

        Args:
            solution: What they are to stand for.
            keep_priorities: Take the order of the solution's own priorities, where it has some, so that the run is
                the same where neither it nor the encoding sets priorities of transfers.
        """
        keys = np.full(self.genes, 0.5, np.float32)
        if isinstance(solution, Order):
            order = np.asarray(solution.op)
        elif keep_priorities and solution.priority is not None:
            given = np.asarray(solution.priority, np.float64)[self.ops]
            order = self.ops[np.argsort(-given, kind="stable")]  # equal ones by op, as in the simulator
        else:
            order = self._by_start(solution.device, solution.priority, solution.transfer_priority)
        count = len(self.ops)
        priority = np.zeros(self.problem.graph.num_ops, np.float32)
        priority[order] = 1 - (np.arange(count) + 0.5) / max(count, 1)
        keys[self.priorities] = priority[self.ops]
        if isinstance(solution, Order) or self._devices == 1:
            return keys
        device = np.asarray(solution.device)
        first = np.unique(self.group, return_index=True)[1]
        chosen = device[first][:, None] == np.arange(self._devices)
        keys[self.affinities] = np.where(chosen, 0.75, 0.25).ravel()
        keys[self.transfers] = self._of_best_consumer(device, priority).ravel()
        return keys

    def _by_start(
        self,
        device: NDArray[np.integer],
        priority: NDArray[np.floating] | None,
        transfer: NDArray[np.floating] | None = None,
    ) -> NDArray[np.int32]:
        """Ops that are no variables in the order in which they start, ``int32``."""
        floats = None if priority is None else np.asarray(priority, np.float64)
        transfers = None if transfer is None else np.ascontiguousarray(transfer, np.float64)
        run = self._simulator.core.run(np.asarray(device, np.uint8), floats, transfers, timeline=True)
        return run.op_order

    def _of_best_consumer(self, device: NDArray[np.integer], priority: Keys) -> Keys:
        """The highest priority among consumers on each device, of all where there are none there."""
        graph = self.problem.graph
        result = np.zeros((len(self.transfer_tensors), self._devices), np.float32)
        for row, tensor in enumerate(self.transfer_tensors.tolist()):
            readers = graph.consumers(tensor)
            result[row] = priority[readers].max()
            for d in np.unique(device[readers]).tolist():
                result[row, d] = priority[readers[device[readers] == d]].max()
        return result


def _groups(problem: PlacementProblem, spec: str | None) -> NDArray[np.int32]:
    if spec is not None:
        return assign(problem, spec)
    units = colocation_units(problem.graph)
    return units if units.max(initial=-1) < MOST_UNITS else assign(problem, DEFAULT_GROUPS)


def _allowed(problem: PlacementProblem, group: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Whether all ops of a group may run on a device, ``[groups, devices] bool``."""
    allowed = np.ones((int(group.max(initial=-1)) + 1, len(problem.cluster)), np.bool_)
    np.logical_and.at(allowed, group, problem.allowed)
    nowhere = ~allowed.any(axis=1)
    if nowhere.any():
        op = int(np.argmax(group == np.argmax(nowhere)))
        raise InvalidProblemError(
            f"no device runs all ops of the group of op {op} {problem.graph.op_names[op]!r}; group by 'op'"
        )
    return allowed


def _sent(problem: PlacementProblem, group: NDArray[np.int32]) -> NDArray[np.int32]:
    """Tensors that a placement can separate from a consumer, ``int32``."""
    producer, consumer, tensor = problem.graph.edges
    return np.unique(tensor[group[producer] != group[consumer]]).astype(np.int32)
