"""What a caller may decide about an import."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral

from ....errors import ImportFailedError, unknown_id
from .types import DTYPES, UNDEFINED, TensorType

#: What is done with If, Loop and Scan.
SUBGRAPH_POLICIES = ("opaque", "inline", "reject")
#: Which side is believed where a declared shape contradicts the inferred one; without a choice it is an
#: error.
TRUST = ("declared", "inferred")

Shapes = Sequence[tuple[int, ...] | None]
#: Flops of an op of one kind: a number, or a function of the shapes of its inputs and outputs.
FlopRule = int | Callable[[Shapes, Shapes], int]
#: Shape of a tensor: sizes, or a text with the dtype such as ``"float16[1,128]"``.
ShapeSpec = Sequence[int] | str

_SPEC = re.compile(r"(\w+)\[([\d,\s]*)\]")


@dataclass(frozen=True)
class ImportOptions:
    """See :func:`opgym.graphs.readers.onnx.read_onnx` for the fields.

    Raises:
        UnknownIdError: An unknown policy.
    """

    dims: Mapping[str, int] = field(default_factory=dict)
    subgraphs: str = "opaque"
    strict: bool = False
    trust: str | None = None
    shapes: Mapping[str, ShapeSpec] = field(default_factory=dict)
    costs: Mapping[str, FlopRule] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.subgraphs not in SUBGRAPH_POLICIES:
            raise unknown_id("subgraph policy", str(self.subgraphs), list(SUBGRAPH_POLICIES))
        if self.trust is not None and self.trust not in TRUST:
            raise unknown_id("choice of trust", str(self.trust), list(TRUST))

    def given_types(self) -> dict[str, TensorType]:
        """The shapes that the caller supplies, by tensor."""
        return {name: _parse_shape(name, spec) for name, spec in self.shapes.items()}


def _parse_shape(name: str, spec: ShapeSpec) -> TensorType:
    element = UNDEFINED
    if isinstance(spec, str):
        match = _SPEC.fullmatch(spec.strip())
        known = {dtype: number for number, dtype in DTYPES.items()}
        if match is None or match[1] not in known:
            raise ImportFailedError(
                f"shape of {name!r} is given as {spec!r}; expected a dtype and sizes such as 'float32[1,128]'"
            )
        element, sizes = known[match[1]], [int(part) for part in match[2].split(",") if part.strip()]
    else:
        sizes = [int(d) if isinstance(d, Integral) else -1 for d in spec]
    if any(d < 0 for d in sizes):
        raise ImportFailedError(
            f"shape of {name!r} is given as {spec!r}; expected whole numbers of at least 0"
        )
    return TensorType(element, tuple(sizes))
