"""Which op runs on which device: the placement problem and its solutions."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import InvalidProblemError, unknown_id
from ..graphs import Cluster, CostModel, Graph, RooflineCost, Simulation, Simulator
from ..outcome import Outcome, Verdict
from .bounds import Bound, placement_bound
from .footprints import op_footprint_bytes, op_resident_bytes
from .host_transfers import host_transfer_ns
from .latency import latency_ms
from .objectives import Objective
from .pipeline import Pipeline, max_load_ms


@dataclass(frozen=True, eq=False)
class Placement:
    """A solution of a :class:`PlacementProblem`.

    Attributes:
        device: Device of each op, ``[ops] int``.
        priority: Priority of each op, higher first, ``[ops] float``; ``None`` is the upward rank under the
            placement (critical path).
        transfer_priority: Priority of each (tensor, destination), higher first, ``[tensors, devices] float``;
            ``None`` takes the rank of the best-ranked consumer there.
    """

    device: NDArray[Any]
    priority: NDArray[Any] | None = None
    transfer_priority: NDArray[Any] | None = None


def program_order(graph: Graph) -> NDArray[np.float64]:
    """The priorities that run ops in the order of the graph, ``[ops]``."""
    return -np.arange(graph.num_ops, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class PlacementProblem:
    """A graph, a cluster and an objective.

    Attributes:
        graph: The computation graph.
        cluster: Its devices and links.
        objective: ``"step_time"``, ``"peak_memory"``, ``"max_load"`` or ``"latency"``.
        costs: Prices ops; roofline by default.
        pipeline: Micro-batches and schedule, for ``max_load``; an endless stream by default.

    Raises:
        UnknownIdError: An unknown objective.
        InvalidProblemError: An op, or the ops of one colocation group, can run on no device, or the largest
            op fits into no device.
    """

    graph: Graph
    cluster: Cluster
    objective: Objective = Objective.STEP_TIME
    costs: CostModel = field(default_factory=RooflineCost)
    pipeline: Pipeline = field(default_factory=Pipeline)

    def __post_init__(self) -> None:
        known = [o.value for o in Objective]
        if self.objective not in known:
            raise unknown_id("objective", str(self.objective), known)
        object.__setattr__(self, "objective", Objective(self.objective))
        self._refuse_impossible()

    # --- data that solvers, environments and bounds share

    @cached_property
    def cost_ns(self) -> NDArray[np.int64]:
        """Time of each op on each device, ``[ops, devices] int64`` ns."""
        return self.class_cost_ns[:, self.cluster.device_class]

    @cached_property
    def class_cost_ns(self) -> NDArray[np.int64]:
        """Time of each op on each device class, ``[ops, classes] int64`` ns."""
        return self.costs.cost_ns(self.graph, self.cluster)

    @cached_property
    def allowed(self) -> NDArray[np.bool_]:
        """Whether an op (with its whole colocation group) may run on a device, ``[ops, devices] bool``."""
        graph, cluster = self.graph, self.cluster
        allowed = self._supported.copy()
        grouped = graph.op_group >= 0
        by_group = np.ones((graph.num_groups, len(cluster)), np.bool_)
        np.logical_and.at(by_group, graph.op_group[grouped], allowed[grouped])
        allowed[grouped] = by_group[graph.op_group[grouped]]
        return allowed

    @cached_property
    def _supported(self) -> NDArray[np.bool_]:
        graph = self.graph
        columns = []
        for device in self.cluster.devices:
            bits = sum(
                1 << i for i, name in enumerate(graph.device_classes) if name in (device.name, device.kind)
            )
            columns.append((graph.op_unsupported & np.uint64(bits)) == 0)
        return np.stack(columns, axis=1)

    @cached_property
    def simulator(self) -> Simulator:
        """The event simulator of this graph on this cluster."""
        return Simulator(self.graph, self.cluster, self.class_cost_ns)

    @cached_property
    def footprint_bytes(self) -> NDArray[np.int64]:
        """Memory that each op needs by itself while it runs (inputs, outputs, workspace), ``[ops] int64``."""
        return op_footprint_bytes(self.graph)

    @property
    def to_device_ns(self) -> NDArray[np.int64]:
        """Time of moving each tensor from the host to each device, ``[tensors, devices] int64`` ns."""
        return self._host_transfer_ns[0]

    @property
    def from_device_ns(self) -> NDArray[np.int64]:
        """Time of moving each tensor from each device to the host, ``[tensors, devices] int64`` ns."""
        return self._host_transfer_ns[1]

    @cached_property
    def _host_transfer_ns(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        return host_transfer_ns(self.graph, self.cluster)

    def lower_bound(self) -> Bound:
        """A value that no feasible placement can beat."""
        return placement_bound(self)

    # --- evaluation

    def evaluate(self, solution: Placement) -> Outcome:
        """Judges a placement; an illegal one gets a verdict and the value ``inf``."""
        verdict, reason = self._legality(solution)
        if verdict is not Verdict.OK:
            return Outcome(float("inf"), self.objective.unit, verdict, details={"reason": reason})
        if self.objective is Objective.MAX_LOAD:
            return max_load_ms(self, solution)
        if self.objective is Objective.LATENCY:
            return latency_ms(self, solution)
        return self.judge(self.simulate(solution))

    def simulate(self, solution: Placement, *, timeline: bool = False) -> Simulation:
        """Runs a legal placement in the event simulator."""
        return self.simulator.run(
            solution.device,
            solution.priority,
            transfer_priority=solution.transfer_priority,
            timeline=timeline,
        )

    def judge(self, run: Simulation) -> Outcome:
        """The outcome of a simulated run (objectives ``step_time`` and ``peak_memory``)."""
        over = run.peak_bytes - self.cluster.capacity_bytes
        share = float((over / self.cluster.capacity_bytes).max())
        value = run.makespan_ns if self.objective is Objective.STEP_TIME else int(run.peak_bytes.max())
        details = {
            "step_time_ns": run.makespan_ns,
            "peak_bytes": run.peak_bytes.tolist(),
            "resident_bytes": run.resident_bytes.tolist(),
            "busy_ns": run.busy_ns.tolist(),
            "transfer_ns": run.transfer_ns.tolist(),
        }
        if share > 0:
            details["over_capacity_bytes"] = int(over.max())
            return Outcome(float(value), self.objective.unit, Verdict.OUT_OF_MEMORY, share, details)
        return Outcome(float(value), self.objective.unit, details=details)

    def _legality(self, solution: Placement) -> tuple[Verdict, str]:
        """The first rule that a placement breaks, and where."""
        graph, devices = self.graph, len(self.cluster)
        device = np.asarray(solution.device)
        if device.shape != (graph.num_ops,):
            return Verdict.WRONG_LENGTH, f"device has shape {device.shape}; expected ({graph.num_ops},)"
        if not np.issubdtype(device.dtype, np.integer):
            return Verdict.UNKNOWN_DEVICE, f"device has dtype {device.dtype}; expected integers"
        outside = (device < 0) | (device >= devices)
        if outside.any():
            op = int(np.argmax(outside))
            return (
                Verdict.UNKNOWN_DEVICE,
                f"op {op} is on device {device[op]}; devices are 0 .. {devices - 1}",
            )
        for name, shape in (
            ("priority", (graph.num_ops,)),
            ("transfer_priority", (graph.num_tensors, devices)),
        ):
            given: ArrayLike | None = getattr(solution, name)
            if given is None:
                continue
            array = np.asarray(given)
            if array.shape != shape:
                return Verdict.WRONG_LENGTH, f"{name} has shape {array.shape}; expected {shape}"
            if np.isnan(array).any():
                return Verdict.INVALID_PRIORITY, f"{name} holds NaN"
        if graph.num_groups:
            grouped = np.flatnonzero(graph.op_group >= 0)
            group = graph.op_group[grouped]
            home = np.zeros(graph.num_groups, device.dtype)
            home[group[::-1]] = device[grouped[::-1]]
            split = home[group] != device[grouped]
            if split.any():
                op = int(grouped[np.argmax(split)])
                return (
                    Verdict.COLOCATION_VIOLATED,
                    f"op {op} leaves its colocation group {graph.op_group[op]}",
                )
        supported = self._supported[np.arange(graph.num_ops), device]
        if not supported.all():
            op = int(np.argmin(supported))
            name = self.cluster.device_names[device[op]]
            return Verdict.UNSUPPORTED_DEVICE, f"op {op} ({graph.kind(op)}) cannot run on {name}"
        return Verdict.OK, ""

    def _refuse_impossible(self) -> None:
        nowhere = ~self.allowed.any(axis=1)
        if nowhere.any():
            op = int(np.argmax(nowhere))
            raise InvalidProblemError(
                f"op {op} {self.graph.op_names[op]!r} ({self.graph.kind(op)}), or an op colocated with it, "
                f"runs on none of the devices of {self.cluster.name or 'the cluster'}; "
                "add a device that supports it"
            )
        if self.objective is Objective.LATENCY:
            return  # there memory only warns, as in the published evaluation
        stream = self.objective is Objective.MAX_LOAD and self.pipeline.micro_batches is None
        need = op_resident_bytes(self.graph) if stream else self.footprint_bytes
        room = np.where(self.allowed, self.cluster.capacity_bytes, 0).max(axis=1)
        op = int(np.argmax(need - room))
        if need[op] > room[op]:
            raise InvalidProblemError(
                f"op {op} {self.graph.op_names[op]!r} alone needs {need[op]} bytes and the largest device "
                f"for it has {room[op]}; use devices with more memory or a smaller batch"
            )
