"""What the core needs of a problem to estimate placements and to show them: laid out once, then never changed."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ... import _core
from ...errors import InvalidCostError
from ...problems import Objective, PlacementProblem
from .blocks import Blocks, build_blocks
from .channels import build_channels
from .features import Units, group_features
from .reward import reference_of

Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]


class Tables:
    """What never changes in the episodes about one problem.

    Attributes:
        problem: Graph, cluster and objective.
        blocks: The groups.
        total_steps: Decisions of an episode.
        num_devices: Number of devices.
        reference: What returns are divided by.
        units: What times are divided by.
        groups: ``GROUP_FIELDS`` of every group, ``[groups, fields] float32``.
        core: All of it for the core, which estimates are made of.

    Args:
        problem: Graph, cluster and objective.
        group_of_op: Group of each op, ``[ops] int32``.
        total_steps: Decisions of an episode; ``None``: one per group.

    Raises:
        InvalidProblemError: No device may run all ops of a group.
        InvalidCostError: All times together could pass 2^63 - 1 ns.
    """

    def __init__(self, problem: PlacementProblem, group_of_op: Int32, total_steps: int | None = None) -> None:
        self.problem = problem
        self.blocks = blocks = build_blocks(problem, group_of_op)
        self.total_steps = total_steps or blocks.num_groups
        self.num_devices = blocks.num_devices
        self.reference = reference_of(problem)
        self.units = Units(self.reference.time_ns, self.reference.time_ns / blocks.num_groups)
        self.groups = group_features(problem, blocks, self.units)
        arrays = {
            **_block_arrays(blocks),
            **_channel_arrays(problem, blocks),
            "capacity_bytes": np.asarray(problem.cluster.capacity_bytes, np.int64),
            "group_fields": self.groups,
        }
        numbers = {
            "reference_ns": self.units.reference_ns,
            "block_ns": self.units.block_ns,
            "reference": self.reference.value,
            "total_steps": self.total_steps,
            "objective": list(Objective).index(problem.objective),
        }
        contiguous = {
            key: np.ascontiguousarray(value) if isinstance(value, np.ndarray) else value
            for key, value in arrays.items()
        }
        try:
            self.core = _core.PlacementTables({**contiguous, **numbers})
        except ValueError as error:
            raise InvalidCostError(
                f"graph {problem.graph.name!r} on {problem.cluster.name!r}: {error}"
            ) from None


def _block_arrays(blocks: Blocks) -> dict[str, Any]:
    """Groups and the tensors between them."""
    rows: dict[tuple[int, ...], int] = {}  # most leads are all zero, and most offsets alike
    flat = list(chain.from_iterable(blocks.inputs))
    lead = [rows.setdefault(lead, len(rows)) if any(lead) else -1 for _, lead in flat]
    offsets: dict[tuple[int, ...], int] = {}
    offset = [-1 if o is None else offsets.setdefault(o, len(offsets)) for o in blocks.slot_offset_ns]
    sources = list(chain.from_iterable(blocks.shared_sources))
    return {
        "num_devices": blocks.num_devices,
        "num_sources": blocks.num_shared_sources,
        "allowed": blocks.allowed,
        "cost_ns": np.array(blocks.cost_ns, np.int64),
        "scheduled": np.array(blocks.scheduled, np.bool_),
        "private_bytes": np.array(blocks.private_bytes, np.int64),
        "inner_peak_bytes": np.array(blocks.inner_peak_bytes, np.int64),
        "input_ptr": _pointer(blocks.inputs),
        "input_tensor": np.array([slot for slot, _ in flat], np.int32),
        "input_lead": np.array(lead, np.int32),
        "lead_ns": np.array(list(rows), np.int64),
        **_lists("output_ptr", "output_tensor", blocks.outputs),
        **_lists("parent_ptr", "parent", blocks.parents),
        **_lists("child_ptr", "child", blocks.children),
        "source_ptr": _pointer(blocks.shared_sources),
        "source": np.array([source for source, _ in sources], np.int32),
        "source_bytes": np.array([size for _, size in sources], np.int64),
        "tensor_bytes": np.array(blocks.slot_bytes, np.int64),
        "tensor_held_bytes": np.array(blocks.slot_held_bytes, np.int64),
        "tensor_readers": np.array(blocks.slot_readers, np.int32),
        "tensor_offset": np.array(offset, np.int32),
        "offset_ns": np.array(list(offsets), np.int64),
    }


def _channel_arrays(problem: PlacementProblem, blocks: Blocks) -> dict[str, Any]:
    """Transfers of those tensors."""
    channels = build_channels(problem.cluster, blocks.slot_bytes)
    return {
        "num_resources": channels.num_resources,
        "num_link_kinds": channels.duration_ns.shape[1],
        "duration_ns": channels.duration_ns,
        "tensor_duration": channels.slot_size,
        "link": channels.link,
        "send": channels.send,
        "receive": channels.receive,
    }


def _pointer(lists: Sequence[Sequence[Any]]) -> Int32:
    """Where each list begins among the items of all, ``[lists + 1]``."""
    return np.cumsum([0, *map(len, lists)], dtype=np.int32)


def _lists(pointer: str, items: str, lists: Sequence[Sequence[int]]) -> dict[str, Int32]:
    """Lists in CSR form, by the names of its two arrays."""
    return {pointer: _pointer(lists), items: np.array(list(chain.from_iterable(lists)), np.int32)}
