"""Peak memory of an order as a model over pairs: which of two ops comes first.

Two ops that no path joins get one Boolean, and transitivity makes an order of them. The memory while an op runs is
then linear: a tensor is live at an op if its producer comes before and one of its readers after. Unlike a model
over positions, nothing shifts: what is decided about two ops stays true wherever they stand, so that refutations
are short.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ....problems import SchedulingProblem

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

Bools = NDArray[np.bool_]


def ancestors(problem: SchedulingProblem) -> tuple[Bools, Bools]:
    """Which ops must come before which: over edges, and over paths.

    Returns:
        Two arrays ``[schedulable ops, schedulable ops] bool``, ``[later, earlier]``.
    """
    graph, ops = problem.graph, problem.ops
    index = np.full(graph.num_ops, -1)
    index[ops] = np.arange(len(ops))
    producer, consumer, _ = graph.edges
    scheduled = index[producer] >= 0
    parents = np.zeros((len(ops), len(ops)), np.bool_)
    parents[index[consumer[scheduled]], index[producer[scheduled]]] = True
    closed = parents.copy()
    for op in range(len(ops)):  # producers have lower indices
        closed[op] |= closed[parents[op]].any(axis=0)
    return parents, closed


def free_triples(closed: Bools) -> int:
    """Number of unordered triples of ops that no path joins: most of the size of the model."""
    free = ~(closed | closed.T)
    np.fill_diagonal(free, False)
    free_number = free.astype(np.float64)
    return round(float(((free_number @ free_number) * free_number).sum()) / 6)


@dataclass(frozen=True)
class _Tensor:
    producer: int
    readers: tuple[int, ...]
    size: int  # in units of the model
    kept: bool


class OrderModel:
    """The CP-SAT model of one problem.

    Args:
        problem: The problem.
        cp: The module ``ortools.sat.python.cp_model``.

    Attributes:
        unit_bytes: Sizes in the model are multiples of this.
    """

    def __init__(self, problem: SchedulingProblem, cp: Any) -> None:
        self._problem, self._cp = problem, cp
        self._parents, self._closed = ancestors(problem)
        self._count = len(problem.ops)
        self._index = {int(op): i for i, op in enumerate(problem.ops)}
        graph = problem.graph
        sizes = [*graph.tensor_bytes.tolist(), *graph.op_workspace_bytes.tolist()]
        self.unit_bytes = math.gcd(*sizes) or 1
        self._tensors = self._live_tensors()
        self._model: cp_model.CpModel = cp.CpModel()
        self._literal: list[list[Any]] = []
        self._hints: list[tuple[Any, Any]] = []  # variable, and what it is for given positions
        self._add_pairs()
        self._peak = self._model.new_int_var(
            0, sum(t.size for t in self._tensors) + self._largest_workspace, "peak"
        )
        self._add_memory()

    # --- use

    def instance(
        self, low_bytes: int, high_bytes: int, near: NDArray[np.int32], *, minimise: bool
    ) -> cp_model.CpModel:
        """The model for peaks within limits.

        Args:
            low_bytes: No order has a smaller peak.
            high_bytes: Only orders with at most this peak are wanted.
            near: A good order to start from, ``[schedulable ops]``.
            minimise: Whether the best is wanted, not just any.
        """
        model = self._model.clone()
        model.add(self._peak >= -(-low_bytes // self.unit_bytes))
        model.add(self._peak <= high_bytes // self.unit_bytes)
        if minimise:
            model.minimize(self._peak)
        position = np.empty(self._count, np.int64)
        position[[self._index[int(op)] for op in near]] = np.arange(self._count)
        for variable, holds in self._hints:
            model.add_hint(variable, bool(holds(position)))
        return model

    def order(self, values: cp_model.CpSolver | cp_model.CpSolverSolutionCallback) -> NDArray[np.int32]:
        """The order of a solution, ``[schedulable ops] int32``."""
        count = self._count
        earlier = self._closed.copy()
        for i in range(count):
            for j in range(i + 1, count):
                literal = self._literal[i][j]
                if not isinstance(literal, bool):
                    first = values.boolean_value(literal)
                    earlier[j, i], earlier[i, j] = first, not first
        return self._problem.ops[np.argsort(earlier.sum(axis=1), kind="stable")]

    # --- pairs

    def _add_pairs(self) -> None:
        """A literal "i comes before j" for every pair; ``True`` or ``False`` where a path says so."""
        model, count, closed = self._model, self._count, self._closed
        literal: list[list[Any]] = [[False] * count for _ in range(count)]
        for i in range(count):
            for j in range(i + 1, count):
                if closed[j, i]:
                    literal[i][j] = True
                else:  # never closed[i, j]: ops are in a topological order
                    literal[i][j] = model.new_bool_var(f"before_{i}_{j}")
                    literal[j][i] = ~literal[i][j]
                    self._hints.append((literal[i][j], _comes_first(i, j)))
        self._literal = literal
        free = ~(closed | closed.T)
        np.fill_diagonal(free, False)
        for i in range(count):
            for j in np.flatnonzero(self._parents[:, i]).tolist():
                for k in np.flatnonzero(free[i] & free[j]).tolist():
                    model.add_implication(literal[j][k], literal[i][k])
        for i in range(count):
            later = np.flatnonzero(free[i, i + 1 :]) + i + 1
            for j in later.tolist():
                for k in later[free[j, later] & (later > j)].tolist():
                    model.add_bool_or(~literal[i][j], ~literal[j][k], literal[i][k])
                    model.add_bool_or(literal[i][j], literal[j][k], ~literal[i][k])

    # --- memory

    @property
    def _largest_workspace(self) -> int:
        return int(self._problem.graph.op_workspace_bytes.max(initial=0)) // self.unit_bytes

    def _live_tensors(self) -> list[_Tensor]:
        """What is neither resident nor empty."""
        graph, found = self._problem.graph, []
        for tensor in range(graph.num_tensors):
            producer = int(graph.tensor_producer[tensor])
            size = int(graph.tensor_bytes[tensor]) // self.unit_bytes
            if producer < 0 or not size or graph.is_variable[producer] or graph.op_update_of[producer] >= 0:
                continue
            readers = tuple(self._index[reader] for reader in graph.consumers(tensor).tolist())
            kept = bool(graph.tensor_is_output[tensor])
            found.append(_Tensor(self._index[producer], readers, size, kept))
        return found

    def _add_memory(self) -> None:
        model, graph = self._model, self._problem.graph
        saved = self._in_place() if graph.in_place else {}
        known: dict[Any, Any] = {}
        for op in range(self._count):
            terms: list[Any] = []
            constant = int(graph.op_workspace_bytes[self._problem.ops[op]]) // self.unit_bytes
            for tensor in self._tensors:
                if tensor.producer == op or op in tensor.readers:
                    constant += tensor.size
                    continue
                live = self._live(op, tensor, known)
                if live is True:
                    constant += tensor.size
                elif live is not False:
                    terms.append(tensor.size * live)
            if op in saved:
                size, literal = saved[op]
                terms.append(-size * literal)
            model.add(sum(terms) + constant <= self._peak)

    def _live(self, op: int, tensor: _Tensor, known: dict[Any, Any]) -> Any:
        """A literal that must hold if a tensor of others is live while an op runs."""
        begun = self._literal[tensor.producer][op]
        if begun is False or tensor.kept:
            return begun
        needed = [self._literal[op][reader] for reader in tensor.readers]
        if any(literal is True for literal in needed):
            return begun
        needed = [literal for literal in needed if literal is not False]
        if not needed or (len(needed) == 1 and begun is True):
            return needed[0] if needed else False
        key = (op, tensor.producer, tensor.readers)
        if key not in known:
            live = self._model.new_bool_var(f"live_{op}")
            for literal in needed:
                self._model.add_bool_or(live, ~literal, *(() if begun is True else (~begun,)))
            self._hints.append((live, _is_between(op, tensor.producer, tensor.readers)))
            known[key] = live
        return known[key]

    def _in_place(self) -> dict[int, tuple[int, Any]]:
        """Ops that may write over an input: bytes saved, and a literal that is only true if they do."""
        graph, found = self._problem.graph, {}
        for op, public in enumerate(self._problem.ops.tolist()):
            outputs = graph.outputs(public)
            if not graph.op_elementwise[public] or len(outputs) != 1 or graph.op_update_of[public] >= 0:
                continue
            size = int(graph.tensor_bytes[outputs[0]]) // self.unit_bytes
            same = [t for t in self._tensors if op in t.readers and t.size == size and not t.kept]
            takes = [literal for t in same if (literal := self._reads_last(op, t)) is not None]
            if takes and size:
                saves = self._model.new_bool_var(f"in_place_{op}")
                self._model.add_bool_or(~saves, *takes)
                self._hints.append((saves, _last_of_any(op, [tensor.readers for tensor in same])))
                found[op] = (size, saves)
        return found

    def _reads_last(self, op: int, tensor: _Tensor) -> Any:
        """A literal that is only true if an op is the last reader; ``None`` where it cannot be."""
        others = [self._literal[other][op] for other in tensor.readers if other != op]
        if any(literal is False for literal in others):
            return None
        last = self._model.new_bool_var(f"last_{op}")
        for literal in others:
            if literal is not True:
                self._model.add_implication(last, literal)
        self._hints.append((last, _last_of_any(op, [tensor.readers])))
        return last


def _comes_first(i: int, j: int) -> Any:
    return lambda position: position[i] < position[j]


def _is_between(op: int, producer: int, readers: tuple[int, ...]) -> Any:
    return lambda position: position[producer] < position[op] < max(position[reader] for reader in readers)


def _last_of_any(op: int, groups: list[tuple[int, ...]]) -> Any:
    return lambda position: any(position[op] == max(position[reader] for reader in group) for group in groups)
