"""Three observations of the same state: of the slots, of the padded whole, and a Gymnasium graph."""

from __future__ import annotations

from math import log1p
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from ...problems import SchedulingProblem
from ..fields import Field, Float32, box
from ..observers import dict_nbytes
from ..padding import PaddedGraph, graph_instance
from .features import (
    CHANGING_FIELDS,
    EDGE_FIELDS,
    FIXED_FIELDS,
    GLOBAL_FIELDS,
    LIMIT,
    Figures,
    Scales,
    edge_features,
    fixed_features,
)
from .layout import Layout
from .partial_order import DONE, READY
from .types import SchedulingState

_FIXED, _GLOBALS = len(FIXED_FIELDS), len(GLOBAL_FIELDS)
SLOT_FIELDS = (*FIXED_FIELDS, *CHANGING_FIELDS)


class Tables:
    """What observations need and never changes during an episode.

    Attributes:
        num_slots: Number of slots; 0 with ``action="op"``.
        fixed: ``FIXED_FIELDS`` of each node, ``[nodes, fields] float32``.
        figures: Shows what changes.
        edges: ``(writer, reader)`` nodes, ``[edges, 2] int32``.
        edge_values: ``EDGE_FIELDS``, ``[edges, fields] float32``.
    """

    def __init__(self, problem: SchedulingProblem, layout: Layout, scales: Scales, num_slots: int) -> None:
        self.num_slots, self.num_nodes = num_slots, layout.num_nodes
        self.fixed = fixed_features(problem, layout, scales)
        self.figures = Figures(scales)
        self.edges, self.edge_values = edge_features(problem, layout, scales)
        self._reference, self._bound = scales.reference_bytes, scales.bound
        self._log_nodes = log1p(layout.num_nodes)

    def globals(self, state: SchedulingState) -> tuple[float, ...]:
        """``GLOBAL_FIELDS``."""
        partial = state.partial
        ready = len(partial.ready)
        hidden = (ready - len(state.slots)) / ready if self.num_slots and ready else 0.0
        return (
            min(partial.live_bytes / self._reference, LIMIT),
            min(partial.peak_bytes / self._reference, LIMIT),
            self._bound,
            len(partial.order) / self.num_nodes,
            log1p(ready) / self._log_nodes,
            hidden,
        )

    def ready_rows(self, state: SchedulingState) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """All ready nodes in order of rank, ``[ready]``, and their ``CHANGING_FIELDS``, ``[ready, fields]``."""
        nodes = np.array(state.partial.ranked(), np.intp)
        rows = np.empty((len(nodes), len(CHANGING_FIELDS)))
        self.figures.write(state.partial, nodes, rows)
        return nodes, rows


class NodeObserver:
    """A vector about the slots, of one length for any graph.

    ``[slots * len(SLOT_FIELDS) + len(GLOBAL_FIELDS)] float32``: the fields of each slot, slot by slot, 0 for
    those that hold no op; the global fields.
    """

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self.space = box((), (*SLOT_FIELDS * tables.num_slots, *GLOBAL_FIELDS))
        self._length = len(SLOT_FIELDS) * tables.num_slots + _GLOBALS
        self.nbytes = 4 * self._length

    def observe(self, state: SchedulingState) -> Float32:
        """See :class:`~opgym.envs.observers.Observer`."""
        tables, observation = self._tables, np.zeros(self._length, np.float32)
        nodes = np.array(state.slots, np.intp)
        rows = observation[: len(nodes) * len(SLOT_FIELDS)].reshape(len(nodes), len(SLOT_FIELDS))
        rows[:, :_FIXED] = tables.fixed.take(nodes, 0)
        tables.figures.write(state.partial, nodes, rows[:, _FIXED:])
        observation[-_GLOBALS:] = tables.globals(state)
        return observation


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
        self._graph = PaddedGraph(
            tables.fixed, FIXED_FIELDS, tables.edges, tables.edge_values, EDGE_FIELDS, pad_to, "ops to order"
        )
        nodes = self._graph.num_nodes
        parts = self._graph.spaces | {
            "status": spaces.Box(-1, DONE, (nodes,), np.int8),
            "figures": box((nodes,), CHANGING_FIELDS),
            "globals": box((), GLOBAL_FIELDS),
        }
        if tables.num_slots:
            parts["slots"] = spaces.Box(-1, nodes - 1, (tables.num_slots,), np.int32)
        self.space = spaces.Dict(parts)
        self.nbytes = dict_nbytes(self.space)

    def observe(self, state: SchedulingState) -> dict[str, NDArray[Any]]:
        """See :class:`~opgym.envs.observers.Observer`."""
        tables = self._tables
        status = np.full(self._graph.num_nodes, -1, np.int8)
        status[: tables.num_nodes] = np.frombuffer(state.partial.status, np.int8)
        figures = np.zeros((self._graph.num_nodes, len(CHANGING_FIELDS)), np.float32)
        ready, rows = tables.ready_rows(state)
        figures[ready] = rows
        observation = self._graph.arrays()
        observation |= {
            "status": status,
            "figures": figures,
            "globals": np.array(tables.globals(state), np.float32),
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
        ready, rows = tables.ready_rows(state)
        nodes[ready, _FIXED : len(SLOT_FIELDS)] = rows
        status = np.frombuffer(state.partial.status, np.int8)
        is_ready, is_done, slot = range(len(SLOT_FIELDS), len(SLOT_FIELDS) + len(self.STATUS_FIELDS))
        nodes[:, is_ready], nodes[:, is_done] = status == READY, status == DONE
        for place, node in enumerate(state.slots):
            nodes[node, slot] = (tables.num_slots - place) / tables.num_slots
        nodes[:, -_GLOBALS:] = tables.globals(state)
        return graph_instance(nodes, tables.edges, tables.edge_values)
