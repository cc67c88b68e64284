"""Flops and bytes of torch operators, by own formulas; a kind without a formula is reported, not guessed."""

from __future__ import annotations

from . import contractions, elementwise, movement, reductions
from .call import Call, Formula
from .movement import accessed_bytes

__all__ = ["FORMULAS", "Call", "Formula", "accessed_bytes", "flops"]

FORMULAS: dict[str, Formula] = (
    movement.FORMULAS | elementwise.FORMULAS | reductions.FORMULAS | contractions.FORMULAS
)


def flops(call: Call) -> int | None:
    """Floating-point operations of a call; ``None``: its kind has no formula."""
    formula = FORMULAS.get(call.traits.kind.removeprefix("_foreach_"))
    return None if formula is None else formula(call)
