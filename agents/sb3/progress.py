"""What is known of a training's episodes: those since the last line of the log, and the best of all."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...envs.placement.reward import reference_of
from ...problems import AnyProblem, PlacementProblem
from .. import metrics


class EpisodeLog:
    """Keeps what the episodes of a training came to.

    Args:
        problems: What they are about.
    """

    def __init__(self, problems: Sequence[AnyProblem]) -> None:
        self._references = [_reference(problem) for problem in problems]
        self._best = [math.inf] * len(problems)
        self._ended = 0
        self._recent: list[tuple[float, int, float, int]] = []

    def add(self, slot: int, info: Mapping[str, Any]) -> None:
        """Takes an episode that ended in a slot."""
        problem = int(info.get("graph", slot % len(self._best)))
        outcome, episode = info["outcome"], info["episode"]
        value = outcome.value if outcome.ok else math.inf
        self._best[problem] = min(self._best[problem], value)
        self._ended += 1
        self._recent.append((episode["r"], episode["l"], value, int(info["illegal_actions"])))

    def line(self) -> dict[str, float]:
        """Metrics of the episodes since the last line; those of none are left out."""
        line = {metrics.EPISODES.name: float(self._ended)}
        if self._recent:
            returns, lengths, values, illegal = map(np.array, zip(*self._recent, strict=True))
            feasible = np.isfinite(values)
            line[metrics.EPISODIC_RETURN.name] = float(returns.mean())
            line[metrics.EPISODIC_LENGTH.name] = float(lengths.mean())
            line[metrics.ILLEGAL_ACTIONS.name] = float(illegal.sum())
            line[metrics.FEASIBLE_SHARE.name] = float(feasible.mean())
            if feasible.any():
                line[metrics.VALUE.name] = float(values[feasible].mean())
        ratios = [
            best / reference
            for best, reference in zip(self._best, self._references, strict=True)
            if best < math.inf
        ]
        if ratios:
            line[metrics.RATIO_TO_REFERENCE.name] = float(np.mean(ratios))
            if len(self._best) == 1:
                line[metrics.BEST_VALUE.name] = self._best[0]
        self._recent = []
        return line

    def state(self) -> dict[str, Any]:
        """For a checkpoint."""
        return {
            "best": np.array(self._best, np.float64),
            "ended": self._ended,
            "recent": np.array(self._recent, np.float64).reshape(-1, 4),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Goes on from a :meth:`state`."""
        self._best, self._ended = state["best"].tolist(), state["ended"]
        self._recent = [(r, int(n), v, int(i)) for r, n, v, i in state["recent"].tolist()]


def _reference(problem: AnyProblem) -> float:
    """What the environment divides values by."""
    if isinstance(problem, PlacementProblem):
        return reference_of(problem).value
    return float(max(problem.reference_bytes, 1))
