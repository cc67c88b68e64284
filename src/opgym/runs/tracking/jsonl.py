"""Metrics as lines of JSON, the default."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import InvalidRunError
from ...graphs.atomic import write_text
from .append_file import AppendFile, explained
from .tracker import Metrics, Tracker, plain

FILE, SUMMARY_FILE = "metrics.jsonl", "summary.json"
#: Keys of a line beside its metrics, whose names all hold a slash.
STEPS, SECONDS, NOT_FINITE = "steps", "seconds", "not_finite"


@dataclass(frozen=True)
class LogLine:
    """One line of a log.

    Attributes:
        steps: Steps of the environment so far.
        seconds: Wall time of the training so far, without the time between interruption and resumption.
        metrics: By name.
    """

    steps: int
    seconds: float
    metrics: dict[str, float]

    def to_json(self) -> str:
        """The line, without its end.

        JSON has no NaN and no infinity: such a metric is ``null``, and what it was stands under ``not_finite``.
        """
        odd = {name: str(value) for name, value in self.metrics.items() if not math.isfinite(value)}
        row: dict[str, Any] = {STEPS: self.steps, SECONDS: round(self.seconds, 3)}
        row |= {name: None if name in odd else value for name, value in self.metrics.items()}
        if odd:
            row[NOT_FINITE] = odd
        return json.dumps(row, allow_nan=False)

    @classmethod
    def from_json(cls, text: bytes | str) -> LogLine:
        """Reads a line.

        Raises:
            ValueError: It is none.
        """
        row = json.loads(text)
        try:
            steps, seconds, odd = row.pop(STEPS), row.pop(SECONDS), row.pop(NOT_FINITE, {})
            metrics = {name: float(odd[name] if value is None else value) for name, value in row.items()}
            if type(steps) is not int or not isinstance(seconds, int | float):
                raise ValueError("steps are an integer, and seconds a number")
            return cls(steps, float(seconds), metrics)
        except (AttributeError, KeyError, TypeError) as error:
            raise ValueError(f"no line of a log ({error!r})") from None


def read_log(path: Path) -> list[LogLine]:
    """The lines of a log; a last one that was torn by a crash is left out.

    Raises:
        InvalidRunError: A line is damaged.
        OSError: It cannot be read.
    """
    lines = []
    for number, (line, _) in enumerate(_whole_lines(path), 1):
        if line is None:
            raise InvalidRunError(f"{path}:{number}: no line of a log of metrics")
        lines.append(line)
    return lines


def _whole_lines(path: Path) -> Iterator[tuple[LogLine | None, int]]:
    """Every line that has an end: what it says (``None`` where it is damaged), and where it ends in the file."""
    end = 0
    for raw in path.read_bytes().splitlines(keepends=True):
        end += len(raw)
        if not raw.endswith(b"\n"):
            return
        try:
            yield LogLine.from_json(raw), end
        except ValueError:
            yield None, end


class JsonlTracker(Tracker):
    """One line for each log, in ``metrics.jsonl``; the summary in ``summary.json``.

    A line is written with one call to the operating system, so whatever kills the process, at most the last line is
    torn; where the disk is full, a part of a line is taken back. A training that goes on cuts off the lines past its
    checkpoint, which it will log again: the file is the same as that of an uninterrupted training, but for seconds
    and the other metrics of the clock.

    Args:
        folder: Of the run; made if absent.
        resumed_from: Steps of the checkpoint that the training goes on from; ``None``: it begins, and whatever is in
            the file goes.
        clock: Seconds from any origin.

    Raises:
        InvalidRunError: A line before the checkpoint is damaged.
        OSError: The file cannot be read or written.
    """

    def __init__(
        self, folder: Path, *, resumed_from: int | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._path = folder / FILE
        self._clock = clock
        folder.mkdir(parents=True, exist_ok=True)
        size, before = 0, 0.0
        if resumed_from is not None and self._path.exists():
            damaged = 0
            for number, (line, end) in enumerate(_whole_lines(self._path), 1):
                if line is None:
                    damaged = damaged or number
                elif line.steps <= resumed_from:
                    size, before = end, line.seconds
                    if damaged:
                        raise InvalidRunError(
                            f"{self._path}:{damaged}: no line of a log of metrics, and the checkpoint at "
                            f"{resumed_from:,} steps comes after it; move the file away to go on without it"
                        )
        self._file = AppendFile(self._path, size=size)
        self._start = clock() - before
        self._summary: dict[str, Any] = {}
        (folder / SUMMARY_FILE).unlink(missing_ok=True)

    def log(self, steps: int, metrics: Metrics) -> None:
        """Writes a line."""
        line = LogLine(steps, self._clock() - self._start, {name: float(metrics[name]) for name in metrics})
        self._file.append(line.to_json().encode() + b"\n")

    def summary(self, values: Mapping[str, Any]) -> None:
        """Writes the file anew."""
        self._summary |= values
        path = self._path.with_name(SUMMARY_FILE)
        try:
            write_text(path, json.dumps(plain(self._summary), indent=1, allow_nan=False) + "\n")
        except OSError as error:
            raise explained(error, path) from error

    def sync(self) -> None:
        """Waits for the disk."""
        self._file.sync()

    def close(self) -> None:
        """Closes the file."""
        self._file.close()
