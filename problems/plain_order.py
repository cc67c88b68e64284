"""The memory of an order from the lifetimes of its tensors, by plain interval arithmetic: for the checker and tests."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from ..graphs import Graph


def plain_order_memory(graph: Graph, order: Sequence[int]) -> list[int]:
    """Dynamic bytes on one device while each op of a legal order runs.

    A tensor lives from the run of its producer to that of its last reader; to its producer's where nobody reads
    it, to the end of the order if it is an output of the graph. Sources, variables and what updates write are
    resident and do not count.

    Args:
        graph: The graph.
        order: All ops that are no variables, topological.

    Returns:
        One figure per position of the order.
    """
    position = {op: at for at, op in enumerate(order)}
    ends: dict[int, int] = {}  # tensor -> position of its last reader, if its memory is freed there
    change = [0] * (len(order) + 1)
    for tensor in range(graph.num_tensors):
        producer = int(graph.tensor_producer[tensor])
        if producer < 0 or graph.is_variable[producer] or graph.op_update_of[producer] >= 0:
            continue
        begin = position[producer]
        end = max([begin, *(position[reader] for reader in graph.consumers(tensor).tolist())])
        if graph.tensor_is_output[tensor]:
            end = len(order) - 1
        else:
            ends[tensor] = end
        change[begin] += int(graph.tensor_bytes[tensor])
        change[end + 1] -= int(graph.tensor_bytes[tensor])
    memory = list(accumulate(change[:-1]))
    for at, op in enumerate(order):
        memory[at] += int(graph.op_workspace_bytes[op])
        if graph.in_place and _takes_over(graph, op, at, ends):
            memory[at] -= int(graph.tensor_bytes[graph.outputs(op)[0]])
    return memory


def _takes_over(graph: Graph, op: int, at: int, ends: dict[int, int]) -> bool:
    """Whether an op writes over an input that nobody else needs any more."""
    outputs = graph.outputs(op)
    if not graph.op_elementwise[op] or len(outputs) != 1 or graph.op_update_of[op] >= 0:
        return False
    size = graph.tensor_bytes[outputs[0]]
    return any(
        ends.get(tensor) == at and graph.tensor_bytes[tensor] == size for tensor in graph.inputs(op).tolist()
    )
