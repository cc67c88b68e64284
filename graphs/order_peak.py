"""Peak memory of orders on one device, computed by the C++ core."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _core
from ..errors import InvalidSolutionError
from .core_graph import core_graph, thread_count
from .graph import Graph

Int64 = NDArray[np.int64]
Int32 = NDArray[np.int32]
#: Attribute under which a graph keeps its evaluator of orders (as a cached property would).
_ORDER_PEAK = "_order_peak"


def peak_of_order(graph: Graph, order: ArrayLike) -> int:
    """Largest sum of live bytes when one device runs the ops in a given order, resident bytes apart.

    Args:
        graph: The computation graph.
        order: Every op that is no variable once, or every op once, topological, ``[length] int``.

    Raises:
        InvalidSolutionError: The order leaves out or repeats an op, or runs one before its inputs exist.
    """
    try:
        return _order_peak(graph).peak(_order(order, 1))
    except ValueError as error:
        raise InvalidSolutionError(str(error)) from None


def peak_of_orders(graph: Graph, orders: ArrayLike, *, threads: int = 1) -> Int64:
    """:func:`peak_of_order` of many orders, without holding Python's global lock.

    Args:
        graph: The computation graph.
        orders: ``[orders, length] int``.
        threads: How many threads share the work; 0: one per processor.

    Returns:
        Peak of each order, ``[orders] int64`` bytes.

    Raises:
        InvalidSolutionError: As for :func:`peak_of_order`, for any of them.
    """
    try:
        return _core.peak_of_orders(core_graph(graph), _order(orders, 2), thread_count(threads))
    except ValueError as error:
        raise InvalidSolutionError(str(error)) from None


def _order_peak(graph: Graph) -> _core.OrderPeak:
    evaluator: _core.OrderPeak | None = graph.__dict__.get(_ORDER_PEAK)
    if evaluator is None:
        evaluator = graph.__dict__[_ORDER_PEAK] = _core.OrderPeak(core_graph(graph))
    return evaluator


def _order(given: ArrayLike, ndim: int) -> Int32:
    array = np.asarray(given)
    if array.ndim != ndim or (array.size and not np.issubdtype(array.dtype, np.integer)):
        raise InvalidSolutionError(
            f"the order is {array.ndim}-dimensional {array.dtype}; expected {ndim}-dimensional integers"
        )
    if array.size and (array.min() < -(2**31) or array.max() >= 2**31):
        raise InvalidSolutionError("the order names an op beyond 2^31")
    return np.ascontiguousarray(array, np.int32)
