"""What a fusion is, how many bytes it touches, and whether it may run in place."""

from __future__ import annotations

from dataclasses import dataclass

from .costs import ELEMENTWISE
from .module import Computation, Instruction
from .shapes import ArrayShape

#: Instructions that give a fusion its character, strongest first.
_HEROES = (
    "convolution", "dot", "custom-call", "scatter", "select-and-scatter", "sort", "reduce-window", "reduce",
    "gather", "dynamic-update-slice", "dynamic-slice", "concatenate", "pad", "transpose", "copy", "reverse",
    "slice", "iota",
)  # fmt: skip
#: What reads only the part of its first operand that it gives.
_PICKS = ("dynamic-slice", "gather", "slice")
_SAME_PLACE = ELEMENTWISE | {"bitcast", "broadcast", "constant", "parameter", "reshape", "tuple"}


@dataclass(frozen=True, slots=True)
class Fusion:
    """Facts about a fused computation.

    Attributes:
        hero: The opcode that stands for it, ``"loop"`` where it works element by element.
        read_bytes: Of each parameter, what is read of it.
        written_bytes: Of its results.
        elementwise: Whether each element of the one result comes from the same place of the operands.
    """

    hero: str
    read_bytes: tuple[int, ...]
    written_bytes: int
    elementwise: bool


def describe(computation: Computation) -> Fusion:
    """Looks at a fused computation once."""
    rows = computation.instructions
    opcodes = {row.opcode for row in rows}
    hero = next((opcode for opcode in _HEROES if opcode in opcodes), "loop")
    readers: list[list[tuple[Instruction, int]]] = [[] for _ in rows]
    for row in rows:
        for place, position in enumerate(row.operands):
            readers[position].append((row, place))
    read = {
        row.parameter: _read_of(row, readers[position])
        for position, row in enumerate(rows)
        if row.parameter >= 0
    }
    root = rows[computation.root]
    return Fusion(
        hero,
        tuple(read[number] for number in range(len(read))),
        _written(computation, root),
        opcodes <= _SAME_PLACE and isinstance(root.shape, ArrayShape),
    )


def accessed_bytes(instruction: Instruction, operands: list[Instruction]) -> int:
    """Bytes that an instruction reads and writes; what only picks or replaces a part touches that part."""
    opcode = instruction.opcode
    out = instruction.shape.bytes
    if opcode in _PICKS and operands:
        return 2 * out + sum(operand.shape.bytes for operand in operands[1:])
    if opcode == "dynamic-update-slice" and len(operands) > 1:
        update = operands[1].shape.bytes
        return 2 * update + sum(operand.shape.bytes for operand in operands[2:])
    if opcode == "scatter" and len(operands) == 3:
        updates = operands[2].shape.bytes
        return 3 * updates + operands[1].shape.bytes
    if opcode == "get-dimension-size":
        return out
    return out + sum(operand.shape.bytes for operand in operands)


def _read_of(parameter: Instruction, readers: list[tuple[Instruction, int]]) -> int:
    """Bytes of a parameter that are read: only picked parts where nothing reads the whole."""
    whole = parameter.shape.bytes
    picked = 0
    for reader, place in readers:
        if place == 0 and reader.opcode in _PICKS:
            picked += reader.shape.bytes
        elif not (place == 0 and reader.opcode == "dynamic-update-slice"):
            return whole
    return min(whole, picked)


def _written(computation: Computation, root: Instruction) -> int:
    """Bytes of the results that are written: of an update in place only the new part."""
    rows = computation.instructions
    results = [rows[position] for position in root.operands] if root.opcode == "tuple" else [root]
    total = 0
    for row in results:
        while row.opcode in ("bitcast", "copy") and row.operands:
            row = rows[row.operands[0]]
        replaced = row.opcode == "dynamic-update-slice" and len(row.operands) > 1
        total += (rows[row.operands[1]].shape if replaced else row.shape).bytes
    return total
