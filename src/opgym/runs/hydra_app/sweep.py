"""The jobs of a sweep: what each is, how it went, and the file that says so."""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ...graphs.atomic import write_text
from ..run_folder import ERROR, Progress
from .application import Application
from .composed import plain_settings

FILE = "sweep.json"
FORMAT, VERSION = "opgym.sweep", 1
WAITING, FINISHED, FAILED = "waiting", "finished", "failed"
#: What a job's result may hold that a table of jobs shows.
SHOWN = ("value", "unit", "verdict", "ratio_to_reference", "score", "seconds")


@dataclass(frozen=True)
class Job:
    """One run of a sweep, as it goes to another process.

    Attributes:
        number: In the sweep, from 0.
        overrides: That make it differ from the others, ``KEY=VALUE``.
        settings: All of its settings, as plain data.
        folder: Absolute path of its folder.
    """

    number: int
    overrides: tuple[str, ...]
    settings: Mapping[str, Any]
    folder: str


@dataclass(frozen=True)
class Report:
    """How a job went.

    Attributes:
        number: Of the job.
        result: Of the run; ``None``: it failed.
        error: What went wrong, in one line.
    """

    number: int
    result: Mapping[str, Any] | None = None
    error: str = ""


def execute(application: Application[Any], job: Job) -> Report:
    """Does a job, in whatever process; an error becomes part of the report, and a file in the run's folder."""
    folder = Path(job.folder)
    try:
        # The sweep has looked at what is in the folder; whoever starts a job again goes on with it.
        result = application.run(application.settings({**job.settings, "resume": True}), folder)
    except Exception as error:
        write_error(folder, error)
        return Report(job.number, error=one_line(error))
    (folder / ERROR).unlink(missing_ok=True)
    return Report(job.number, result)


def one_line(error: BaseException) -> str:
    """An error as a line of text."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def write_error(folder: Path, error: BaseException) -> None:
    """Leaves the traceback in the folder of the run, where that is possible."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_text(folder / ERROR, "".join(traceback.format_exception(error)))
    except OSError:  # a full disk may be what the error is about
        return


@dataclass
class Row:
    """One line of the record of a sweep.

    Attributes:
        number: Of the job.
        folder: Of the job, below that of the sweep.
        overrides: That make it differ.
        state: ``"waiting"`` (or running), ``"finished"`` or ``"failed"``.
        error: What went wrong.
        result: What its result holds of :data:`SHOWN`.
    """

    number: int
    folder: str
    overrides: tuple[str, ...]
    state: str = WAITING
    error: str = ""
    result: dict[str, Any] = field(default_factory=dict)

    @property
    def score(self) -> float | None:
        """What a search over jobs minimises; ``None``: the job failed, or has none."""
        return self.result.get("score")


@dataclass
class Sweep:
    """A sweep as it goes on; also what Hydra takes for the task, so that every launcher can reach it.

    Attributes:
        application: Whose runs these are.
        quiet: Whether jobs that finish are not said on stderr; those that fail always are.
        folder: Of the sweep, once it is known.
        rows: One for each job so far.
        outcome: What a search over the jobs came to, where there was one.
    """

    application: Application[Any]
    quiet: bool = False
    folder: Path | None = None
    rows: list[Row] = field(default_factory=list)
    outcome: dict[str, Any] = field(default_factory=dict)

    def __call__(self, settings: Any) -> float:
        """Does one job where a launcher of another package starts it, in the folder that Hydra made."""
        from hydra.core.hydra_config import HydraConfig

        read = self.application.settings({**plain_settings(settings), "resume": True})
        result = self.application.run(read, Path(HydraConfig.get().runtime.output_dir))
        return float(result.get("score", 0.0))

    @property
    def failures(self) -> list[Row]:
        """Jobs that failed."""
        return [row for row in self.rows if row.state == FAILED]

    def row(self, number: int) -> Row:
        """The line of a job."""
        return next(row for row in self.rows if row.number == number)

    def begin(self, folder: Path, jobs: Iterable[Job]) -> None:
        """Takes in jobs that wait."""
        self.folder = folder
        self.rows += [Row(job.number, Path(job.folder).name, job.overrides) for job in jobs]
        self.write()

    def end(self, report: Report) -> None:
        """Takes in how a job went; a failure is said at once."""
        assert self.folder is not None
        row = self.row(report.number)
        if report.result is None:
            row.state, row.error = FAILED, report.error
            print(f"failed: {self.folder / row.folder}: {report.error}", file=sys.stderr, flush=True)
        else:
            row.state, row.error = FINISHED, ""
            row.result = {key: report.result[key] for key in SHOWN if key in report.result}
            if not self.quiet:
                done = sum(other.state != WAITING for other in self.rows)
                print(
                    f"finished: {self.folder / row.folder} ({done} of {len(self.rows)})",
                    file=sys.stderr,
                    flush=True,
                )
        self.write()

    def to_json(self) -> dict[str, Any]:
        """The document of ``sweep.json``."""
        jobs = [{**asdict(row), "overrides": list(row.overrides)} for row in self.rows]
        more = {"outcome": self.outcome} if self.outcome else {}
        return {
            "format": FORMAT, "version": VERSION, "command": self.application.name, "jobs": jobs, **more,
        }  # fmt: skip

    def write(self) -> None:
        """Writes ``sweep.json``."""
        if self.folder is not None:
            write_text(self.folder / FILE, json.dumps(self.to_json(), indent=1, allow_nan=False) + "\n")


def skip_finished(sweep: Sweep, jobs: Iterable[Job], progress: Mapping[int, Progress]) -> list[Job]:
    """The jobs that are left; finished ones are reported."""
    left = []
    for job in jobs:
        if progress[job.number] is Progress.FINISHED:
            sweep.end(Report(job.number, sweep.application.result(Path(job.folder))))
        else:
            left.append(job)
    return left
