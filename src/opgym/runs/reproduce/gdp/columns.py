"""Columns of tables: what each method has found on each row, run by run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from . import methods
from .course import Course
from .methods import Method
from .plan import as_many
from .reproduction import Measured
from .workloads import Workload


@dataclass(frozen=True)
class Column:
    """One column.

    Attributes:
        name: What tables call it.
        courses: Its runs by row; rows that were not measured are not there.
        random: Whether it has a run for each seed.
        learned: Whether a network is in it.
    """

    name: str
    courses: Mapping[str, Sequence[Course]]
    random: bool = False
    learned: bool = False

    def of(self, workload: Workload) -> Sequence[Course]:
        """Its runs on a row to which it applies."""
        return [course for course in self.courses.get(workload.name, ()) if course.applies]

    def value(self, workload: Workload) -> float:
        """Nanoseconds of a step, the mean over seeds with which it fits; infinite: none; NaN: there is no run."""
        values = [course.value for course in self.of(workload)]
        fitting = [value for value in values if math.isfinite(value)]
        if fitting:
            return sum(fitting) / len(fitting)
        return math.inf if values else math.nan

    def pairs(self, other: Column, workload: Workload) -> list[tuple[Course, Course]]:
        """Runs of this column and of another with the same seed; what draws no random number has the same for all."""
        both = self.random and other.random
        return [
            (ours, theirs)
            for ours in self.of(workload)
            for theirs in other.of(workload)
            if not both or ours.seed == theirs.seed
        ]

    def at(self, evaluations: int) -> Column:
        """The same after so many evaluations of each run."""
        cut = {row: [course.at(evaluations) for course in found] for row, found in self.courses.items()}
        name = methods.cut_name(self.name, evaluations)
        return Column(name, cut, self.random, self.learned)

    def unseen(self) -> Column:
        """The same without rows from whose graphs it has learned."""
        return self._only(seen=False)

    def seen(self) -> Column:
        """The same with rows from whose graphs it has learned alone."""
        return self._only(seen=True)

    def _only(self, seen: bool) -> Column:
        left = {row: [c for c in found if c.seen == seen] for row, found in self.courses.items()}
        found = {row: courses for row, courses in left.items() if courses}
        return Column(self.name, found, self.random, self.learned)


def column(measured: Measured, workloads: Sequence[Workload], method: Method) -> Column:
    """Runs of a method."""
    found = {workload.name: measured.courses(workload, method) for workload in workloads}
    return _column(method, found)


def rules(measured: Measured, workloads: Sequence[Workload]) -> list[Column]:
    """The heuristics that are asked for, and the best of all on each row."""
    settings = measured.settings
    found = [
        column(measured, workloads, method) for method in methods.heuristics() if settings.has(method.name)
    ]
    if settings.has(methods.PORTFOLIO):
        best = {workload.name: measured.portfolio(workload) for workload in workloads}
        found.append(Column(methods.PORTFOLIO, {row: courses for row, courses in best.items() if courses}))
    return found


def searches(measured: Measured, workloads: Sequence[Workload]) -> list[Column]:
    """The searches that are asked for, those with few evaluations first."""
    found = [method for method in methods.searches() if measured.settings.has(method.name.partition("@")[0])]
    found.sort(key=lambda method: method.evaluations or 0)
    return [column(measured, workloads, method) for method in found]


def from_scratch(measured: Measured, workloads: Sequence[Workload]) -> list[Column]:
    """The learners that are asked for, with their whole budget."""
    return [
        column(measured, workloads, method)
        for method in methods.learners()
        if measured.settings.has(method.name)
    ]


def annealing_as_many(measured: Measured, workloads: Sequence[Workload]) -> Column:
    """Annealing with as many evaluations as fine-tuning had on the row."""
    found = {}
    for workload in workloads:
        method = as_many(measured.settings, measured.store, workload)
        if method is not None:
            found[workload.name] = measured.courses(workload, method)
    return Column(methods.AS_MANY, {row: courses for row, courses in found.items() if courses}, random=True)


def shown(columns: Sequence[Column]) -> dict[str, Column]:
    """Columns with something in them, by name."""
    return {each.name: each for each in columns if each.courses}


def _column(method: Method, found: Mapping[str, Sequence[Course]]) -> Column:
    courses = {row: runs for row, runs in found.items() if runs}
    return Column(method.name, courses, method.random, method.learned)
