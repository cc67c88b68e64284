"""What an evaluation says: a value, its unit, a verdict and details. Lower is better."""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


class Verdict(enum.StrEnum):
    """Why a solution counts, or does not."""

    OK = "ok"
    OUT_OF_MEMORY = "out_of_memory"
    COLOCATION_VIOLATED = "colocation_violated"
    UNSUPPORTED_DEVICE = "unsupported_device"
    UNKNOWN_DEVICE = "unknown_device"
    WRONG_LENGTH = "wrong_length"
    ILLEGAL_ORDER = "illegal_order"
    INVALID_PRIORITY = "invalid_priority"


@dataclass(frozen=True)
class Outcome:
    """The result of evaluating one solution of one problem.

    Attributes:
        value: The objective, lower is better; ``inf`` where the verdict leaves nothing to measure
            (a wrong length, say). A value stands beside ``out_of_memory``: what the run would have cost.
        unit: Unit of the value: ``"ns"``, ``"bytes"`` or ``"ms"``.
        verdict: ``ok``, or why the solution is infeasible.
        overflow_share: For ``out_of_memory``, bytes over capacity / capacity on the worst device; else 0.
        details: Further figures, by name with units (``peak_bytes``, ``busy_ns``, ...).
    """

    value: float
    unit: str
    verdict: Verdict = Verdict.OK
    overflow_share: float = 0.0
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether the solution is feasible."""
        return self.verdict is Verdict.OK

    @property
    def sort_key(self) -> tuple[int, float, float]:
        """Orders outcomes, best first: feasible ones by value, then infeasible ones by overflow and value."""
        if self.ok:
            return (0, 0.0, self.value)
        measured = 1 if math.isfinite(self.value) else 2
        return (measured, self.overflow_share, self.value)

    def better_than(self, other: Outcome | None) -> bool:
        """Whether this outcome is strictly preferable to ``other`` (any outcome is to ``None``)."""
        return other is None or self.sort_key < other.sort_key
