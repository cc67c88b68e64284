"""What one run found, evaluation by evaluation."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .store import applies

Point = tuple[int, float, float | None]


@dataclass(frozen=True)
class Course:
    """A run.

    Attributes:
        seed: Its seed.
        evaluations: What it spent.
        seconds: How long it took, on one core.
        curve: Every new best: evaluations, seconds, nanoseconds of a step (``None``: it does not fit).
        applies: Whether the method applies to the row at all.
        peak_bytes: The most memory of its process; ``None``: not told.
        seen: Whether what comes trained has learned from this graph.
        weights: Digest of those.
    """

    seed: int
    evaluations: int
    seconds: float
    curve: tuple[Point, ...]
    applies: bool = True
    peak_bytes: int | None = None
    seen: bool = False
    weights: str = ""

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Course:
        """That of a stored row."""
        curve = tuple((point[0], point[1], point[2]) for point in row["curve"])
        return cls(
            row["seed"], row["evaluations"], row["seconds"], curve, applies(row), row["peak_bytes"], row["seen"],
            row["weights"],
        )  # fmt: skip

    @property
    def value(self) -> float:
        """Nanoseconds of the best step; infinite: nothing fits, NaN: the method does not apply."""
        if not self.applies:
            return math.nan
        last = self.curve[-1][2] if self.curve else None
        return math.inf if last is None else last

    def at(self, evaluations: int) -> Course:
        """What it had found and spent after so many evaluations; all of it if it spent fewer.

        Seconds are those of the whole run in proportion.
        """
        if evaluations >= self.evaluations:
            return self
        return replace(
            self,
            evaluations=evaluations,
            seconds=self.seconds * evaluations / self.evaluations,
            curve=tuple(point for point in self.curve if point[0] <= evaluations),
        )

    def evaluations_to(self, value: float) -> int | None:
        """Evaluations to something that is at least as good; ``None``: it never found that."""
        return next((spent for spent, _, found in self.curve if found is not None and found <= value), None)


def best_of(courses: Sequence[Course]) -> Course:
    """Runs of several methods one after the other: the best of all counts, and so does what all of them spent."""
    curve: list[Point] = []
    spent, seconds, best = 0, 0.0, math.inf
    for course in courses:
        for evaluations, after, value in course.curve:
            if value is not None and value < best:
                best = value
                curve.append((spent + evaluations, seconds + after, value))
        spent, seconds = spent + course.evaluations, seconds + course.seconds
    return Course(0, spent, seconds, tuple(curve), any(course.applies for course in courses))
