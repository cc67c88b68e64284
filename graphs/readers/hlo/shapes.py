"""Shapes as HLO writes them: ``f32[8,128]{1,0}``, ``(f32[4], s32[])``, ``token[]``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod

from ...dtypes import BITS

#: Name of each element type in a graph. A token orders side effects and an opaque value is a handle:
#: neither holds data.
DTYPES = {
    "pred": "bool", "token": "uint8", "opaque": "uint8",
    "s1": "int1", "s2": "int2", "s4": "int4", "s8": "int8", "s16": "int16", "s32": "int32", "s64": "int64",
    "u1": "uint1", "u2": "uint2", "u4": "uint4", "u8": "uint8", "u16": "uint16", "u32": "uint32",
    "u64": "uint64",
    "f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64",
    "c64": "complex64", "c128": "complex128",
    "f4e2m1fn": "float4e2m1", "f8e3m4": "float8e3m4", "f8e4m3": "float8e4m3",
    "f8e4m3b11fnuz": "float8e4m3b11fnuz", "f8e4m3fn": "float8e4m3fn", "f8e4m3fnuz": "float8e4m3fnuz",
    "f8e5m2": "float8e5m2", "f8e5m2fnuz": "float8e5m2fnuz", "f8e8m0fnu": "float8e8m0",
}  # fmt: skip
_NO_DATA = ("token", "opaque")

#: A tuple within a tuple within ... is followed this deep.
MAX_DEPTH = 64
_MAX_DIM_DIGITS = 18
_MAX_RANK = 64
_MAX_ELEMENT_BITS = 1024

_ARRAY = re.compile(r"([a-z]\w*)\[([^\[\]]*)\](?:\{([^{}]*)\})?")
_SPACE = re.compile(r"\s*")
_ELEMENT_BITS = re.compile(r"E\((\d+)\)")
_TILE = re.compile(r"T\(([\d,]+)\)")


class ShapeError(ValueError):
    """A text is no shape, or one that has no size; the message says why."""


@dataclass(frozen=True, slots=True)
class ArrayShape:
    """A dense array.

    Attributes:
        type: Element type as HLO names it, e.g. ``"f32"``.
        dims: Sizes; upper bounds where they are dynamic.
        order: Axes from the fastest to the slowest; ``None`` where the text gives no layout.
        dynamic: Whether a size is only bounded.
        bytes: Of its storage, with the padding of a tiled layout.
        signature: Equal for shapes of equal types and sizes, whatever their layouts.
    """

    type: str
    dims: tuple[int, ...]
    order: tuple[int, ...] | None = None
    dynamic: bool = False
    bytes: int = 0
    signature: int = -1

    @property
    def dtype(self) -> str:
        """Name of the element type in a graph."""
        return DTYPES[self.type]

    @property
    def elements(self) -> int:
        """Number of elements; 0 of a token."""
        return 0 if self.type in _NO_DATA else prod(self.dims)

    @property
    def is_complex(self) -> bool:
        """Whether an element is a complex number."""
        return self.type in ("c64", "c128")

    def __str__(self) -> str:
        return f"{self.type}[{','.join(map(str, self.dims))}]"


@dataclass(frozen=True, slots=True)
class TupleShape:
    """Several values in one.

    Attributes:
        elements: Their shapes.
        bytes: Of all arrays in it.
        signature: Equal for shapes of equal types and sizes, whatever their layouts.
    """

    elements: tuple[Shape, ...]
    bytes: int = 0
    signature: int = -1

    def __str__(self) -> str:
        parts = [str(element) for element in self.elements[:4]]
        return f"({', '.join(parts)}{', ...' if len(self.elements) > 4 else ''})"


Shape = ArrayShape | TupleShape


def leaves(shape: Shape) -> Iterator[ArrayShape]:
    """The arrays in a shape, from left to right."""
    if isinstance(shape, ArrayShape):
        yield shape
        return
    for element in shape.elements:
        yield from leaves(element)


def same(a: Shape, b: Shape) -> bool:
    """Whether two shapes of one table hold the same element types and sizes, whatever their layouts."""
    return a.signature == b.signature


class ShapeTable:
    """Reads shapes, each text once; large tuples are compared by number."""

    def __init__(self) -> None:
        self._by_text: dict[str, Shape] = {}
        self._signatures: dict[object, int] = {}

    def read(self, text: str) -> Shape:
        """The shape that a whole text is; it has no comments.

        Raises:
            ShapeError: It is none.
        """
        known = self._by_text.get(text)
        if known is not None:
            return known
        shape, end = self._read_at(text, 0)
        if text[end:].strip():
            raise ShapeError(f"{_short(text[end:])!r} behind a shape")
        self._by_text[text] = shape
        return shape

    def _read_at(self, text: str, at: int) -> tuple[Shape, int]:
        """The shape that begins at a position, and where it ends."""
        open_tuples: list[list[Shape]] = []
        while True:
            at = _end(_SPACE, text, at)
            if text[at : at + 1] == "(":
                open_tuples.append([])
                if len(open_tuples) > MAX_DEPTH:
                    raise ShapeError(f"tuples nested deeper than {MAX_DEPTH}")
                at = _end(_SPACE, text, at + 1)
                if text[at : at + 1] != ")":
                    continue
                shape: Shape = self._tuple(open_tuples.pop())
                at += 1
            else:
                match = _ARRAY.match(text, at)
                if match is None:
                    raise ShapeError(f"{_short(text[at:])!r} is no shape such as f32[8,128]")
                at = match.end()
                known = self._by_text.get(match[0])
                if known is None:
                    known = self._by_text[match[0]] = self._signed(_array(match))
                shape = known
            while open_tuples:
                open_tuples[-1].append(shape)
                at = _end(_SPACE, text, at)
                mark = text[at : at + 1]
                at += 1
                if mark == ",":
                    break
                if mark != ")":
                    raise ShapeError(f"a tuple is not closed before {_short(text[at - 1 :])!r}")
                shape = self._tuple(open_tuples.pop())
            else:
                return shape, at

    def _tuple(self, elements: list[Shape]) -> TupleShape:
        signature = self._number(tuple(element.signature for element in elements))
        return TupleShape(tuple(elements), sum(element.bytes for element in elements), signature)

    def _signed(self, array: ArrayShape) -> ArrayShape:
        return replace(array, signature=self._number((array.type, array.dims)))

    def _number(self, key: object) -> int:
        return self._signatures.setdefault(key, len(self._signatures))


def _array(match: re.Match[str]) -> ArrayShape:
    type_, sizes, layout = match.groups()
    if type_ not in DTYPES:
        raise ShapeError(f"unknown element type {_short(type_)!r} in {_short(match[0])!r}")
    parts = sizes.split(",") if sizes.strip() else []
    if len(parts) > _MAX_RANK:
        raise ShapeError(f"{_short(match[0])!r} has {len(parts)} axes; at most {_MAX_RANK} are read")
    dims = []
    dynamic = False
    for part in parts:
        size = part.strip()
        if size.startswith("<="):
            dynamic, size = True, size[2:].strip()
        if size == "?":
            raise ShapeError(f"{_short(match[0])!r} has a size without bound; export it with a static shape")
        if not (size.isascii() and size.isdigit()) or len(size) > _MAX_DIM_DIGITS:
            raise ShapeError(
                f"{_short(match[0])!r} has the size {_short(size)!r}; expected a whole number "
                f"of at most {_MAX_DIM_DIGITS} digits"
            )
        dims.append(int(size))
    order, bits, tile = _layout(layout, match[0], len(dims), BITS[DTYPES[type_]])
    stored = _padded(dims, order, tile) if tile else prod(dims)
    size_bytes = 0 if type_ in _NO_DATA else (stored * bits + 7) // 8
    return ArrayShape(type_, tuple(dims), order, dynamic, size_bytes)


def _layout(
    layout: str | None, text: str, rank: int, bits: int
) -> tuple[tuple[int, ...] | None, int, list[int]]:
    """Order of the axes, bits of an element and the first tile of a layout such as ``1,0:T(8,128)E(4)``."""
    if layout is None:
        return None, bits, []
    axes, _, rest = layout.partition(":")
    try:
        order = tuple(int(part) for part in axes.split(",")) if axes.strip() else ()
    except ValueError:
        order = (-1,)
    if sorted(order) != list(range(rank)):
        raise ShapeError(f"{_short(text)!r} has the layout {_short(axes)!r}; expected {rank} axes")
    stored_bits = _ELEMENT_BITS.search(rest)
    if stored_bits is not None:
        bits = int(stored_bits[1][:6])
        if not 1 <= bits <= _MAX_ELEMENT_BITS:
            raise ShapeError(f"{_short(text)!r} stores an element in {bits} bits")
    tile = _TILE.search(rest)
    sizes = [int(size[:_MAX_DIM_DIGITS]) for size in tile[1].split(",") if size] if tile else []
    return order, bits, sizes


def _padded(dims: list[int], order: tuple[int, ...] | None, tile: list[int]) -> int:
    """Elements of storage: the fastest axes are rounded up to the tile."""
    physical = [dims[axis] for axis in reversed(order or ())]
    physical = [1] * (len(tile) - len(physical)) + physical
    head, tail = physical[: len(physical) - len(tile)], physical[len(physical) - len(tile) :]
    return prod(head) * prod(-(-size // t) * t if t else size for size, t in zip(tail, tile, strict=True))


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    match = pattern.match(text, at)
    return match.end() if match else at


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."
