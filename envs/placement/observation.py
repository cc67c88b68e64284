"""Three observations of the same state: about one group, the padded whole, and a Gymnasium graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from ..fields import Field, Float32, box, clipped
from ..observers import nbytes_of
from ..padding import PaddedGraph, graph_instance
from .features import (
    DEVICE_FIELDS,
    EDGE_FIELDS,
    GROUP_FIELDS,
    LIMIT,
    PROGRESS,
    edge_features,
)
from .tables import Tables
from .types import PlacementState

Int32 = NDArray[np.int32]

#: Fields of a group that stand for each device once: its time there, and whether it may run there.
PER_DEVICE_FIELDS = (
    Field("cost", 0, LIMIT, "mean block", "time of the group on the device"),
    Field("allowed", 0, 1, "flag", "the group may run on the device"),
)


class NodeObserver:
    """A vector about the group to decide and each device, of one length for any graph on as many devices.

    ``[devices * len(DEVICE_FIELDS) + len(GROUP_FIELDS) + 1] float32``: the fields of each device, device by
        device;
    the fields of the group (0 after the end); the progress.
    """

    def __init__(self, tables: Tables) -> None:
        self.space = node_space(tables.num_devices)
        self.nbytes = 4 * int(np.prod(self.space.shape))

    def observe(self, state: PlacementState) -> Float32:
        """See :class:`~opgym.envs.observers.Observer`."""
        return state.estimate.node(state.device, state.group, state.step)


@dataclass(frozen=True)
class Whole:
    """The groups of a graph as arrays, the same at every step.

    Attributes:
        nodes: ``GROUP_FIELDS``, then each of ``PER_DEVICE_FIELDS`` on every device, ``[groups, fields]
            float32``.
        columns: The fields of a node.
        edges: ``(writer, reader)``, ``[edges, 2] int32``.
        edge_values: ``EDGE_FIELDS``, ``[edges, fields] float32``.
    """

    nodes: Float32
    columns: tuple[Field, ...]
    edges: Int32
    edge_values: Float32


def whole_graph(tables: Tables) -> Whole:
    """Lays out the groups as nodes and the tensors between them as edges."""
    blocks, units = tables.blocks, tables.units
    cost = np.array(blocks.cost_ns, np.float64).reshape(blocks.num_groups, -1) / units.block_ns
    per_device = tuple(f for f in PER_DEVICE_FIELDS for _ in range(tables.num_devices))
    nodes = np.concatenate([tables.groups, cost, blocks.allowed], axis=1)
    columns = (*GROUP_FIELDS, *per_device)
    edges, edge_values = edge_features(tables.problem, blocks, units)
    return Whole(clipped(nodes, columns), columns, edges, edge_values)


def padded_graph(tables: Tables, pad_to: tuple[int, int] | None) -> PaddedGraph:
    """What never changes of a dict observation.

    Raises:
        InvalidProblemError: ``pad_to`` is too small.
    """
    whole = whole_graph(tables)
    return PaddedGraph(
        whole.nodes,
        whole.columns,
        whole.edges,
        whole.edge_values,
        EDGE_FIELDS,
        pad_to,
        "groups",
        ", or coarser groups",
    )


def changing_spaces(num_nodes: int, num_devices: int) -> dict[str, spaces.Space[Any]]:
    """What changes of a dict observation, in the order in which a batch of the core writes it."""
    return {
        "placement": spaces.Box(-1, num_devices - 1, (num_nodes,), np.int32),
        "devices": box((num_devices,), DEVICE_FIELDS),
        "current": spaces.Box(-1, num_nodes - 1, (1,), np.int32),
        "progress": box((), (PROGRESS,)),
    }


def node_space(num_devices: int) -> spaces.Box:
    """Of the observation about one group."""
    return box((), (*(DEVICE_FIELDS * num_devices), *GROUP_FIELDS, PROGRESS))


class DictObserver:
    """The whole graph as a flat dict of padded arrays with masks.

    ==================  ===========================  =======  ============================================
    key                 shape                        dtype    meaning
    ==================  ===========================  =======  ============================================
    ``nodes``           [nodes, fields]              float32  ``GROUP_FIELDS``, cost and allowed per device
    ``node_mask``       [nodes]                      int8     1: a group, 0: padding
    ``placement``       [nodes]                      int32    device; -1: not decided yet, or padding
    ``edges``           [2, edges]                   int32    writer, reader; 0 in padding
    ``edge_features``   [edges, fields]              float32  ``EDGE_FIELDS``
    ``edge_mask``       [edges]                      int8     1: an edge, 0: padding
    ``devices``         [devices, fields]            float32  ``DEVICE_FIELDS`` for the group to decide
    ``current``         [1]                          int32    group to decide; -1: none
    ``progress``        [1]                          float32  share of the decisions taken
    ==================  ===========================  =======  ============================================
    """

    def __init__(self, tables: Tables, pad_to: tuple[int, int] | None) -> None:
        self._tables = tables
        self._graph = padded_graph(tables, pad_to)
        changing = changing_spaces(self._graph.num_nodes, tables.num_devices)
        self.space = spaces.Dict({**self._graph.spaces, **changing})
        self.nbytes = nbytes_of(self.space)

    def observe(self, state: PlacementState) -> dict[str, NDArray[Any]]:
        """See :class:`~opgym.envs.observers.Observer`."""
        placement = np.full(self._graph.num_nodes, -1, np.int32)
        placement[: len(state.device)] = state.device
        rows = state.estimate.device_rows(state.device, state.group)
        return {
            **self._graph.arrays(),
            "placement": placement,
            "devices": rows.reshape(-1, len(DEVICE_FIELDS)),
            "current": np.array([state.group], np.int32),
            "progress": np.array([state.step / self._tables.total_steps], np.float32),
        }


class GraphObserver:
    """The whole graph as a ``GraphInstance``.

    Nodes are the groups, ``[groups, fields] float32``: the fields of ``nodes`` in :class:`DictObserver`,
    then whether the group is on each device, whether it is to be decided now, ``DEVICE_FIELDS`` of every
    device (0 for all other groups), the progress. Edges carry ``EDGE_FIELDS``; there are none (``None``) in
    a graph without edges.
    """

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._whole = whole_graph(tables)
        devices = tables.num_devices
        self._placement_column = len(self._whole.columns)
        self._current_column = self._placement_column + devices
        placed, current = Field("placed", 0, 1, "flag", ""), Field("to_decide", 0, 1, "flag", "")
        columns = (*self._whole.columns, *(placed,) * devices, current, *DEVICE_FIELDS * devices, PROGRESS)
        self._shape = (len(self._whole.nodes), len(columns))
        self.space = spaces.Graph(box((), columns), box((), EDGE_FIELDS))
        self.nbytes = (
            4 * int(np.prod(self._shape)) + self._whole.edges.nbytes + self._whole.edge_values.nbytes
        )

    def observe(self, state: PlacementState) -> spaces.GraphInstance:
        """See :class:`~opgym.envs.observers.Observer`."""
        whole, nodes = self._whole, np.zeros(self._shape, np.float32)
        nodes[:, : self._placement_column] = whole.nodes
        placed = np.flatnonzero(state.device >= 0)
        nodes[placed, self._placement_column + state.device[placed]] = 1
        if state.group >= 0:
            nodes[state.group, self._current_column] = 1
            nodes[state.group, self._current_column + 1 : -1] = state.estimate.device_rows(
                state.device, state.group
            )
        nodes[:, -1] = state.step / self._tables.total_steps
        return graph_instance(nodes, whole.edges, whole.edge_values)
