"""Measures a sample again: whether what is stored is what this machine finds."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from . import methods
from .course import Course
from .figures import Line, line
from .measuring import Job, measured_here
from .reproduction import Measured, Report
from .workloads import PCIE, Workload, chosen, unscreened, workloads

#: Rows of the sample: small graphs of different networks, one of them unscreened.
_SAMPLE = ("rnnlm-2l", "transformer-xl-4l", "inception-v3-b32")
_SMALL_OPS = 1_000
#: Rules that are soon done.
_RULES = (methods.HUMAN, methods.METIS, "m-topo", "m-etf", "heft")
#: Most that values of a network may be apart: its sums are in another order on another processor.
TOLERANCE = 0.01


@dataclass(frozen=True)
class Agreement:
    """What a run found now, beside what is stored.

    Attributes:
        job: The run.
        stored: Nanoseconds of a step; infinite: nothing fits.
        now: The same.
    """

    job: Job
    stored: float
    now: float

    @property
    def holds(self) -> bool:
        """Whether both are the same, or near of a network."""
        if self.stored == self.now:
            return True
        near = TOLERANCE if self.job.method.learned else 0.0
        return math.isfinite(self.stored) and abs(self.now / self.stored - 1) <= near

    def __str__(self) -> str:
        return f"{self.job.label}: {self.now / 1e6:.3f} ms, and {self.stored / 1e6:.3f} ms are stored"

    def lines(self) -> Iterator[Line]:
        """As figures: ``agrees`` is 1 or 0."""
        task = f"check/{self.job.workload.label}"
        if math.isfinite(self.now):
            yield line(task, self.job.method.name, "step_time_ms", self.now / 1e6, 1)
        yield line(task, self.job.method.name, "agrees", int(self.holds), 1)


def sample(measured: Measured) -> list[tuple[Job, Mapping[str, Any]]]:
    """Runs of the sample that are stored and can be repeated here, with their rows."""
    found = []
    for workload in _rows(measured.settings.rows):
        few = [method for method in methods.searches() if method.name == methods.FEW]
        rules = [method for method in methods.heuristics() if method.name in _RULES]
        trained = [methods.zero_shot(weights) for weights in methods.PRETRAINED]
        for method in (*rules, *few, *trained):
            job = Job(workload, method, 0)
            row = measured.store.find(workload, method, 0)
            asked = measured.settings.has(method.name.partition("@")[0].partition(" ")[0])
            if row is not None and method.contestant is not None and asked:
                found.append((job, row))
    return found


def check(measured: Measured, progress: Report | None = None) -> list[Agreement]:
    """Measures the sample again; nothing is stored.

    Args:
        measured: What is stored.
        progress: Told how far it is.
    """
    report, wanted = progress or (lambda done, total, name: None), sample(measured)
    found = []
    for done, (job, row) in enumerate(wanted):
        report(done, len(wanted), job.label)
        now = Course.of(measured_here(job))
        found.append(Agreement(job, Course.of(row).value, now.value))
    return found


def _rows(texts: tuple[str, ...]) -> list[Workload]:
    of_suite = [w for w in workloads() if w.graph in _SAMPLE and w.link == PCIE]
    small = [w for w in unscreened() if w.ops <= _SMALL_OPS][:1]
    return chosen([*of_suite, *small], texts)
