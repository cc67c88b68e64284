"""What a placer saves beside what all learners with a network do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from ....graphs.closed_json import Row
from ..options import made
from ..saved import SavedFormat, require_weights_of
from .learned import LearnedPlacer, PlacerRecord

#: Of a file that is read: more of anything is a mistake, or mischief.
_MOST_GRAPHS, _MOST_PROBLEMS = 1_000_000, 2**62
#: Least gain: placements can be as bad as anything.
_LEAST_GAIN = -1e12


class PlacerFormat(SavedFormat[LearnedPlacer]):
    """The shape of the policy, and graphs by their fingerprints."""

    name = "opgym.agent.placer/1"
    keys = ("network",)
    record = PlacerRecord

    def described(self, learned: LearnedPlacer) -> dict[str, Any]:
        return {"network": asdict(learned.network)}

    def recorded(self, row: Row) -> dict[str, Any]:
        graphs = row.rows("graphs", _MOST_GRAPHS)
        if not all(isinstance(graph, str) for graph in graphs):
            row.refuse("has graphs that are no fingerprints")
        known = row.get("validation_gain") is not None
        return {
            "problems": row.integer("problems", 1, _MOST_PROBLEMS),
            "graphs": tuple(graphs),
            "validation_gain": row.number("validation_gain", _LEAST_GAIN, 1) if known else None,
        }

    def learned(
        self,
        learner: type[Any],
        row: Row,
        weights: Mapping[str, NDArray[Any]],
        trainings: tuple[PlacerRecord, ...],
        where: Path,
    ) -> LearnedPlacer:
        network = made(learner.network_type, row.get("network"), row, "a network")
        learned = LearnedPlacer(weights, trainings, network)
        require_weights_of(learner, learned, where)
        return learned
