"""``opgym reproduce gdp``: takes what is stored, measures what is not, and says what tables are made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ...parallel import Died, as_they_finish
from ...row_file import RowFile
from . import methods
from .course import Course, best_of
from .measuring import Job, measure
from .methods import Method
from .plan import Settings, followers, jobs
from .store import ROWS, Store, packaged, read
from .workloads import Workload

#: Told how many of how many runs are done, and which was the last.
Report = Callable[[int, int, str], None]


@dataclass(frozen=True)
class Measured:
    """What is known of what was asked for.

    Attributes:
        settings: What was asked for.
        store: Rows.
        failed: Of runs that ended before their time, which and why.
    """

    settings: Settings
    store: Store
    failed: tuple[str, ...] = ()

    def courses(self, workload: Workload, method: Method) -> list[Course]:
        """Runs of a method on a row, one for each seed; those that are not stored are not among them."""
        rows = [
            self.store.find(workload, method.on(workload), seed)
            for seed in method.seeds(workload, self.settings.seeds)
        ]
        return [Course.of(row) for row in rows if row is not None]

    def portfolio(self, workload: Workload) -> list[Course]:
        """The best heuristic of a row; none where one of them is not stored."""
        found = [course for method in methods.heuristics() for course in self.courses(workload, method)]
        return [best_of(found)] if len(found) == len(methods.HEURISTICS) else []

    @property
    def runnable(self) -> list[Job]:
        """Runs that can be measured here, as far as they are known."""
        every = (*jobs(self.settings, self.store), *followers(self.settings, self.store))
        return [job for job in every if job.method.contestant is not None]

    @property
    def missing(self) -> list[Job]:
        """Runs that can be measured here, and are not stored."""
        return [job for job in self.runnable if not self._knows(job)]

    @property
    def notes(self) -> list[str]:
        """What a reader of the tables must know of what is not in them, or not in the way that it seems."""
        absent: dict[str, bool] = {}
        for job in jobs(self.settings, self.store):
            if job.method.contestant is None:
                absent[job.method.missing] = absent.get(job.method.missing, False) or self._knows(job)
        found = [
            f"{reason}: {'its columns are of earlier runs' if known else 'no column for it'}"
            for reason, known in absent.items()
        ]
        if left := len(self.missing) - len(self.failed):
            found.append(f"{left:,} runs that tables ask for are not stored")
        return found

    def _knows(self, job: Job) -> bool:
        return self.store.find(job.workload, job.method, job.seed) is not None


def known(settings: Settings, folder: Path, package: Path | None = None) -> Measured:
    """What is stored, in the package and by earlier runs; nothing is measured or written.

    Args:
        settings: What is asked for.
        folder: Of earlier runs, whether it is there or not.
        package: Where the rows of the package are, if elsewhere.
    """
    return Measured(settings, Store([*packaged(package), *read(folder / ROWS)]))


def complete(found: Measured, folder: Path, workers: int = 1, progress: Report | None = None) -> Measured:
    """Measures what is not stored, in a folder that nobody else works in.

    Args:
        found: What is known.
        folder: Gets the rows, each as soon as it is measured.
        workers: Processes; but for seconds, results do not depend on how many.
        progress: Told how far it is.

    Returns:
        All that was asked for; a run that died is measured anew the next time.
    """
    file = RowFile(folder / ROWS)
    for stored in file.rows:  # a run that had the folder before may have gone on meanwhile
        found.store.take(stored)
    failed: dict[str, str] = {}
    report = progress or (lambda done, total, name: None)
    # Annealing with as many evaluations as fine-tuning had is known when fine-tuning is done.
    while left := [job for job in found.missing if job.key not in failed]:
        total = len(found.runnable)
        done = total - len(left)
        report(done, total, "")
        for job, row in as_they_finish(measure, left, workers):
            if isinstance(row, Died):
                failed[job.key] = f"{job.label}: {row.reason}"
            else:
                file.append(row)
                found.store.take(file.rows[-1])
            done += 1
            report(done, total, job.label)
    return Measured(found.settings, found.store, tuple(failed.values()))
