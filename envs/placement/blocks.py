"""The groups that an environment decides about, as blocks: what never changes, laid out for speed.

A group is estimated as a block: its ops run back to back, in index order, on one device. Plain Python
tuples and ints are used where one step touches a handful of numbers; numpy would cost more than the
arithmetic.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ...errors import InvalidProblemError
from ...graphs import Graph
from ...problems import PlacementProblem

Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]
_T = TypeVar("_T")


@dataclass(frozen=True)
class Blocks:
    """Groups, and the tensors that cross between them.

    A *slot* is a tensor that an op of one group writes and an op of another group reads. Groups are
    numbered in the order of their first op, which is the order in which they are decided.

    Attributes:
        group_of_op: Group of each op, ``[ops] int32``.
        first_op: First op of each group, ``[groups] int32``.
        allowed: Whether a group may run on a device, ``[groups, devices] bool``; every row has a True.
        cost_ns: Time of each group on each device, ``[groups][devices]``.
        scheduled: Whether a group has an op that runs at all (variables do not), ``[groups]``.
        inputs: For each group, ``(slot, lead)`` of the slots it reads; ``lead[device]`` is the time in ns
            that the block has run before its first op that reads the slot.
        outputs: For each group, the slots that it writes.
        parents: For each group, the groups it reads from.
        children: For each group, the groups that read from it.
        slot_tensor: Tensor of each slot, ``[slots] int32``.
        slot_source: Group that writes each slot, ``[slots]``.
        slot_offset_ns: Time after the start of its block at which a slot is written, ``[slots][devices]``;
            ``None`` for the output of a variable, which is there from the beginning.
        slot_bytes: Size of each slot, ``[slots]``.
        slot_held_bytes: What a slot occupies at home from when it is written until its last reader,
            ``[slots]``; 0 if it is held for the whole step (and counted there) or written into a variable's
            storage.
        slot_readers: Number of groups that read each slot, ``[slots]``.
        private_bytes: Memory that a group brings to its device for the rest of the step: source tensors
            that no other group reads, variables, outputs of the graph, ``[groups]``.
        shared_sources: For each group, ``(source, bytes)`` of the source tensors that other groups read as
            well; resident once on every device with a reader.
        num_shared_sources: Number of those source tensors.
        inner_peak_bytes: Peak of the tensors that live and die within the block, and of workspaces,
            ``[groups]``.
        resident_bytes: All source tensors and variables of a group, ``[groups] int64``.
    """

    group_of_op: Int32
    first_op: Int32
    allowed: NDArray[np.bool_]
    cost_ns: list[tuple[int, ...]]
    scheduled: list[bool]
    inputs: list[tuple[tuple[int, tuple[int, ...]], ...]]
    outputs: list[tuple[int, ...]]
    parents: list[tuple[int, ...]]
    children: list[tuple[int, ...]]
    slot_tensor: Int32
    slot_source: list[int]
    slot_offset_ns: list[tuple[int, ...] | None]
    slot_bytes: list[int]
    slot_held_bytes: list[int]
    slot_readers: list[int]
    private_bytes: list[int]
    shared_sources: list[tuple[tuple[int, int], ...]]
    num_shared_sources: int
    inner_peak_bytes: list[int]
    resident_bytes: Int64

    @property
    def num_groups(self) -> int:
        """Number of groups."""
        return len(self.first_op)

    @property
    def num_devices(self) -> int:
        """Number of devices."""
        return int(self.allowed.shape[1])


def build_blocks(problem: PlacementProblem, group_of_op: Int32) -> Blocks:
    """Lays out the groups of a problem.

    Args:
        problem: Graph, cluster, costs.
        group_of_op: Group of each op, numbered from 0 in order of first op, ``[ops] int32``.

    Raises:
        InvalidProblemError: No device may run all ops of a group.
    """
    graph = problem.graph
    num_groups = int(group_of_op.max()) + 1
    order = np.argsort(group_of_op, kind="stable")  # ops by group, then index
    start = np.searchsorted(group_of_op[order], np.arange(num_groups)).astype(np.int64)
    first_op = order[start].astype(np.int32)
    allowed = np.logical_and.reduceat(problem.allowed[order], start, axis=0)
    _refuse_homeless(problem, group_of_op, allowed)

    # Time within the block before and after each op, per device class (devices of a class share it).
    device_class = problem.cluster.device_class
    cost = problem.class_cost_ns[order]
    after = np.cumsum(cost, axis=0)
    before = after - cost
    base = before[start][group_of_op[order]]
    after_of_op, before_of_op = np.empty_like(cost), np.empty_like(cost)
    after_of_op[order], before_of_op[order] = after - base, before - base
    group_cost = np.add.reduceat(cost, start, axis=0)[:, device_class]

    # Slots, and who reads them. Edges ascend by reader, so the first of a (tensor, group) is the first
    # reader.
    producer, consumer, tensor = graph.edges
    crosses = group_of_op[producer] != group_of_op[consumer]
    reader, edge_tensor = consumer[crosses], tensor[crosses].astype(np.int64)
    _, once = np.unique(edge_tensor * num_groups + group_of_op[reader], return_index=True)
    reader, edge_tensor = reader[once], edge_tensor[once]
    slot_tensor, edge_slot = np.unique(edge_tensor, return_inverse=True)
    slot_producer = graph.tensor_producer[slot_tensor]
    slot_source = group_of_op[slot_producer]

    edge_target = group_of_op[reader]
    by_target = np.lexsort((edge_slot, edge_target))
    leads = _shared_tuples(before_of_op[reader[by_target]][:, device_class])
    pairs = list(zip(edge_slot[by_target].tolist(), leads, strict=True))
    inputs = _cut(pairs, edge_target[by_target], num_groups)
    outputs = _cut(np.argsort(slot_source, kind="stable").tolist(), np.sort(slot_source), num_groups)

    from_variable = graph.is_variable[slot_producer]
    offsets = _shared_tuples(after_of_op[slot_producer][:, device_class])
    slot_offset = [None if home else offset for home, offset in zip(from_variable, offsets, strict=True)]

    is_slot = np.zeros(graph.num_tensors, np.bool_)
    is_slot[slot_tensor] = True
    held = _held_within_step(graph)
    slot_bytes = graph.tensor_bytes[slot_tensor]
    sources = _source_tensors(graph, group_of_op, num_groups)
    produced = graph.tensor_producer >= 0
    stays = produced & ~held & (graph.op_update_of[graph.tensor_producer] < 0)
    private = sources.private_bytes.copy()
    np.add.at(private, group_of_op[graph.tensor_producer[stays]], graph.tensor_bytes[stays])
    variable_output = produced & graph.is_variable[graph.tensor_producer]
    resident = sources.all_bytes.copy()
    owner = group_of_op[graph.tensor_producer[variable_output]]
    np.add.at(resident, owner, graph.tensor_bytes[variable_output])

    runs = np.logical_or.reduceat(~graph.is_variable[order], start)
    parents, children = _neighbours(slot_source[edge_slot], edge_target, num_groups)
    return Blocks(
        group_of_op=group_of_op,
        first_op=first_op,
        allowed=allowed,
        cost_ns=[tuple(row) for row in group_cost.tolist()],
        scheduled=runs.tolist(),
        inputs=inputs,
        outputs=outputs,
        parents=parents,
        children=children,
        slot_tensor=slot_tensor.astype(np.int32),
        slot_source=slot_source.tolist(),
        slot_offset_ns=slot_offset,
        slot_bytes=slot_bytes.tolist(),
        slot_held_bytes=np.where(held[slot_tensor], slot_bytes, 0).tolist(),
        slot_readers=np.bincount(edge_slot, minlength=len(slot_tensor)).tolist(),
        private_bytes=private.tolist(),
        shared_sources=sources.shared,
        num_shared_sources=sources.num_shared,
        inner_peak_bytes=_inner_peaks(graph, order, group_of_op, num_groups, held & ~is_slot),
        resident_bytes=resident,
    )


def _refuse_homeless(problem: PlacementProblem, group_of_op: Int32, allowed: NDArray[np.bool_]) -> None:
    homeless = np.flatnonzero(~allowed.any(axis=1))
    if len(homeless) == 0:
        return
    graph, ops = problem.graph, np.flatnonzero(group_of_op == homeless[0])
    # Ops that rule out different devices meet in this group; name two of them.
    a = int(ops[np.argmin(problem.allowed[ops].sum(axis=1))])
    b = int(ops[np.argmin((problem.allowed[ops] & problem.allowed[a]).sum(axis=1))])
    raise InvalidProblemError(
        f"group {homeless[0]} has no device that may run all of its {len(ops)} ops, among them op {a} "
        f"{graph.op_names[a]!r} ({graph.kind(a)}) and op {b} {graph.op_names[b]!r} ({graph.kind(b)}); "
        "use finer groups, or groups='op'"
    )


def _shared_tuples(rows: Int64) -> list[tuple[int, ...]]:
    """Rows as tuples; equal rows share one object (most leads are all zero)."""
    known: dict[tuple[int, ...], tuple[int, ...]] = {}
    return [known.setdefault(row, row) for row in map(tuple, rows.tolist())]


def _cut(items: list[_T], owner: NDArray[np.integer[Any]], num_groups: int) -> list[tuple[_T, ...]]:
    """Cuts items, sorted by owner, into one tuple per group."""
    bounds = np.searchsorted(owner, np.arange(num_groups + 1)).tolist()
    return [tuple(items[a:b]) for a, b in pairwise(bounds)]


def _held_within_step(graph: Graph) -> NDArray[np.bool_]:
    """Tensors that are allocated and freed within a step, ``[tensors] bool``."""
    producer = graph.tensor_producer
    permanent = graph.is_variable[producer] | graph.tensor_is_output | (graph.op_update_of[producer] >= 0)
    held: NDArray[np.bool_] = (producer >= 0) & ~permanent
    return held


@dataclass(frozen=True)
class _Sources:
    private_bytes: Int64
    shared: list[tuple[tuple[int, int], ...]]
    num_shared: int
    all_bytes: Int64


def _source_tensors(graph: Graph, group_of_op: Int32, num_groups: int) -> _Sources:
    """Splits the source tensors into those that one group reads and those that several groups read."""
    reader = np.repeat(np.arange(graph.num_ops), np.diff(graph.input_ptr))
    from_source = graph.tensor_producer[graph.input_tensor] < 0
    key = graph.input_tensor[from_source].astype(np.int64) * num_groups + group_of_op[reader[from_source]]
    key = np.unique(key)
    tensor, group = key // num_groups, key % num_groups
    size = graph.tensor_bytes[tensor]
    readers = np.bincount(tensor, minlength=graph.num_tensors)[tensor]
    private, everything = np.zeros(num_groups, np.int64), np.zeros(num_groups, np.int64)
    np.add.at(everything, group, size)
    np.add.at(private, group[readers == 1], size[readers == 1])
    common = readers > 1
    names, source = np.unique(tensor[common], return_inverse=True)
    by_group = np.argsort(group[common], kind="stable")
    items = list(zip(source[by_group].tolist(), size[common][by_group].tolist(), strict=True))
    return _Sources(private, _cut(items, group[common][by_group], num_groups), len(names), everything)


def _inner_peaks(
    graph: Graph, order: Int64, group_of_op: Int32, num_groups: int, inner: NDArray[np.bool_]
) -> list[int]:
    """Plays each block once and takes the peak of its inner tensors and workspaces, ``[groups]``."""
    peaks, live, current = [0] * num_groups, 0, -1
    size = np.where(inner, graph.tensor_bytes, 0).tolist()
    remaining = np.diff(graph.consumer_ptr).tolist()
    output_ptr, input_ptr = graph.output_ptr.tolist(), graph.input_ptr.tolist()
    input_tensor, workspace = graph.input_tensor.tolist(), graph.op_workspace_bytes.tolist()
    group = group_of_op.tolist()
    for op in order.tolist():
        if group[op] != current:
            current, live = group[op], 0
        outputs = range(output_ptr[op], output_ptr[op + 1])
        live += sum(size[t] for t in outputs)
        peaks[current] = max(peaks[current], live + workspace[op])
        for t in input_tensor[input_ptr[op] : input_ptr[op + 1]]:
            remaining[t] -= 1
            if remaining[t] == 0:
                live -= size[t]
        live -= sum(size[t] for t in outputs if remaining[t] == 0)
    return peaks


def _neighbours(
    source: Int32, target: Int32, num_groups: int
) -> tuple[list[tuple[int, ...]], list[tuple[int, ...]]]:
    """Parents and children of each group, ascending, each once."""
    edge = np.unique(source.astype(np.int64) * num_groups + target)
    source, target = (edge // num_groups).astype(np.int32), (edge % num_groups).astype(np.int32)
    children = _cut(target.tolist(), source, num_groups)
    by_target = np.argsort(target, kind="stable")
    parents = _cut(source[by_target].tolist(), target[by_target], num_groups)
    return parents, children
