"""A recorded step that can be run again on real tensors, op by op, in any order that the graph allows."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ....errors import InvalidSolutionError
from ...graph import Graph
from .emit import Emitted
from .tape import Layout, Node, Part, Version

#: In place of the index of a tensor that the graph does not have.
_ABSENT = -1


@dataclass(frozen=True, slots=True)
class View:
    """A tensor of torch, as a way to look at a tensor of the graph."""

    tensor: int
    layout: Layout

    def of(self, storage: torch.UntypedStorage) -> Tensor:
        """This view of real memory."""
        layout = self.layout
        return torch.empty(0, dtype=layout.dtype).set_(storage, layout.offset, layout.size, layout.stride)

    def shape_only(self) -> Tensor:
        """A tensor of this shape without memory of its own, for an operator that reads nothing of it."""
        return torch.empty((), dtype=self.layout.dtype).expand(self.layout.size)


@dataclass(frozen=True, slots=True)
class Call:
    """What one op runs.

    Attributes:
        function: The operator.
        args: Positional arguments; tensors are :class:`View`.
        kwargs: Named arguments; tensors are :class:`View`.
        results: New tensors that it returns, in order.
        rewrites: Old and new index of every tensor whose storage it writes to; equal where the graph has no
            tensor of its own for what is there afterwards.
    """

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    results: tuple[View, ...]
    rewrites: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Program:
    """The calls behind the ops of a graph.

    Attributes:
        graph: The graph.
        calls: What each op runs; ``None`` for variables.
        views: Each tensor of the graph as a tensor of torch.
    """

    graph: Graph
    calls: tuple[Call | None, ...]
    views: tuple[View, ...]

    @property
    def given(self) -> list[int]:
        """Tensors that are there before the step: those without a producer and those of variables."""
        producer = self.graph.tensor_producer
        return np.flatnonzero((producer < 0) | self.graph.is_variable[producer]).tolist()

    def run(
        self,
        order: Iterable[int],
        given: Mapping[int, Tensor],
        *,
        after: Callable[[int], None] | None = None,
    ) -> dict[int, Tensor]:
        """Runs the ops one by one; what no op reads any more is freed, unless it was given or is an output.

        An update writes to its variable's storage, so what is given for variables changes, and an order that
        updates a parameter before its last reader computes something else (in the same memory).

        Args:
            order: Every op once, in an order that the graph allows; variables may be left out.
            given: Contents of the tensors in :attr:`given`, laid out as :attr:`views` says.
            after: Called with each op that has run.

        Returns:
            The output tensors by index.

        Raises:
            InvalidSolutionError: An op comes before what it reads.
        """
        graph = self.graph
        held = {t: given[t].untyped_storage() for t in self.given}
        waiting = np.diff(graph.consumer_ptr).tolist()
        kept = graph.tensor_is_output.copy()
        kept[self.given] = True
        for op in order:
            call = self.calls[op]
            if call is None:
                continue
            reads = graph.inputs(op).tolist()
            absent = [t for t in reads if t not in held]
            if absent:
                raise InvalidSolutionError(
                    f"op {op} reads tensor {absent[0]}, which is not there: it is not written yet, or freed"
                )
            self._run(op, call, held)
            for t in reads:
                waiting[t] -= 1
            for t in (*reads, *graph.outputs(op)):
                if not waiting[t] and not kept[t]:
                    held.pop(t, None)
            if after is not None:
                after(op)
        return {t: self.views[t].of(held[t]) for t in np.flatnonzero(graph.tensor_is_output).tolist()}

    def _run(self, op: int, call: Call, held: dict[int, torch.UntypedStorage]) -> None:
        written: dict[int, torch.UntypedStorage] = {}
        for old, new in call.rewrites:
            in_place = old == new or self.graph.op_update_of[op] >= 0
            if old in held:
                written[old] = held[old] if in_place else _copy(held[old])
            else:  # overwritten without being read
                written[old] = _memory(int(self.graph.tensor_bytes[new]))
            held[new] = written[old]

        memory = ChainMap(written, held)
        with torch.no_grad():
            result = call.function(*_real(call.args, memory), **_real(dict(call.kwargs), memory))
        if not call.results:
            return
        results = result if isinstance(result, (list, tuple)) else [result]
        fresh = [t for t in results if isinstance(t, Tensor)]
        for view, tensor in zip(call.results, fresh, strict=True):
            held[view.tensor] = _laid_out(tensor, view.layout).untyped_storage()


def program_of(emitted: Emitted) -> Program:
    """The program behind a graph whose calls were kept."""
    index = emitted.index
    views = tuple(View(i, version.layout) for i, version in enumerate(emitted.tensors))
    return Program(
        emitted.graph, tuple(None if node is None else _call(node, index) for node in emitted.nodes), views
    )


def _call(node: Node, index: Mapping[Version, int]) -> Call:
    invocation = node.invocation
    if invocation is None:
        raise ValueError("the calls of this step were not kept")
    # What is overwritten without being read may be no tensor of the graph.
    local = {old: index.get(old, _ABSENT - 1 - i) for i, old in enumerate(invocation.replaced)}

    def view(value: Any) -> Any:
        if isinstance(value, Part):
            version = value.version
            return View(local[version] if version in local else index.get(version, _ABSENT), value.layout)
        if isinstance(value, (list, tuple)):
            return type(value)(view(v) for v in value)
        return value

    fresh = len(node.writes) - len(node.rewritten)
    return Call(
        invocation.function,
        view(invocation.args),
        {k: view(v) for k, v in invocation.kwargs.items()},
        tuple(View(index[v], v.layout) for v in node.writes[:fresh]),
        tuple((local[old], index[new]) for old, new in zip(local, node.writes[fresh:], strict=True)),
    )


def _real(value: Any, memory: Mapping[int, torch.UntypedStorage]) -> Any:
    """Arguments with real tensors in place of views.

    Not a closure: one that calls itself is a cycle, and memory in it would live until the collector comes.
    """
    if isinstance(value, View):
        storage = memory.get(value.tensor)
        return value.of(storage) if storage is not None else value.shape_only()
    if isinstance(value, (list, tuple)):
        return type(value)(_real(v, memory) for v in value)
    if isinstance(value, dict):
        return {k: _real(v, memory) for k, v in value.items()}
    return value


def _memory(size: int) -> torch.UntypedStorage:
    return torch.empty(size, dtype=torch.uint8).untyped_storage()


def _copy(storage: torch.UntypedStorage) -> torch.UntypedStorage:
    flat = torch.empty(0, dtype=torch.uint8).set_(storage, 0, (storage.nbytes(),), (1,))
    return flat.clone().untyped_storage()


def _laid_out(tensor: Tensor, layout: Layout) -> Tensor:
    """With the strides that later views count on."""
    if tensor.stride() == layout.stride and tensor.storage_offset() == layout.offset:
        return tensor
    return torch.empty_strided(layout.size, layout.stride, dtype=layout.dtype).copy_(tensor)
