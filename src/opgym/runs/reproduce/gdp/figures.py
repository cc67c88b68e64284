"""Means of columns over rows, with intervals that draw whole families of workloads."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ....statistics import clustered_mean
from .columns import Column
from .course import Course
from .workloads import NVLINK, PCIE, SUITE, Workload

Line = dict[str, Any]
#: Bootstrap samples of each of the many intervals; the page with them is made anew in every test.
_SAMPLES = 2_000
#: Groups of rows of which means are told.
ALL, TASKS = "all", "tasks"
GROUPS: Mapping[str, Callable[[Workload], bool]] = {
    ALL: lambda workload: True,
    TASKS: lambda workload: not workload.control,
    PCIE.lower(): lambda workload: workload.link == PCIE,
    NVLINK.lower(): lambda workload: workload.link == NVLINK,
}


def line(
    task: str,
    method: str,
    metric: str,
    value: float,
    n: int,
    low: float | None = None,
    high: float | None = None,
) -> Line:
    """One figure as it is reported."""
    return {
        "task": task, "method": method, "metric": metric, "value": value, "low": low, "high": high, "n": n,
        "paper": None,
    }  # fmt: skip


def cluster_of(workload: Workload) -> str:
    """What must be drawn together: the family of a workload, of other graphs the family with its twins."""
    return workload.case.family if workload.case.suite == SUITE else workload.case.twins


def mean(
    task: str,
    method: str,
    metric: str,
    values: Sequence[float],
    clusters: Sequence[str],
    *,
    geometric: bool = False,
) -> Iterator[Line]:
    """The mean of values with its interval; no line without a value, no interval of few clusters."""
    if not len(values):
        return
    given = np.log(values) if geometric else np.asarray(values, float)
    found = clustered_mean(given, clusters, resamples=_SAMPLES).document()
    value, low, high = (
        None if end is None else math.exp(end) if geometric else end
        for end in (found["estimate"], found["low"], found["high"])
    )
    assert value is not None
    yield line(task, method, metric, value, len(values), low, high)


@dataclass(frozen=True)
class Figures:
    """Figures of the columns of one table.

    Attributes:
        table: Its name, with which tasks begin.
        workloads: Its rows.
        columns: By name.
        groups: Of rows, of which means are told.
    """

    table: str
    workloads: Sequence[Workload]
    columns: Mapping[str, Column]
    groups: Sequence[str] = field(default=tuple(GROUPS))

    def rows(self) -> Iterator[Line]:
        """Each column on each row.

        ``step_time_ms`` is a mean over seeds with which it fits, its ends the least and the most of several;
        ``ratio_to_best_known``; ``out_of_memory`` counts seeds with which nothing fits.
        """
        for workload in self.workloads:
            task = f"{self.table}/{workload.label}"
            for column in self.columns.values():
                courses = column.of(workload)
                if not courses:
                    continue
                fitting = [course.value for course in courses if math.isfinite(course.value)]
                if fitting:
                    ends = (min(fitting) / 1e6, max(fitting) / 1e6) if len(courses) > 1 else (None, None)
                    value, n = column.value(workload), len(courses)
                    yield line(task, column.name, "step_time_ms", value / 1e6, n, *ends)
                    if best := workload.case.best_known:
                        yield line(task, column.name, "ratio_to_best_known", value / best, n)
                count = len(courses) - len(fitting)
                yield line(task, column.name, "out_of_memory", count, len(courses))
                yield from _spent(task, column.name, courses)

    def ratios(self, to: str = "best_known") -> Iterator[Line]:
        """Geometric means of ratios to the best known values, or to another column, where both are feasible."""
        for column in self.columns.values():
            if column.name == to:
                continue
            yield from self._grouped(column.name, f"ratio_to_{to}", self.ratio_of(column, to), geometric=True)

    def improvements(self, base: str, name: str = "", only: Sequence[str] = ()) -> Iterator[Line]:
        """1 - value / that of a base: the mean over seeds of each row, and then over rows.

        Args:
            base: Column that others are compared with.
            name: What metrics call it.
            only: Columns to compare; all others without.
        """
        if base not in self.columns:
            return
        for column in self.columns.values():
            if column.name == base or (only and column.name not in only):
                continue
            found = {w.name: self._gain(column, self.columns[base], w) for w in self.workloads}
            yield from self._grouped(column.name, f"improvement_over:{name or base}", found)

    def spent(self) -> Iterator[Line]:
        """What fits, evaluations and seconds of a run, and the most memory."""
        task = f"{self.table}/{ALL}"
        for column in self.columns.values():
            courses = [course for workload in self.workloads for course in column.of(workload)]
            if courses:
                fits = [math.isfinite(course.value) for course in courses]
                yield line(task, column.name, "feasible", sum(fits) / len(fits), len(fits))
                yield from _spent(task, column.name, courses)

    # --- arithmetic

    def ratio_of(self, column: Column, to: str = "best_known") -> dict[str, float]:
        """Ratios of a column by row; infinite or NaN where one of both has no value."""
        return {w.name: column.value(w) / self._base(to, w) for w in self.workloads}

    def _base(self, to: str, workload: Workload) -> float:
        if to == "best_known":
            return workload.case.best_known or math.nan
        return self.columns[to].value(workload) if to in self.columns else math.nan

    @staticmethod
    def _gain(column: Column, base: Column, workload: Workload) -> float:
        gains = [
            1 - ours.value / theirs.value
            for ours, theirs in column.pairs(base, workload)
            if math.isfinite(ours.value) and math.isfinite(theirs.value)
        ]
        return sum(gains) / len(gains) if gains else math.nan

    def _grouped(
        self, name: str, metric: str, values: Mapping[str, float], *, geometric: bool = False
    ) -> Iterator[Line]:
        """A mean over each group of rows, of those with a value."""
        for group in self.groups:
            rows = [w for w in self.workloads if GROUPS[group](w) and math.isfinite(values[w.name])]
            found, clusters = [values[w.name] for w in rows], list(map(cluster_of, rows))
            yield from mean(f"{self.table}/{group}", name, metric, found, clusters, geometric=geometric)


def _spent(task: str, method: str, courses: Sequence[Course]) -> Iterator[Line]:
    """Means of what was spent, and the most memory."""
    n = len(courses)
    yield line(task, method, "evaluations", sum(course.evaluations for course in courses) / n, n)
    yield line(task, method, "seconds", sum(course.seconds for course in courses) / n, n)
    peaks = [course.peak_bytes for course in courses if course.peak_bytes is not None]
    if peaks:
        yield line(task, method, "peak_memory_bytes", max(peaks), len(peaks))
