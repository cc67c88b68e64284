"""What a learner on Stable-Baselines3 saves beside what all learners with a network do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from ...envs import ENTRY_POINTS
from ...errors import OpgymError
from ...graphs.closed_json import Row
from ..networks.saved import SavedFormat
from .learned import Learned, ProblemRecord, TrainingRecord

#: Of a file that is read: more is a mistake, or mischief.
_MOST_PROBLEMS = 100_000


class EpisodeFormat(SavedFormat[Learned]):
    """Which environment was played, and problems in full."""

    name = "opgym.agent.sb3/1"
    keys = ("environment",)
    record = TrainingRecord

    def described(self, learned: Learned) -> dict[str, Any]:
        return {"environment": learned.environment}

    def recorded(self, row: Row) -> dict[str, Any]:
        problems = row.rows("problems", _MOST_PROBLEMS)
        if not problems:
            row.refuse("has no problems")
        return {
            "problems": tuple(_problem(each, f"{row.where} problem {i}") for i, each in enumerate(problems))
        }

    def learned(
        self,
        learner: type[Any],
        row: Row,
        weights: Mapping[str, NDArray[Any]],
        trainings: tuple[TrainingRecord, ...],
        where: Path,
    ) -> Learned:
        if row.text("environment") not in ENTRY_POINTS:
            row.refuse(f"was trained on {row.text('environment')!r:.60}; known: {', '.join(ENTRY_POINTS)}")
        return Learned(weights, trainings, row.text("environment"))


def _problem(value: Any, where: str) -> ProblemRecord:
    names = [f.name for f in fields(ProblemRecord)]
    row = Row(value, where, OpgymError, names)
    return ProblemRecord(**{name: row.text(name) for name in names})
