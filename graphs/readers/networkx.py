"""Reads a networkx graph: for those who have a task graph in Python already."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping
from math import isfinite
from numbers import Real
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from ...errors import ImportFailedError, InvalidGraphError
from ..builder import GraphBuilder
from ..costs import TableCost
from ..dtypes import BITS
from .report import Imported, ImportReport

#: Attributes of a node that are read; others are named in the report.
NODE_ATTRIBUTES = {
    "kind": "kind of the op, e.g. 'Conv' (default 'op')",
    "flops": "floating-point operations (default 0)",
    "output_bytes": "bytes of its output, or a list, one per output slot (default 0, one output)",
    "shape": "shape of its only output, instead of output_bytes",
    "dtype": "dtype of its outputs (default float32)",
    "parameter_bytes": "bytes of a parameter that only this op reads (default 0: none)",
    "accessed_bytes": "bytes read and written (default: inputs + outputs)",
    "workspace_bytes": "scratch held while it runs (default 0)",
    "group": "colocation group: a text or a whole number",
    "layer": "name of its layer",
    "direction": "'forward' (default), 'backward' or 'update'",
    "update_of": "node whose storage its outputs alias (a node of kind 'variable')",
    "elementwise": "whether it may run in place (default False)",
    "unsupported": "device profiles or kinds on which it cannot run",
    "is_output": "whether its outputs must survive the run (default: nobody reads them)",
    "time_ns": "measured times by device class, e.g. {'gpu': 1200, 'cpu': 9000}; on all nodes or on none",
}
#: Attributes of an edge that are read; others are named in the report.
EDGE_ATTRIBUTES = {
    "slot": "which output of the source is read (default 0)",
    "bytes": "size of a tensor that belongs to this edge alone, instead of a slot; 0 is a control dependency",
}


def from_networkx(graph: nx.DiGraph, *, name: str = "", level: str = "networkx") -> Imported:
    """Converts a directed acyclic graph; nodes are ops, in the order in which they were added.

    Attributes of nodes are listed in :data:`NODE_ATTRIBUTES`, those of edges in :data:`EDGE_ATTRIBUTES`; all
    may be left out. A node writes one tensor per output slot; an edge reads one of them, or brings a tensor
    of its own (``bytes``). In a ``MultiDiGraph`` parallel edges read several outputs.

    Example:
        >>> import networkx as nx
        >>> g = nx.DiGraph()
        >>> g.add_node("a", flops=10**9, output_bytes=4096)
        >>> g.add_node("b", flops=10**9)
        >>> g.add_edge("a", "b")
        >>> from_networkx(g).graph.num_ops
        2

    Args:
        graph: The graph.
        name: Name of the result; that of ``graph`` where absent.
        level: What an op is.

    Raises:
        ImportFailedError: The graph is undirected, empty or has a cycle, or an attribute has a value that it
            cannot have; the message names the node or edge.
    """
    if not isinstance(graph, nx.Graph) or not graph.is_directed():
        raise ImportFailedError(f"expected a networkx DiGraph or MultiDiGraph; got {type(graph).__name__}")
    try:
        return _Converter(graph, name or str(graph.name), level).run()
    except InvalidGraphError as error:
        raise ImportFailedError(f"networkx graph: {error}") from error


class _Converter:
    """One conversion."""

    def __init__(self, graph: nx.DiGraph, name: str, level: str) -> None:
        self.graph = graph
        self.builder = GraphBuilder(level, name)
        self.index: dict[Hashable, int] = {node: i for i, node in enumerate(graph)}
        self.ignored: Counter[str] = Counter()
        self.outputs: list[list[int]] = []
        self.inputs: list[list[int]] = [[] for _ in graph]

    def run(self) -> Imported:
        for node, data in self.graph.nodes(data=True):
            self._note_ignored(data, NODE_ATTRIBUTES)
            self.outputs.append(self._add_outputs(node, data))
        self._add_edges()
        for node, data in self.graph.nodes(data=True):
            self._add_op(node, data)
        graph = self.builder.build()
        costs = self._costs(self._file_index())
        notes = [
            f"attribute {key!r} is not read ({count} times)" for key, count in sorted(self.ignored.items())
        ]
        report = ImportReport(
            source=f"networkx {type(self.graph).__name__}",
            format="networkx",
            level=graph.level,
            ops=graph.num_ops,
            tensors=graph.num_tensors,
            fingerprint=graph.fingerprint,
            notes=tuple(notes),
        )
        return Imported(graph, report, costs=costs)

    def _add_outputs(self, node: Hashable, data: Mapping[str, Any]) -> list[int]:
        where = f"node {node!r}"
        is_output = bool(data.get("is_output", self.graph.out_degree(node) == 0))
        if "shape" in data:
            if "output_bytes" in data:
                raise ImportFailedError(f"{where} has both shape and output_bytes; give one of them")
            shape = [_whole(d, f"{where}: a size in shape") for d in data["shape"]]
            dtype = _dtype(data, where)
            return [self.builder.tensor(shape=shape, dtype=dtype, is_output=is_output, name=str(node))]
        return [
            self._tensor(
                _whole(size, f"{where}: output_bytes"), _dtype(data, where), f"{node}:{slot}", is_output
            )
            for slot, size in enumerate(self._slots(node))
        ]

    def _slots(self, node: Hashable) -> list[Any]:
        """Sizes of a node's output slots; none where all that leaves it is sized by its edges."""
        data = self.graph.nodes[node]
        if "output_bytes" not in data and "shape" not in data:
            leaving = [edge for _, _, edge in self.graph.out_edges(node, data=True)]
            return [] if leaving and all("bytes" in edge for edge in leaving) else [0]
        sizes = data.get("output_bytes", 0)
        return list(sizes) if isinstance(sizes, list | tuple | np.ndarray) else [sizes]

    def _add_edges(self) -> None:
        for source, target, data in self.graph.edges(data=True):
            where = f"edge {source!r} -> {target!r}"
            self._note_ignored(data, EDGE_ATTRIBUTES)
            outputs = self.outputs[self.index[source]]
            if "bytes" in data:
                if "slot" in data:
                    raise ImportFailedError(f"{where} has both bytes and slot; give one of them")
                size = _whole(data["bytes"], f"{where}: bytes")
                dtype = _dtype(self.graph.nodes[source], f"node {source!r}")
                outputs.append(self._tensor(size, dtype, f"{source}->{target}"))
                self.inputs[self.index[target]].append(outputs[-1])
                continue
            slot = _whole(data.get("slot", 0), f"{where}: slot")
            slots = len(self._slots(source))
            if slot >= slots:
                raise ImportFailedError(f"{where} reads slot {slot}; node {source!r} has {slots} outputs")
            self.inputs[self.index[target]].append(outputs[slot])

    def _add_op(self, node: Hashable, data: Mapping[str, Any]) -> None:
        where, index = f"node {node!r}", self.index[node]
        inputs = self.inputs[index]
        parameter = _whole(data.get("parameter_bytes", 0), f"{where}: parameter_bytes")
        if parameter:
            weights = self._tensor(parameter, _dtype(data, where), f"{node}/parameter", role="parameter")
            inputs = [weights, *inputs]
        accessed = data.get("accessed_bytes")
        home = data.get("update_of")
        if home is not None and home not in self.index:
            raise ImportFailedError(f"{where} has update_of={home!r}, which is no node")
        self.builder.op(
            str(data.get("kind", "op")),
            inputs=inputs,
            outputs=self.outputs[index],
            flops=_whole(data.get("flops", 0), f"{where}: flops"),
            accessed_bytes=None if accessed is None else _whole(accessed, f"{where}: accessed_bytes"),
            workspace_bytes=_whole(data.get("workspace_bytes", 0), f"{where}: workspace_bytes"),
            group=data.get("group"),
            layer=None if data.get("layer") is None else str(data["layer"]),
            direction=str(data.get("direction", "forward")),
            update_of=None if home is None else self.index[home],
            elementwise=bool(data.get("elementwise", False)),
            unsupported=data.get("unsupported", ()),
            name=str(node),
        )

    def _tensor(
        self, size: int, dtype: str, name: str, is_output: bool = False, role: str = "activation"
    ) -> int:
        shape = (8 * size // BITS[dtype],)
        return self.builder.tensor(
            bytes=size, shape=shape, dtype=dtype, role=role, is_output=is_output, name=name
        )

    def _note_ignored(self, data: Mapping[str, Any], known: Mapping[str, str]) -> None:
        self.ignored.update(str(key) for key in data if key not in known)

    def _file_index(self) -> NDArray[np.int64]:
        """Index among the nodes of each op: the builder's order is the smallest topological one."""
        order = nx.lexicographical_topological_sort(self.graph, key=self.index.__getitem__)
        return np.array([self.index[node] for node in order], np.int64)

    def _costs(self, file_index: NDArray[np.int64]) -> TableCost | None:
        """Measured times, if the nodes have any, in the order of the graph's ops."""
        rows = [(node, data["time_ns"]) for node, data in self.graph.nodes(data=True) if "time_ns" in data]
        if not rows:
            return None
        if len(rows) < len(self.index):
            untimed = next(node for node, data in self.graph.nodes(data=True) if "time_ns" not in data)
            raise ImportFailedError(
                f"node {untimed!r} has no time_ns and {len(rows)} other nodes have; give all or none"
            )
        first, times = rows[0]
        classes = sorted(times) if isinstance(times, Mapping) else []
        table: dict[str, NDArray[np.int64]] = {name: np.zeros(len(rows), np.int64) for name in classes}
        for i, (node, times) in enumerate(rows):
            if not isinstance(times, Mapping) or sorted(times) != classes or not classes:
                raise ImportFailedError(
                    f"node {node!r} has time_ns={times!r}; expected times by device class, for the same "
                    "classes as node "
                    f"{first!r} ({', '.join(map(str, classes)) or 'which has none'})"
                )
            for name in classes:
                table[name][i] = _whole(times[name], f"node {node!r}: time_ns of {name!r}")
        return TableCost({str(name): column[file_index] for name, column in table.items()})


def _dtype(data: Mapping[str, Any], where: str) -> str:
    dtype = str(data.get("dtype", "float32"))
    if dtype not in BITS:
        raise ImportFailedError(f"{where} has dtype {dtype!r}; expected one of {', '.join(BITS)}")
    return dtype


def _whole(value: Any, what: str) -> int:
    """A whole number of at least 0, also if it comes as a float.

    Raises:
        ImportFailedError: It is none.
    """
    number = value.item() if isinstance(value, np.generic) else value
    fits = isinstance(number, Real) and not isinstance(number, bool) and isfinite(number)
    if not fits or number < 0 or int(number) != number or number > 2**63 - 1:
        raise ImportFailedError(f"{what} is {value!r}; expected a whole number from 0 to 2^63 - 1")
    return int(number)
