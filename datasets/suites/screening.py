"""How the rows of a suite were chosen by search: every candidate with what was found of it, also those left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from ...errors import InvalidDatasetError
from ...graphs.closed_json import Row

_MOST_CANDIDATES, _MOST_VALUE = 100_000, 2.0**63


@dataclass(frozen=True)
class Candidate:
    """One graph that was looked at.

    Attributes:
        graph: Its id.
        fingerprint: Of the graph.
        ops: Ops to decide on.
        best_heuristic: Value of the best heuristic; ``None`` where no heuristic finds anything feasible.
        best_known: Best value that anything found, heuristics among them.
        found_by: What found it.
        bound: A value that nothing beats.
        bound_by: What proved it; the optimum is proven where ``bound`` is ``best_known``.
        accepted: Whether the graph is in the suite.
    """

    graph: str
    fingerprint: str
    ops: int
    best_heuristic: float | None
    best_known: float
    found_by: str
    bound: float
    bound_by: str
    accepted: bool

    @property
    def proven(self) -> bool:
        """Whether the best known value is the optimum."""
        return self.best_known <= self.bound

    @property
    def gap(self) -> float | None:
        """By how much the best heuristic is above the best known value, as a share of the latter.

        ``None`` where no heuristic finds anything feasible.
        """
        if self.best_heuristic is None:
            return None
        return self.best_heuristic / self.best_known - 1 if self.best_known else 0.0

    @classmethod
    def from_json(cls, value: Any, where: str) -> Candidate:
        """A candidate from JSON data.

        Raises:
            InvalidDatasetError: It is none.
        """
        row = Row(value, where, InvalidDatasetError, [field.name for field in fields(cls)])
        none = row.get("best_heuristic") is None
        return cls(
            row.text("graph"), row.text("fingerprint"), row.integer("ops", 1, 2**31),
            None if none else row.number("best_heuristic", 0, _MOST_VALUE), row.number("best_known", 0, _MOST_VALUE),
            row.text("found_by"), row.number("bound", 0, _MOST_VALUE), row.text("bound_by"), row.flag("accepted"),
        )  # fmt: skip


@dataclass(frozen=True)
class Screening:
    """A search for rows.

    Attributes:
        method: What was run on each candidate, and for how long.
        candidates: All that were looked at.
    """

    method: str
    candidates: Sequence[Candidate]

    @property
    def acceptance_rate(self) -> float:
        """Share of the candidates that are in the suite."""
        if not self.candidates:
            return 0.0
        return sum(candidate.accepted for candidate in self.candidates) / len(self.candidates)

    def to_json(self) -> dict[str, Any]:
        """As JSON data."""
        return {
            "method": self.method,
            "acceptance_rate": self.acceptance_rate,
            "candidates": [asdict(candidate) for candidate in self.candidates],
        }

    @classmethod
    def from_json(cls, value: Any, where: str) -> Screening:
        """A screening from JSON data.

        Raises:
            InvalidDatasetError: It is none, or its rate is not that of its candidates.
        """
        row = Row(value, where, InvalidDatasetError, ("method", "acceptance_rate", "candidates"))
        candidates = tuple(
            Candidate.from_json(candidate, f"{where}: candidate {i}")
            for i, candidate in enumerate(row.rows("candidates", _MOST_CANDIDATES))
        )
        if len({candidate.graph for candidate in candidates}) < len(candidates):
            row.refuse("has a candidate twice")
        screening = cls(row.text("method"), candidates)
        if abs(row.number("acceptance_rate", 0, 1) - screening.acceptance_rate) > 1e-9:
            row.refuse(
                f"has acceptance_rate = {row.get('acceptance_rate')}; of its candidates "
                f"{screening.acceptance_rate:.6f} are accepted"
            )
        return screening
