"""Flops that a caller supplies for kinds of ops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Integral

from ....errors import ImportFailedError
from .module import Instruction
from .shapes import ArrayShape, leaves

Shapes = Sequence[tuple[int, ...] | None]
#: Flops of an op of one kind: a number, or a function of the shapes of its inputs and outputs.
FlopRule = int | Callable[[Shapes, Shapes], int]


def apply_rule(rule: FlopRule, kind: str, row: Instruction, operands: list[Instruction]) -> int:
    """The flops that a rule gives for an instruction.

    Raises:
        ImportFailedError: They are no whole number of at least 0.
    """
    if callable(rule):
        given = [o.shape.dims if isinstance(o.shape, ArrayShape) else None for o in operands]
        flops = rule(given, [leaf.dims for leaf in leaves(row.shape)])
    else:
        flops = rule
    if isinstance(flops, bool) or not isinstance(flops, Integral) or flops < 0:
        raise ImportFailedError(
            f"costs[{kind!r}] gives {flops!r} for %{row.name}; expected a whole number of at least 0"
        )
    return int(flops)
