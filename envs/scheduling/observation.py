"""Three observations of the same state: of the slots, of the padded whole, and a Gymnasium graph."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from ..._core import PartialOrder, SchedulingView
from ...problems import SchedulingProblem
from ..fields import Field, Float32, box
from ..observers import nbytes_of
from ..padding import PaddedGraph, graph_instance
from .features import (
    CHANGING_FIELDS,
    EDGE_FIELDS,
    FIXED_FIELDS,
    GLOBAL_FIELDS,
    edge_features,
    fixed_features,
    scales_of,
)
from .layout import DONE, READY, build_layout
from .types import SchedulingState

_FIXED, _GLOBALS = len(FIXED_FIELDS), len(GLOBAL_FIELDS)
SLOT_FIELDS = (*FIXED_FIELDS, *CHANGING_FIELDS)


class Tables:
    """What describes a problem and never changes during an episode.

    Attributes:
        problem: The problem.
        num_slots: Number of slots; 0 with ``action="op"``.
        num_nodes: Number of ops to order.
        op: The graph's index of each of them, ``[nodes] int32``.
        reference: What bytes are in units of: the peak of the program order, at least 1.
        fixed: ``FIXED_FIELDS`` of each node, ``[nodes, fields] float32``.
        edges: ``(writer, reader)`` nodes, ``[edges, 2] int32``.
        edge_values: ``EDGE_FIELDS``, ``[edges, fields] float32``.
        view: Writes what changes.
    """

    def __init__(self, problem: SchedulingProblem, num_slots: int) -> None:
        layout = build_layout(problem)
        self.problem, self.num_slots = problem, num_slots
        self.num_nodes, self.op = layout.num_nodes, layout.op
        self.reference = max(problem.reference_bytes, 1)
        scales = scales_of(problem, layout, self.reference)
        self.fixed = fixed_features(problem, layout, scales)
        self.edges, self.edge_values = edge_features(problem, layout, scales)
        self.view = SchedulingView(
            layout.core,
            self.fixed,
            reference_bytes=scales.reference_bytes,
            bound=scales.bound,
            most_reads=scales.most_reads,
            most_children=scales.most_children,
            num_slots=num_slots,
        )

    def globals(self, partial: PartialOrder) -> Float32:
        """``GLOBAL_FIELDS``, ``[fields] float32``."""
        values = np.empty(_GLOBALS, np.float32)
        self.view.write_globals(partial, values)
        return values

    def figures(self, partial: PartialOrder, length: int) -> Float32:
        """``CHANGING_FIELDS`` of ready nodes, 0 for others and for padding, ``[length, fields] float32``."""
        rows = np.zeros((length, len(CHANGING_FIELDS)), np.float32)
        self.view.write_figures(partial, rows)
        return rows


class NodeObserver:
    """A vector about the slots, of one length for any graph.

    ``[slots * len(SLOT_FIELDS) + len(GLOBAL_FIELDS)] float32``: the fields of each slot, slot by slot, 0 for
    those that hold no op; the global fields.
    """

    def __init__(self, tables: Tables) -> None:
        self._view = tables.view
        self.space = node_space(tables.num_slots)
        self._length = len(SLOT_FIELDS) * tables.num_slots + _GLOBALS
        self.nbytes = 4 * self._length

    def observe(self, state: SchedulingState) -> Float32:
        """See :class:`~opgym.envs.observers.Observer`."""
        observation = np.empty(self._length, np.float32)
        self._view.write_slots(state.partial, observation)
        return observation


def padded_graph(tables: Tables, pad_to: tuple[int, int] | None) -> PaddedGraph:
    """What never changes in a dict observation.

    Raises:
        InvalidProblemError: ``pad_to`` is too small.
    """
    return PaddedGraph(
        tables.fixed, FIXED_FIELDS, tables.edges, tables.edge_values, EDGE_FIELDS, pad_to, "ops to order"
    )


def changing_spaces(nodes: int, slots: int) -> dict[str, spaces.Space[Any]]:
    """Spaces of what changes in a dict observation of so many nodes, in the order in which the core writes it."""
    parts: dict[str, spaces.Space[Any]] = {
        "status": spaces.Box(-1, DONE, (nodes,), np.int8),
        "figures": box((nodes,), CHANGING_FIELDS),
        "globals": box((), GLOBAL_FIELDS),
    }
    if slots:
        parts["slots"] = spaces.Box(-1, nodes - 1, (slots,), np.int32)
    return parts


def node_space(slots: int) -> spaces.Box:
    """The space of a vector about so many slots."""
    return box((), (*SLOT_FIELDS * slots, *GLOBAL_FIELDS))


class DictObserver:
    """The whole graph as a flat dict of padded arrays with masks.

    ==================  ==================  =======  ========================================================
    key                 shape               dtype    meaning
    ==================  ==================  =======  ========================================================
    ``nodes``           [nodes, fields]     float32  ``FIXED_FIELDS``; 0 in padding
    ``node_mask``       [nodes]             int8     1: an op, 0: padding
    ``status``          [nodes]             int8     0: waits for others, 1: ready, 2: has run; -1: padding
    ``figures``         [nodes, fields]     float32  ``CHANGING_FIELDS`` of ready ops; 0 for others
    ``edges``           [2, edges]          int32    writer, reader; 0 in padding
    ``edge_features``   [edges, fields]     float32  ``EDGE_FIELDS``
    ``edge_mask``       [edges]             int8     1: an edge, 0: padding
    ``slots``           [slots]             int32    node of each slot, -1: none; not with ``action="op"``
    ``globals``         [fields]            float32  ``GLOBAL_FIELDS``
    ==================  ==================  =======  ========================================================
    """

    def __init__(self, tables: Tables, pad_to: tuple[int, int] | None) -> None:
        self._tables = tables
        self._graph = padded_graph(tables, pad_to)
        self.space = spaces.Dict(
            self._graph.spaces | changing_spaces(self._graph.num_nodes, tables.num_slots)
        )
        self.nbytes = nbytes_of(self.space)

    def observe(self, state: SchedulingState) -> dict[str, NDArray[Any]]:
        """See :class:`~opgym.envs.observers.Observer`."""
        tables = self._tables
        status = np.full(self._graph.num_nodes, -1, np.int8)
        status[: tables.num_nodes] = state.partial.status
        observation = self._graph.arrays()
        observation |= {
            "status": status,
            "figures": tables.figures(state.partial, self._graph.num_nodes),
            "globals": tables.globals(state.partial),
        }
        if tables.num_slots:
            observation["slots"] = np.full(tables.num_slots, -1, np.int32)
            observation["slots"][: len(state.slots)] = state.slots
        return observation


class GraphObserver:
    """The whole graph as a ``GraphInstance``.

    Nodes are the ops to order, ``[nodes, fields] float32``: ``FIXED_FIELDS``, ``CHANGING_FIELDS`` (0 for ops
    that are not ready), ``STATUS_FIELDS``, ``GLOBAL_FIELDS``. Edges carry ``EDGE_FIELDS``; there are none
    (``None``) in a graph without edges.
    """

    #: What a node is, and which slot it is in: the first counts 1, the last 1 / slots, none 0.
    STATUS_FIELDS = (
        Field("is_ready", 0, 1, "flag", "every op that it reads from has run, and it has not"),
        Field("is_done", 0, 1, "flag", "it has run"),
        Field("slot", 0, 1, "share", '(slots - its slot) / slots; 0: none, and with action="op"'),
    )

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        columns = (*SLOT_FIELDS, *self.STATUS_FIELDS, *GLOBAL_FIELDS)
        self._shape = (tables.num_nodes, len(columns))
        self.space = spaces.Graph(box((), columns), box((), EDGE_FIELDS))
        self.nbytes = 4 * int(np.prod(self._shape)) + tables.edges.nbytes + tables.edge_values.nbytes

    def observe(self, state: SchedulingState) -> spaces.GraphInstance:
        """See :class:`~opgym.envs.observers.Observer`."""
        tables, nodes = self._tables, np.zeros(self._shape, np.float32)
        nodes[:, :_FIXED] = tables.fixed
        nodes[:, _FIXED : len(SLOT_FIELDS)] = tables.figures(state.partial, tables.num_nodes)
        status = state.partial.status
        is_ready, is_done, slot = range(len(SLOT_FIELDS), len(SLOT_FIELDS) + len(self.STATUS_FIELDS))
        nodes[:, is_ready], nodes[:, is_done] = status == READY, status == DONE
        for place, node in enumerate(state.slots):
            nodes[node, slot] = (tables.num_slots - place) / tables.num_slots
        nodes[:, -_GLOBALS:] = tables.globals(state.partial)
        return graph_instance(nodes, tables.edges, tables.edge_values)
