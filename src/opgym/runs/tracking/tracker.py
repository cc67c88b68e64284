"""Where a training's metrics go: one interface, several places."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Self

import numpy as np

from ...agents.metrics import BEST_VALUE, RATIO_TO_REFERENCE, check_names

Metrics = Mapping[str, float]


class Tracker(ABC):
    """Takes the metrics of one training.

    Steps never go backwards. A context manager: closed at the end of the block, whatever ended it.
    """

    @abstractmethod
    def log(self, steps: int, metrics: Metrics) -> None:
        """Takes metrics.

        Args:
            steps: Steps of the environment so far.
            metrics: By name; NaN and infinite values are kept as such.

        Raises:
            OSError: They cannot be written; what was logged before stays readable.
        """

    @abstractmethod
    def summary(self, values: Mapping[str, Any]) -> None:
        """Takes what the training came to, replacing what an earlier summary said of the same names.

        Args:
            values: Numbers, texts, or lists and mappings of those.
        """

    def sync(self) -> None:
        """Returns when what was logged survives a crash of the machine (that of the process, it always does)."""
        return

    @abstractmethod
    def close(self) -> None:
        """Ends it; a second time does nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Trackers(Tracker):
    """Several at once, in their order, which also knows what holds for all of them.

    Args:
        trackers: What metrics go to.
        reference: Value that the best value is divided by; ``None``: there is no such ratio.
        resumed_from: Steps of the checkpoint that the training goes on from, if any.
    """

    def __init__(
        self, trackers: Sequence[Tracker], *, reference: float | None = None, resumed_from: int | None = None
    ) -> None:
        self._trackers = tuple(trackers)
        self._reference = reference
        self._steps = 0 if resumed_from is None else resumed_from

    def log(self, steps: int, metrics: Metrics) -> None:
        """Takes metrics, and adds the ratio to the reference.

        Raises:
            ValueError: Steps go backwards.
            UnknownIdError: A name that nobody has explained, with the nearest ones.
        """
        if steps < self._steps:
            raise ValueError(
                f"metrics of {steps} steps after those of {self._steps}; steps never go backwards"
            )
        check_names(metrics)
        self._steps = steps
        values = {name: float(value) for name, value in metrics.items()}
        if self._reference and BEST_VALUE.name in values and RATIO_TO_REFERENCE.name not in values:
            values[RATIO_TO_REFERENCE.name] = values[BEST_VALUE.name] / self._reference
        for tracker in self._trackers:
            tracker.log(steps, values)

    def summary(self, values: Mapping[str, Any]) -> None:
        """Takes what the training came to."""
        for tracker in self._trackers:
            tracker.summary(values)

    def sync(self) -> None:
        """Returns when all of them are safe."""
        for tracker in self._trackers:
            tracker.sync()

    def close(self) -> None:
        """Ends all of them, also where one fails."""
        with ExitStack() as stack:
            for tracker in reversed(self._trackers):
                stack.callback(tracker.close)


def plain(value: Any) -> Any:
    """A value as JSON has it: NumPy's scalars and arrays as Python's, ``null`` for NaN and infinite numbers.

    Whatever else is no JSON becomes its text.
    """
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    return value if value is None or isinstance(value, bool | int | str) else str(value)
