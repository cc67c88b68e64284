"""Builds a :class:`Graph` from ops and tensors given in any order, and refuses what is not a graph."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np

from ..errors import InvalidGraphError
from .dtypes import storage_bytes
from .graph import DIRECTIONS, ROLES, VARIABLE, Graph

_INT64_MAX = 2**63 - 1


@dataclass
class _Tensor:
    name: str
    bytes: int
    dtype: str
    shape: tuple[int, ...]
    role: str
    is_output: bool
    producer: int = -1


@dataclass
class _Op:
    kind: str
    name: str
    inputs: list[int]
    outputs: list[int]
    flops: int
    accessed_bytes: int | None
    workspace_bytes: int
    group: str | int | None
    layer: str | None
    direction: str
    update_of: int | None
    elementwise: bool
    unsupported: frozenset[str] = field(default_factory=frozenset)


class GraphBuilder:
    """Collects tensors and ops, then freezes them.

    Example:
        >>> from opgym.graphs import GraphBuilder
        >>> b = GraphBuilder(level="example")
        >>> x = b.tensor(shape=(8, 16), dtype="float32", role="input", name="x")
        >>> y = b.tensor(shape=(8, 16), dtype="float32", is_output=True)
        >>> _ = b.op("Relu", inputs=[x], outputs=[y], flops=128, elementwise=True)
        >>> b.build().num_ops
        1

    Args:
        level: What an op is, e.g. ``"onnx"`` or ``"aten-train"``.
        name: Name of the graph, for people.
        in_place: Whether elementwise ops may take over the buffer of a dead input.
    """

    def __init__(self, level: str, name: str = "", *, in_place: bool = False) -> None:
        self.level = level
        self.name = name
        self.in_place = in_place
        self._tensors: list[_Tensor] = []
        self._ops: list[_Op] = []

    def tensor(
        self,
        *,
        bytes: int | None = None,
        dtype: str = "float32",
        shape: Sequence[int] = (),
        role: str = "activation",
        is_output: bool = False,
        name: str = "",
    ) -> int:
        """Adds a tensor and returns its handle.

        Args:
            bytes: Size of its storage; from shape and dtype where absent.
            dtype: Element type, a name that ``opgym.graphs.dtypes`` knows.
            shape: Dimensions, all known.
            role: One of ``ROLES``.
            is_output: Whether it must survive to the end of the run.
            name: For people; need not be unique.

        Raises:
            InvalidGraphError: A negative size or dimension, an unknown role or dtype.
        """
        shape = tuple(int(d) for d in shape)
        label = f"tensor {len(self._tensors)} {name!r}"
        if any(d < 0 for d in shape):
            raise InvalidGraphError(f"{label} has a negative dimension in {shape}; bind it to a size first")
        if role not in ROLES:
            raise InvalidGraphError(f"{label} has role {role!r}; expected one of {', '.join(ROLES)}")
        size = storage_bytes(dtype, prod(shape)) if bytes is None else int(bytes)
        if not 0 <= size <= _INT64_MAX:
            raise InvalidGraphError(f"{label} has {size} bytes; expected 0 to 2^63 - 1")
        self._tensors.append(_Tensor(name, size, dtype, shape, role, is_output))
        return len(self._tensors) - 1

    def op(
        self,
        kind: str,
        *,
        inputs: Iterable[int] = (),
        outputs: Iterable[int] = (),
        flops: int = 0,
        accessed_bytes: int | None = None,
        workspace_bytes: int = 0,
        group: str | int | None = None,
        layer: str | None = None,
        direction: str = "forward",
        update_of: int | None = None,
        elementwise: bool = False,
        unsupported: Iterable[str] = (),
        name: str = "",
    ) -> int:
        """Adds an op and returns its handle (its file index).

        Args:
            kind: E.g. ``"Conv"``; ``"variable"`` is the home of a parameter in a training graph.
            inputs: Handles of the tensors it reads; one read twice counts once.
            outputs: Handles of the tensors it writes.
            flops: Floating-point operations.
            accessed_bytes: Bytes read and written; inputs + outputs where absent.
            workspace_bytes: Scratch memory held while it runs.
            group: Any label; ops of one label share a device.
            layer: Name of the layer or module it belongs to.
            direction: One of ``DIRECTIONS``.
            update_of: Handle of the variable op whose storage the outputs alias (an optimizer update).
            elementwise: Whether it may run in place.
            unsupported: Device profiles or kinds on which it cannot run.
            name: For people; need not be unique.

        Raises:
            InvalidGraphError: An unknown tensor, a second producer, a negative figure.
        """
        index = len(self._ops)
        label = f"op {index} {name or kind!r}"
        reads, writes = list(dict.fromkeys(int(t) for t in inputs)), [int(t) for t in outputs]
        for t in (*reads, *writes):
            if not 0 <= t < len(self._tensors):
                raise InvalidGraphError(
                    f"{label} names tensor {t}; {len(self._tensors)} tensors exist so far"
                )
        for what, figure in (
            ("flops", flops),
            ("accessed_bytes", accessed_bytes or 0),
            ("workspace_bytes", workspace_bytes),
        ):
            if not 0 <= figure <= _INT64_MAX:
                raise InvalidGraphError(f"{label} has {what} = {figure}; expected 0 to 2^63 - 1")
        if direction not in DIRECTIONS:
            raise InvalidGraphError(
                f"{label} has direction {direction!r}; expected one of {', '.join(DIRECTIONS)}"
            )
        if kind == VARIABLE and reads:
            raise InvalidGraphError(f"{label} is a variable and reads tensors; a variable has no inputs")
        if isinstance(unsupported, str):
            raise InvalidGraphError(f"{label} has unsupported={unsupported!r}; expected a list of names")
        if len(set(writes)) < len(writes):
            twice = next(t for t in writes if writes.count(t) > 1)
            raise InvalidGraphError(
                f"{label} writes tensor {twice} {self._tensors[twice].name!r} twice; a tensor is one output"
            )
        for t in writes:
            tensor = self._tensors[t]
            if tensor.producer >= 0:
                first = self._ops[tensor.producer]
                raise InvalidGraphError(
                    f"tensor {t} {tensor.name!r} is written by op {tensor.producer} "
                    f"{first.name or first.kind!r} and again by {label}; a tensor has one producer"
                )
        for t in writes:  # only now: a refused op leaves the builder as it was
            self._tensors[t].producer = index
        self._ops.append(
            _Op(
                kind,
                name,
                reads,
                writes,
                int(flops),
                None if accessed_bytes is None else int(accessed_bytes),
                int(workspace_bytes),
                group,
                layer,
                direction,
                update_of,
                bool(elementwise),
                frozenset(unsupported),
            )
        )
        return index

    def build(self) -> Graph:
        """Freezes the graph.

        Raises:
            InvalidGraphError: No op, a cycle (the message lists one), an ``update_of`` that is no variable.
        """
        if not self._ops:
            raise InvalidGraphError(f"graph {self.name!r} has no ops; there is nothing to decide")
        order = self._topological_order()
        position = {file_index: index for index, file_index in enumerate(order)}
        ops = [self._ops[i] for i in order]
        for file_index, op in enumerate(self._ops):
            home = op.update_of
            if home is None:
                continue
            label = f"op {file_index} {op.name or op.kind!r}"
            if not (0 <= home < len(self._ops) and self._ops[home].kind == VARIABLE):
                raise InvalidGraphError(f"{label} updates op {home}, which is not a variable")
            if op.kind == VARIABLE:
                raise InvalidGraphError(
                    f"{label} is a variable and updates another; an update is an op of its own"
                )

        sources = [t for t, tensor in enumerate(self._tensors) if tensor.producer < 0]
        tensor_order = sources + [t for op in ops for t in op.outputs]
        new_tensor = {t: i for i, t in enumerate(tensor_order)}
        tensors = [self._tensors[t] for t in tensor_order]

        kinds = sorted({op.kind for op in ops})
        dtypes = sorted({t.dtype for t in tensors})
        classes = sorted({name for op in ops for name in op.unsupported})
        if len(classes) > 64:
            raise InvalidGraphError(
                f"ops name {len(classes)} device classes as unsupported; at most 64 are possible"
            )
        layers = list(dict.fromkeys(op.layer for op in ops if op.layer is not None))
        groups = list(dict.fromkeys(op.group for op in ops if op.group is not None))
        kind_code = {k: i for i, k in enumerate(kinds)}
        dtype_code = {d: i for i, d in enumerate(dtypes)}
        class_bit = {c: 1 << i for i, c in enumerate(classes)}
        layer_code: dict[str | None, int] = {name: i for i, name in enumerate(layers)} | {None: -1}
        group_code: dict[str | int | None, int] = {label: i for i, label in enumerate(groups)} | {None: -1}

        def accessed(op: _Op) -> int:
            if op.accessed_bytes is not None:
                return op.accessed_bytes
            return min(_INT64_MAX, sum(self._tensors[t].bytes for t in (*op.inputs, *op.outputs)))

        def ptr(lengths: Iterable[int], start: int = 0) -> np.ndarray:
            return np.concatenate([[start], start + np.cumsum(list(lengths), dtype=np.int64)])

        return Graph(
            kinds=tuple(kinds),
            op_kind=np.array([kind_code[op.kind] for op in ops], np.int32),
            op_flops=np.array([op.flops for op in ops], np.int64),
            op_accessed_bytes=np.array([accessed(op) for op in ops], np.int64),
            op_workspace_bytes=np.array([op.workspace_bytes for op in ops], np.int64),
            op_group=np.array([group_code[op.group] for op in ops], np.int32),
            op_layer=np.array([layer_code[op.layer] for op in ops], np.int32),
            op_direction=np.array([DIRECTIONS.index(op.direction) for op in ops], np.int8),
            op_update_of=np.array(
                [-1 if op.update_of is None else position[op.update_of] for op in ops], np.int32
            ),
            op_elementwise=np.array([op.elementwise for op in ops], np.bool_),
            op_unsupported=np.array([sum(class_bit[c] for c in op.unsupported) for op in ops], np.uint64),
            device_classes=tuple(classes),
            layers=tuple(layers),
            tensor_producer=np.array([position.get(t.producer, -1) for t in tensors], np.int32),
            tensor_bytes=np.array([t.bytes for t in tensors], np.int64),
            tensor_dtype=np.array([dtype_code[t.dtype] for t in tensors], np.int32),
            tensor_role=np.array([ROLES.index(t.role) for t in tensors], np.int8),
            tensor_is_output=np.array([t.is_output for t in tensors], np.bool_),
            dtypes=tuple(dtypes),
            shape_ptr=ptr(len(t.shape) for t in tensors).astype(np.int64),
            shape_dim=np.array([d for t in tensors for d in t.shape], np.int64),
            input_ptr=ptr(len(op.inputs) for op in ops).astype(np.int32),
            input_tensor=np.array([new_tensor[t] for op in ops for t in op.inputs], np.int32),
            output_ptr=ptr((len(op.outputs) for op in ops), start=len(sources)).astype(np.int32),
            in_place=self.in_place,
            level=self.level,
            name=self.name,
            op_names=tuple(op.name for op in ops),
            tensor_names=tuple(t.name for t in tensors),
        )

    def _topological_order(self) -> list[int]:
        """File indices in the lexicographically smallest topological order."""
        children: list[list[int]] = [[] for _ in self._ops]
        missing = [0] * len(self._ops)
        for v, op in enumerate(self._ops):
            for u in {self._tensors[t].producer for t in op.inputs} - {-1}:
                children[u].append(v)
                missing[v] += 1
        ready = [v for v, count in enumerate(missing) if count == 0]
        order: list[int] = []
        while ready:
            v = heapq.heappop(ready)
            order.append(v)
            for child in children[v]:
                missing[child] -= 1
                if missing[child] == 0:
                    heapq.heappush(ready, child)
        if len(order) < len(self._ops):
            raise InvalidGraphError(
                f"the graph has a cycle: {self._describe_cycle(missing)}; a step must be acyclic"
            )
        return order

    def _describe_cycle(self, missing: list[int]) -> str:
        """Names one cycle among the ops that never became ready."""
        v = next(v for v, count in enumerate(missing) if count > 0)
        seen: dict[int, int] = {}
        path: list[int] = []
        while v not in seen:  # every stuck op has a stuck parent: walking up must close a cycle
            seen[v] = len(path)
            path.append(v)
            v = next(
                u for t in self._ops[v].inputs if (u := self._tensors[t].producer) >= 0 and missing[u] > 0
            )
        cycle = [*reversed(path[seen[v] :]), path[-1]] if path[seen[v] :] else [v]
        names = [f"op {u} {self._ops[u].name or self._ops[u].kind!r}" for u in cycle]
        return " -> ".join(
            names if len(names) <= 12 else [*names[:6], f"... {len(names) - 12} more ...", *names[-6:]]
        )
