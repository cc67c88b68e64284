"""Sizes of dynamic dimensions: what the caller binds, and what is missing."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Iterable, Iterator, Mapping
from numbers import Integral
from typing import Any

from onnx import GraphProto, ModelProto, TypeProto, ValueInfoProto

from ....errors import ImportFailedError, unknown_id
from .model import subgraphs
from .types import TensorType, element_type, from_proto, literal_size, text

_OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}
_EXPRESSION = re.compile(r"[A-Za-z_]\w*(\s*(\+|-|\*|//)\s*\w+)*")
_LONGEST_EXPRESSION = 200


class Dimensions:
    """Sizes by name (``batch``) or by place (``INPUT:AXIS``).

    Args:
        model: The model; initializers that are also listed as inputs are no inputs.
        given: What the caller binds.
        shapes: Types that the caller supplies for whole tensors; such an input needs no binding.
        label: Names the model in messages.

    Raises:
        ImportFailedError: A size is no whole number, a place names a fixed dimension, an input's dimension is
            left without a size (all of them are listed).
        UnknownIdError: A name that the model does not have.
    """

    def __init__(
        self, model: ModelProto, given: Mapping[str, int], shapes: Mapping[str, TensorType], label: str
    ) -> None:
        self.label = label
        self.given = {str(name): self._checked(name, size) for name, size in given.items()}
        self.names = list(dict.fromkeys(_names(model.graph)))
        self._sizes: dict[str, int | None] = dict(self.given)
        weights = {t.name for t in model.graph.initializer}
        weights |= {t.values.name for t in model.graph.sparse_initializer}
        self.inputs = [v for v in model.graph.input if v.name not in weights]
        self._shapes = shapes
        self._refuse_unknown()
        self.input_types = [self._input_type(v) for v in self.inputs]
        self._refuse_unbound()

    def size(self, dim: Any) -> int | None:
        """Size of a dimension anywhere in the model, or ``None``."""
        if dim.WhichOneof("value") == "dim_param":
            return self._named(text(dim.dim_param))
        return literal_size(dim)

    @property
    def bound(self) -> dict[str, int]:
        """The bindings, for the report."""
        return dict(sorted(self.given.items()))

    def _named(self, name: str) -> int | None:
        if name not in self._sizes:
            size = _evaluate(name, self.given)
            self._sizes[name] = size if size is not None and size >= 0 else None
        return self._sizes[name]

    def _input_type(self, info: ValueInfoProto) -> TensorType:
        if info.name in self._shapes:
            given = self._shapes[info.name]
            declared = element_type(info.type.tensor_type.elem_type, info.name)
            return TensorType(given.element or declared, given.dims)
        kind = from_proto(info.type, info.name, self.size)
        if kind.container:
            return kind
        placed = self._placed(info.name)
        if kind.dims is None:
            if not placed or sorted(placed) != list(range(len(placed))):
                return kind
            return TensorType(kind.element, tuple(placed[axis] for axis in range(len(placed))))
        return TensorType(kind.element, tuple(placed.get(a, d) for a, d in enumerate(kind.dims)))

    def _placed(self, name: str) -> dict[int, int]:
        """Sizes given by place for one input, by axis."""
        places = ((key.rpartition(":"), size) for key, size in self.given.items())
        return {int(axis): size for (head, _, axis), size in places if head == name and axis.isdecimal()}

    def _checked(self, name: str, size: Any) -> int:
        if isinstance(size, bool) or not isinstance(size, Integral) or not 0 <= int(size) < 2**31:
            raise ImportFailedError(
                f"{self.label}: dimension {name} is bound to {size!r}; expected a whole number from 0 to "
                "2^31 - 1"
            )
        return int(size)

    def _refuse_unknown(self) -> None:
        """Refuses names and places that do not exist or are fixed."""
        open_places = [place for v in self.inputs for place in _unnamed_places(v)]
        ranks = {v.name: _rank(v.type) for v in self.inputs}
        for key in self.given:
            if key in self.names or key in open_places:
                continue
            name, _, axis = key.rpartition(":")
            if name in ranks and axis.isdecimal():
                rank, info = ranks[name], next(v for v in self.inputs if v.name == name)
                if rank is None:
                    continue
                if int(axis) < rank:
                    dim = info.type.tensor_type.shape.dim[int(axis)]
                    what = (
                        f"named {dim.dim_param!r}; bind it by name"
                        if dim.dim_param
                        else f"fixed to {dim.dim_value}"
                    )
                    raise ImportFailedError(f"{self.label}: axis {axis} of input {name!r} is {what}")
                raise ImportFailedError(
                    f"{self.label}: input {name!r} has {rank} axes; there is no axis {axis}"
                )
            known = [*self.names, *open_places]
            if not known:
                raise ImportFailedError(f"{self.label}: has no dynamic dimension, so {key!r} cannot be bound")
            raise unknown_id("dimension", key, known)

    def _refuse_unbound(self) -> None:
        missing: list[str] = []
        options: list[str] = []
        for info, kind in zip(self.inputs, self.input_types, strict=True):
            if kind.container or kind.shape is not None:
                continue
            if kind.dims is None:
                missing.append(f"input {info.name!r} (no shape at all)")
                options.append(f"--dim {info.name}:0=N for axis 0 and so on for every axis")
                continue
            for axis, size in enumerate(kind.dims):
                if size is None:
                    name = info.type.tensor_type.shape.dim[axis].dim_param
                    missing.append(f"input {info.name!r} axis {axis}" + (f" ({name})" if name else ""))
                    options.extend(
                        f"--dim {_quoted(part)}=N" for part in self._to_bind(name, info.name, axis)
                    )
        if missing:
            raise ImportFailedError(
                f"{self.label}: dimensions without a size: {', '.join(missing)}; "
                f"give {' '.join(dict.fromkeys(options))}"
            )

    def _to_bind(self, name: str, tensor: str, axis: int) -> list[str]:
        """What to bind for a dimension: its name, the unbound names in a sum of names, or its place."""
        if not name:
            return [f"{tensor}:{axis}"]
        tree = _parse(name)
        parts = [n.id for n in ast.walk(tree) if isinstance(n, ast.Name)] if tree is not None else []
        known = [p for p in parts if p in self.names]
        return [p for p in known if p not in self.given] if known else [name]


def _parse(name: str) -> ast.expr | None:
    """The expression that a dimension's name may be: exporters write ``past_length + length``."""
    if len(name) > _LONGEST_EXPRESSION or not _EXPRESSION.fullmatch(name):
        return None
    try:
        return ast.parse(name.strip(), mode="eval").body
    except (SyntaxError, ValueError):
        return None


