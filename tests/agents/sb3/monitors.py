"""Monitors of trainings, for tests."""

from collections.abc import Callable, Mapping
from pathlib import Path

from opgym.agents.metrics import TIMED, check_names


class Stopped(Exception):
    """Where a training was interrupted."""


class Recorder:
    """Keeps what is logged, and makes a checkpoint at every offer from some steps on, or none.

    Args:
        folder: Of checkpoints; ``None``: none are made.
        latest: Checkpoint to go on from.
        stop_after: Checkpoints after which the training is interrupted.
        first: Steps of the first checkpoint.
    """

    def __init__(
        self,
        folder: Path | None = None,
        *,
        latest: Path | None = None,
        stop_after: int | None = None,
        first: int = 0,
    ) -> None:
        self.folder, self.latest, self.stop_after, self.first = folder, latest, stop_after, first
        self.lines: list[tuple[int, dict[str, float]]] = []
        self.offered: list[int] = []
        self.checkpoints: list[Path] = []
        self.ended = False

    def log(self, steps: int, metrics: Mapping[str, float]) -> None:
        check_names(metrics)
        assert steps not in self.offered  # a line stands before the checkpoint of its steps
        self.lines.append((steps, dict(metrics)))

    def checkpoint(self, steps: int, write: Callable[[Path], None], *, last: bool = False) -> None:
        self.offered.append(steps)
        self.ended |= last
        if self.folder is None or steps < self.first:
            return
        folder = self.folder / str(steps)
        folder.mkdir()
        write(folder)
        self.checkpoints.append(folder)
        if self.stop_after is not None and len(self.checkpoints) == self.stop_after:
            raise Stopped

    @property
    def curve(self) -> list[tuple[int, dict[str, float]]]:
        """What was logged, without what depends on the clock."""
        return [(steps, {k: v for k, v in line.items() if k not in TIMED}) for steps, line in self.lines]
