"""How often a loop runs: as XLA notes it, or from a counter that the text shows."""

from __future__ import annotations

import re

from .attributes import ints
from .module import Computation, Instruction, Module

_KNOWN = re.compile(r'"known_trip_count":\s*\{\s*"n":\s*"?(\d{1,12})"?')
_WHOLE = re.compile(r"-?\d{1,12}")


def trip_count(module: Module, computation: Computation, loop: Instruction) -> int | None:
    """Turns of a ``while``, ``None`` where the text does not tell.

    Counted are loops whose condition is ``counter < constant`` (or ``<=``), whose body adds a constant to
    the counter and whose counter begins with a constant.
    """
    known = _KNOWN.search(loop.attributes.get("backend_config", "").replace("\\", ""))
    if known is not None:
        return int(known[1])
    condition = module.computations[loop.attributes["condition"].lstrip("%")]
    body = module.computations[loop.attributes["body"].lstrip("%")]
    test = condition.instructions[condition.root]
    if test.opcode != "compare" or len(test.operands) != 2:
        return None
    direction = test.attributes.get("direction")
    place = _place_in_state(condition, test.operands[0])
    bound = _constant(condition, test.operands[1])
    result = body.instructions[body.root]
    if place is None or bound is None or direction not in ("LT", "LE") or result.opcode != "tuple":
        return None
    step = _step(body, result.operands[place], place)
    start = _start(computation, loop.operands[0], place)
    if step is None or start is None or step < 1:
        return None
    beyond = bound - start + (direction == "LE")
    return max(0, -(-beyond // step))


def _place_in_state(computation: Computation, position: int) -> int | None:
    """Which element of the state a position is."""
    row = computation.instructions[position]
    if row.opcode == "get-tuple-element" and computation.operands(row)[0].parameter == 0:
        return ints(row.attributes, "index")[0]
    return None


def _constant(computation: Computation, position: int) -> int | None:
    row = computation.instructions[position]
    while row.opcode == "copy":
        row = computation.operands(row)[0]
    return int(row.literal) if row.opcode == "constant" and _WHOLE.fullmatch(row.literal) else None


def _step(body: Computation, position: int, place: int) -> int | None:
    """What a turn adds to an element of the state."""
    row = body.instructions[position]
    if row.opcode != "add":
        return None
    for counter, other in (row.operands, row.operands[::-1]):
        if _place_in_state(body, counter) == place:
            return _constant(body, other)
    return None


def _start(computation: Computation, position: int, place: int) -> int | None:
    """What an element of the state begins with."""
    state = computation.instructions[position]
    if state.opcode != "tuple" or place >= len(state.operands):
        return None
    return _constant(computation, state.operands[place])
