"""What our own policy reads of a graph: where each op can stand, and who must come before whom."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ....graphs import Graph
from ....problems import SchedulingProblem
from ...heuristics.orders import BreadthFirst, DepthFirst, GreedyFreedBytes, PostOrder, SethiUllman
from ...heuristics.orders.dependencies import takes_memory

#: Rules whose orders the policy sees, each as the position of every op; none of them is evaluated.
RULES = (GreedyFreedBytes, DepthFirst, PostOrder, SethiUllman, BreadthFirst)
#: Fields of a node; bytes and times are over their mean in the graph, positions from 0 to 1.
NODE_FIELDS = (
    "read_bytes", "written_bytes", "shared_read_bytes", "only_read_bytes", "resident_bytes", "time",
    "depth", "height", "length", "time_before", "time_behind",
    "earliest", "latest", "log_before", "log_behind", "bytes_before", "log_inputs", "log_readers",
    "is_source", "is_sink", "is_variable", "is_anchor", "log_ops",
    *(f"position in {rule.name}" for rule in RULES),
)  # fmt: skip
#: Weights of an edge: equal shares of the op that hears, and the bytes that one reader of the tensor accounts for.
EDGE_WEIGHTS = ("share", "bytes")
#: How two ops are related: not at all, the column runs before the row, or behind it.
UNRELATED, BEFORE, BEHIND = range(3)


@dataclass(frozen=True, eq=False)
class Structure:
    """A graph as numbers that do not depend on its scale.

    Attributes:
        nodes: ``NODE_FIELDS`` of each op, ``[ops, fields] float32``.
        edges: Op that writes and op that reads, of each read of a produced tensor, ``[2, edges] int64``.
        to_reader: ``EDGE_WEIGHTS`` of what a reader hears, ``[edges, 2] float32``.
        to_writer: The same of what a writer hears.
        relation: How each two ops are related, ``[ops, ops] uint8``.
        anchor: The op that stays on device 0 when solutions are mirrored.
    """

    nodes: NDArray[np.float32]
    edges: NDArray[np.int64]
    to_reader: NDArray[np.float32]
    to_writer: NDArray[np.float32]
    relation: NDArray[np.uint8]
    anchor: int

    @classmethod
    def of(cls, graph: Graph, op_time_ns: ArrayLike) -> Structure:
        """The structure of a graph.

        Args:
            graph: The graph.
            op_time_ns: Mean over devices of the time of each op, ``[ops]``.
        """
        ops = graph.num_ops
        writer, reader, tensor = (np.asarray(column, np.int64) for column in graph.edges)
        before = _ancestors(ops, writer, reader)
        written = takes_memory(graph)
        bytes_of = _over_mean(np.where(written, graph.tensor_bytes, 0), written)
        readers = np.maximum(np.diff(graph.consumer_ptr), 1)
        time = _over_mean(np.asarray(op_time_ns, np.float64))
        produced = graph.tensor_producer >= 0
        resident = produced & ~written
        all_bytes = _over_mean(graph.tensor_bytes.astype(np.float64), produced)

        def by_op(op: NDArray[np.integer], values: NDArray[np.float64]) -> NDArray[np.float64]:
            return np.bincount(op, values, minlength=ops).astype(np.float64)

        output = by_op(graph.tensor_producer[produced], bytes_of[produced])
        inputs, outputs = by_op(reader, np.ones(len(reader))), by_op(writer, np.ones(len(writer)))
        num_before, num_behind = before.sum(1), before.sum(0)
        depth, height = _longest(ops, writer, reader, np.ones(ops))
        time_before, time_behind = _longest(ops, writer, reader, time)
        most_depth = max(float((depth + height).max()), 1.0)
        most_time = max(float((time_before + time_behind + time).max()), 1e-9)
        anchor = int(np.argmax(output))
        fields = [
            by_op(reader, bytes_of[tensor]), output,
            by_op(reader, (bytes_of / readers)[tensor]),
            by_op(reader, np.where(readers == 1, bytes_of, 0)[tensor]),
            by_op(graph.tensor_producer[resident], all_bytes[resident]), time,
            depth / most_depth, height / most_depth, (depth + height) / most_depth,
            time_before / most_time, time_behind / most_time,
            num_before / ops, 1 - num_behind / ops, np.log1p(num_before), np.log1p(num_behind),
            np.where(before, output, 0).sum(1) / max(float(output.sum()), 1e-9), np.log1p(inputs), np.log1p(outputs),
            inputs == 0, outputs == 0, graph.is_variable, np.arange(ops) == anchor,
            np.full(ops, np.log(ops)), *_positions(graph),
        ]  # fmt: skip
        weight = (bytes_of / readers)[tensor]
        relation = np.full((ops, ops), UNRELATED, np.uint8)
        relation[before], relation[before.T] = BEFORE, BEHIND
        return cls(
            np.stack(fields, axis=1).astype(np.float32),
            np.stack([writer, reader]),
            np.stack([1 / inputs[reader], weight], axis=1).astype(np.float32),
            np.stack([1 / outputs[writer], weight], axis=1).astype(np.float32),
            relation,
            anchor,
        )


def _over_mean(values: NDArray[np.number], counted: NDArray[np.bool_] | None = None) -> NDArray[np.float64]:
    chosen = values if counted is None else values[counted]
    mean = float(chosen.mean()) if len(chosen) else 0.0
    return np.asarray(values, np.float64) / mean if mean > 0 else np.zeros(len(values))


def _ancestors(ops: int, writer: NDArray[np.int64], reader: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which ops (columns) must end before which (rows) can start, ``[ops, ops] bool``; ops are in topological order."""
    before = np.zeros((ops, ops), np.bool_)
    for op, inputs in enumerate(_neighbours(ops, reader, writer)):
        if len(inputs):
            before[op] = before[inputs].any(axis=0)
            before[op, inputs] = True
    return before


def _longest(
    ops: int, writer: NDArray[np.int64], reader: NDArray[np.int64], weight: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Weight of the heaviest path that ends before each op, and of that which begins behind it, ``[ops] float64``."""
    ahead, behind = np.zeros(ops), np.zeros(ops)
    for op, inputs in enumerate(_neighbours(ops, reader, writer)):
        if len(inputs):
            ahead[op] = (ahead[inputs] + weight[inputs]).max()
    for op, readers in reversed(list(enumerate(_neighbours(ops, writer, reader)))):
        if len(readers):
            behind[op] = (behind[readers] + weight[readers]).max()
    return ahead, behind


def _neighbours(ops: int, of: NDArray[np.int64], others: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """The other ends of the edges of each op."""
    order = np.argsort(of, kind="stable")
    return np.split(others[order], np.searchsorted(of[order], np.arange(1, ops)))


def _positions(graph: Graph) -> list[NDArray[np.float64]]:
    """Where each rule puts each op, from 0 to 1; one half for variables, which have no place in an order."""
    problem = SchedulingProblem(graph)
    found = []
    for rule in RULES:
        position = np.full(graph.num_ops, 0.5)
        order = rule().order(problem)
        position[order] = (np.arange(len(order)) + 0.5) / len(order)
        found.append(position)
    return found
