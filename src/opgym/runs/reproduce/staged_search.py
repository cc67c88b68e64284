"""Settings searched in stages: each tries what the one before kept, on other problems, against the defaults."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...statistics import clustered_mean
from ..parallel import in_order
from ..row_file import RowFile

Setting = Mapping[str, Any]
Floats = NDArray[np.float64]


class Keyed(Protocol):
    """Something to measure."""

    @property
    def key(self) -> dict[str, Any]:
        """What a stored row must share under ``trial`` to stand for it, as JSON data."""


class Round(Protocol):
    """One stage of a search."""

    @property
    def keep(self) -> int:
        """How many settings stay."""


_Trial = TypeVar("_Trial", bound=Keyed)
_Round = TypeVar("_Round", bound=Round)


class Laboratory(Generic[_Trial]):
    """Measures what no row stands for yet.

    Args:
        measure: Makes the row of a trial; a function of a module.
        file: Rows, of earlier runs too.
        workers: Processes; rows do not depend on how many.
        total: How much there will be to measure, in trials.
        progress: Told how many of how many trials are done.
    """

    def __init__(
        self,
        measure: Callable[[_Trial], dict[str, Any]],
        file: RowFile,
        workers: int,
        total: int,
        progress: Callable[[int, int], None] | None,
    ) -> None:
        self._measure, self._file, self._workers = measure, file, workers
        self._total = total
        self._progress = progress or (lambda done, total: None)
        self._done = 0
        self._count(0)

    def rows(self, trials: Sequence[_Trial]) -> list[dict[str, Any]]:
        """The row of each trial."""
        missing = [trial for trial in trials if self._stored(trial) is None]
        self._count(len(trials) - len(missing))
        for made in in_order(self._measure, missing, self._workers):
            self._file.append(made)
            self._count(1)
        return [row for trial in trials if (row := self._stored(trial)) is not None]

    def _count(self, more: int) -> None:
        self._done += more
        self._progress(self._done, self._total)

    def _stored(self, trial: _Trial) -> dict[str, Any] | None:
        key = trial.key
        return next((row for row in self._file.rows if row.get("trial") == key), None)


@dataclass(frozen=True)
class Kept:
    """What a stage came to.

    Attributes:
        tried: How many settings it tried beside the defaults.
        settings: Those that it kept, best first.
        gains: Mean gain of each over the defaults.
    """

    tried: int
    settings: tuple[Setting, ...]
    gains: tuple[float, ...]

    def document(self) -> dict[str, Any]:
        """``settings`` (how many were tried) and ``kept`` (``setting`` and ``gain`` of each)."""
        pairs = zip(self.settings, self.gains, strict=True)
        return {
            "settings": self.tried,
            "kept": [{"setting": dict(setting), "gain": gain} for setting, gain in pairs],
        }


def search(
    untuned: Setting,
    candidates: Sequence[Setting],
    stages: Sequence[_Round],
    values: Callable[[_Round, Sequence[Setting]], Floats],
) -> Iterator[Kept]:
    """Stage by stage, the settings with the highest mean gain; of equal ones, those that came first.

    Args:
        untuned: The defaults, which run beside the candidates in every stage.
        candidates: Settings to choose from.
        stages: In order.
        values: Measures settings in a stage, ``[settings, problems, seeds]``, infinity where nothing is feasible.
    """
    chosen = tuple(candidates)
    for stage in stages:
        mean = gains(values(stage, [untuned, *chosen])).mean(axis=(1, 2))[1:]
        best = np.argsort(-mean, kind="stable")[: stage.keep].tolist()
        kept = Kept(len(chosen), tuple(chosen[i] for i in best), tuple(float(mean[i]) for i in best))
        yield kept
        chosen = kept.settings


def gains(values: Floats) -> Floats:
    """1 - value / value of the defaults with the same seed; lower values are better.

    Where only the defaults find something, the gain is minus infinity, so that no mean hides it; where only the setting
    does, it is 1, as if the defaults had needed infinitely much; where neither does, 0.

    Args:
        values: ``[settings, problems, seeds] float``, first the defaults; infinity where nothing is feasible.

    Returns:
        ``[settings, problems, seeds] float``, 0 for the defaults.
    """
    with np.errstate(invalid="ignore"):
        found: Floats = 1 - values / values[:1]
    return np.where(np.isnan(found), 0.0, found)


def mean_gain(found: ArrayLike, graph: ArrayLike) -> dict[str, float | None]:
    """Mean of gains, with an interval over graphs where there are enough of them for one.

    Args:
        found: ``[gains] float``.
        graph: Of each, ``[gains]``.

    Returns:
        ``estimate``, ``low`` and ``high`` (95 %; ``None`` below ``LEAST_CLUSTERS`` graphs or where a gain is infinite)
        and ``clusters`` (graphs).
    """
    values = np.asarray(found, np.float64)
    if np.isfinite(values).all():
        return clustered_mean(values, graph).document()
    return {"estimate": float(values.mean()), "low": None, "high": None, "clusters": len(np.unique(graph))}


def gain_text(line: Mapping[str, Any]) -> str:
    """A gain in per cent, with its interval where :func:`mean_gain` gave one."""
    if not math.isfinite(line["estimate"]):
        return "minus infinity (nothing feasible where the defaults find something)"
    mean = f"{100 * line['estimate']:.1f} %"
    if line.get("low") is None:
        return mean
    return f"{mean} [{100 * line['low']:.1f}, {100 * line['high']:.1f}]"