def _evaluate(name: str, sizes: Mapping[str, int]) -> int | None:
    """Value of such an expression, ``None`` where it is none or a name in it has no size."""

    def value(node: ast.AST) -> int:
        if isinstance(node, ast.Constant):
            return int(node.value)  # type: ignore[arg-type]
        if isinstance(node, ast.Name):
            return sizes[node.id]
        if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
            return int(_OPERATORS[type(node.op)](value(node.left), value(node.right)))
        raise ValueError

    tree = _parse(name)
    try:
        return None if tree is None else value(tree)
    except (ValueError, KeyError, ZeroDivisionError):
        return None


def _names(graph: GraphProto) -> Iterator[str]:
    """Names of dimensions, those of inputs first, then of declared shapes, bodies included."""
    for infos in (graph.input, graph.value_info, graph.output):
        for info in infos:
            if info.type.HasField("tensor_type"):
                yield from (text(d.dim_param) for d in info.type.tensor_type.shape.dim if d.dim_param)
    for node in graph.node:
        for _, body in subgraphs(node):
            yield from _names(body)


def _rank(kind: TypeProto) -> int | None:
    if not kind.HasField("tensor_type") or not kind.tensor_type.HasField("shape"):
        return None
    return len(kind.tensor_type.shape.dim)


def _unnamed_places(info: ValueInfoProto) -> Iterable[str]:
    """Places of the dimensions of an input that have neither a size nor a name."""
    if not info.type.HasField("tensor_type"):
        return []
    dims = enumerate(info.type.tensor_type.shape.dim)
    return [f"{info.name}:{axis}" for axis, d in dims if not d.dim_param and literal_size(d) is None]


def _quoted(name: str) -> str:
    return f"'{name}'" if " " in name else name
