"""In which order one device runs its ops, for peak memory: the scheduling problem and its solutions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidProblemError
from ..graphs import Graph
from ..graphs.order_peak import peak_of_order
from ..outcome import Outcome, Verdict
from .bounds import Bound
from .footprints import resident_tensors
from .order_bounds import order_bound


@dataclass(frozen=True, eq=False)
class Order:
    """A solution of a :class:`SchedulingProblem`.

    Attributes:
        op: Every op that is no variable, each once, in the order in which the device runs them,
            ``[schedulable ops] int``.
    """

    op: NDArray[Any]


@dataclass(frozen=True, eq=False)
class SchedulingProblem:
    """A graph on one device; the objective is the dynamic peak of its memory (resident bytes apart).

    Which bytes are resident (parameters, inputs, constants, variables) does not depend on the order, so they are
    reported beside the value and not in it. Device and order together are a :class:`PlacementProblem`, whose
    placements carry priorities.

    Attributes:
        graph: The computation graph.

    Raises:
        InvalidProblemError: The graph has nothing to schedule: all its ops are variables.
    """

    graph: Graph

    #: Unit of the value.
    unit = "bytes"

    def __post_init__(self) -> None:
        if self.graph.is_variable.all():
            raise InvalidProblemError(
                f"graph {self.graph.name!r} has only variables; there is nothing to order"
            )

    @cached_property
    def ops(self) -> NDArray[np.int32]:
        """The ops to order, ascending: all that are no variables, ``[schedulable ops] int32``."""
        return np.flatnonzero(~self.graph.is_variable).astype(np.int32)

    @cached_property
    def resident_bytes(self) -> int:
        """Bytes that stay on the device from start to end, whatever the order."""
        return int(self.graph.tensor_bytes[resident_tensors(self.graph)].sum())

    @cached_property
    def reference_bytes(self) -> int:
        """Peak of the program order: what rewards and ratios are relative to."""
        return peak_of_order(self.graph, self.ops)

    @cached_property
    def _bound(self) -> Bound:
        return order_bound(self)

    def lower_bound(self) -> Bound:
        """A peak that no order can beat."""
        return self._bound

    def evaluate(self, solution: Order) -> Outcome:
        """Judges an order; an illegal one gets a verdict and the value ``inf``."""
        verdict, reason = self._legality(solution)
        if verdict is not Verdict.OK:
            return Outcome(float("inf"), self.unit, verdict, details={"reason": reason})
        peak = peak_of_order(self.graph, solution.op)
        details = {"peak_bytes": [peak + self.resident_bytes], "resident_bytes": [self.resident_bytes]}
        return Outcome(float(peak), self.unit, details=details)

    def _legality(self, solution: Order) -> tuple[Verdict, str]:
        """The first rule that an order breaks, and where."""
        graph, order = self.graph, np.asarray(solution.op)
        if order.shape != self.ops.shape:
            return Verdict.WRONG_LENGTH, f"the order has shape {order.shape}; expected {self.ops.shape}"
        if not np.issubdtype(order.dtype, np.integer):
            return Verdict.ILLEGAL_ORDER, f"the order has dtype {order.dtype}; expected integers"
        if not np.array_equal(np.sort(order), self.ops):
            missing = np.setdiff1d(self.ops, order)
            return (
                Verdict.ILLEGAL_ORDER,
                f"op {missing[0]} is missing; every op that is no variable runs once",
            )
        position = np.full(graph.num_ops, -1)  # variables stand before everything
        position[order] = np.arange(len(order))
        producer, consumer, _ = graph.edges
        early = position[producer] >= position[consumer]
        if early.any():
            edge = int(np.argmax(early))
            return (
                Verdict.ILLEGAL_ORDER,
                f"op {consumer[edge]} runs before op {producer[edge]}, whose output it reads",
            )
        return Verdict.OK, ""
