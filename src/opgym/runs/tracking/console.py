"""A progress bar, where somebody looks."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ...agents.metrics import BEST_VALIDATION_GAIN, BEST_VALUE, RATIO_TO_REFERENCE
from .tracker import Metrics, Tracker

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID


class ConsoleTracker(Tracker):
    """Steps, steps per second, the best value so far and the time left, in one line on stderr.

    The best value stands with its ratio to the reference; where weights are chosen by validation problems, it is what
    the best ones gain there.

    Where stderr is no terminal nothing is shown: a log file or the output of a job is no place for a bar.

    Args:
        title: What is trained.
        total_steps: Steps that the training will take; ``None``: there is no time left to tell.
        resumed_from: Steps of the checkpoint that it goes on from.
        unit: Of the best value.
        console: Where to; stderr if absent.
        clock: Seconds from any origin.
    """

    def __init__(
        self,
        title: str,
        *,
        total_steps: int | None,
        resumed_from: int = 0,
        unit: str = "",
        console: Console | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._bar: Progress | None = None
        if console is None and not sys.stderr.isatty():
            return
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=20),
            TextColumn("{task.fields[said]}", markup=False),
        )
        self._bar = Progress(
            *columns, console=console or Console(stderr=True), auto_refresh=False, transient=False
        )
        self._clock = clock
        self._began, self._begin_steps = clock(), resumed_from
        self._total, self._unit = total_steps, unit
        self._best: float | None = None
        self._ratio: float | None = None
        self._gain: float | None = None
        self._task: TaskID = self._bar.add_task(title, total=total_steps, completed=resumed_from, said="")
        self._bar.start()

    def log(self, steps: int, metrics: Metrics) -> None:
        """Draws the bar anew."""
        if self._bar is None:
            return
        self._best = metrics.get(BEST_VALUE.name, self._best)
        self._ratio = metrics.get(RATIO_TO_REFERENCE.name, self._ratio)
        self._gain = metrics.get(BEST_VALIDATION_GAIN.name, self._gain)
        self._bar.update(self._task, completed=steps, said=self._said(steps), refresh=True)

    def _said(self, steps: int) -> str:
        total = "" if self._total is None else f"/{self._total:,}"
        parts = [f"{steps:,}{total} steps"]
        seconds = self._clock() - self._began
        rate = (steps - self._begin_steps) / seconds if seconds > 0 else 0.0
        if rate:
            parts.append(f"{rate:,.0f} steps/s")
        if self._best is not None:
            parts.append(f"best {self._best:,.6g} {self._unit}".rstrip())
        if self._ratio is not None:
            parts.append(f"{self._ratio:.3f} of reference")
        if self._gain is not None:
            parts.append(f"{self._gain:+.1%} gained on validation problems")
        if rate and self._total is not None and steps < self._total:
            parts.append(f"{duration((self._total - steps) / rate)} left")
        return ", ".join(parts)

    def summary(self, values: Mapping[str, Any]) -> None:
        """Nothing: the command says what came out."""

    def close(self) -> None:
        """Leaves the last line where it is."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


def duration(seconds: float) -> str:
    """Seconds as ``1:02:03`` or ``2:03``."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
