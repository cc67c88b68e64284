"""A graph as the C++ core sees it, and on how many threads the core works."""

from __future__ import annotations

import os

from .. import _core
from ..errors import InvalidGraphError, InvalidSolutionError
from .graph import Graph

#: Attribute under which a graph keeps its frozen form (as a cached property would).
_CORE = "_core_graph"


def core_graph(graph: Graph) -> _core.Graph:
    """The graph as the core sees it; built once per graph.

    Raises:
        InvalidGraphError: All tensors together pass 2^63 - 1 bytes, or the arrays are no graph.
    """
    frozen: _core.Graph | None = graph.__dict__.get(_CORE)
    if frozen is None:
        try:
            frozen = _core.Graph(
                graph.input_ptr,
                graph.input_tensor,
                graph.output_ptr,
                graph.tensor_bytes,
                graph.op_workspace_bytes,
                graph.is_variable,
                graph.op_update_of,
                graph.tensor_is_output,
                graph.op_elementwise,
                graph.in_place,
            )
        except ValueError as error:
            raise InvalidGraphError(f"graph {graph.name!r}: {error}") from None
        graph.__dict__[_CORE] = frozen
    return frozen


def thread_count(threads: int) -> int:
    """How many threads work.

    Args:
        threads: As many; 0: one per processor.

    Raises:
        InvalidSolutionError: Fewer than 0.
    """
    if threads < 0:
        raise InvalidSolutionError(f"{threads} threads; expected 0 (one per processor) or more")
    if threads:
        return threads
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
