"""What a learner of proposals saves beside what all learners with a network do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from ...errors import OpgymError
from ...graphs.closed_json import Row
from ..networks.options import made
from ..networks.saved import SavedFormat, require_weights_of
from .learned import Learned, TrainingRecord
from .task import MOST_DEVICES, OBJECTIVES, Task

#: Of a file that is read: more of anything is a mistake, or mischief.
_MOST_TASKS, _MOST_GRAPHS, _MOST = 16, 1_000_000, 2**62
#: Largest gain either way, in values of plain runs: penalties of what does not fit can be worth more than one.
_MOST_GAIN = 1_000


class ProposalFormat(SavedFormat[Learned]):
    """The shape of the policy, its tasks, and graphs by their fingerprints."""

    name = "opgym.agent.regal/1"
    keys = ("network", "initial", "tasks")
    record = TrainingRecord

    def described(self, learned: Learned) -> dict[str, Any]:
        return {
            "network": asdict(learned.network),
            "initial": learned.initial,
            "tasks": [asdict(task) for task in learned.tasks],
        }

    def recorded(self, row: Row) -> dict[str, Any]:
        tasks = row.get("tasks")
        if not isinstance(tasks, dict) or not all(
            isinstance(count, int) and not isinstance(count, bool) and 0 < count < _MOST
            for count in tasks.values()
        ):
            row.refuse("has tasks that are no numbers of problems")
        if not tasks:
            row.refuse("has no tasks")
        graphs = row.rows("graphs", _MOST_GRAPHS)
        if not all(isinstance(graph, str) for graph in graphs):
            row.refuse("has graphs that are no fingerprints")
        known = row.get("validation_gain") is not None
        gain = row.number("validation_gain", -_MOST_GAIN, _MOST_GAIN) if known else None
        return {"tasks": tasks, "graphs": tuple(graphs), "validation_gain": gain}

    def learned(
        self,
        learner: type[Any],
        row: Row,
        weights: Mapping[str, NDArray[Any]],
        trainings: tuple[TrainingRecord, ...],
        where: Path,
    ) -> Learned:
        network = made(learner.network_type, row.get("network"), row, "a network")
        tasks = tuple(
            _task(value, f"{row.where} task {i}") for i, value in enumerate(row.rows("tasks", _MOST_TASKS))
        )
        if not tasks:
            row.refuse("has no task")
        initial = row.get("initial")
        if not isinstance(initial, bool):
            row.refuse(f"has initial = {initial!r:.60}; expected true or false")
        learned = Learned(weights, trainings, network, initial, tasks)
        require_weights_of(learner, learned, where)
        return learned


def _task(value: Any, where: str) -> Task:
    row = Row(value, where, OpgymError, ("objective", "devices"))
    if row.text("objective") not in OBJECTIVES:
        row.refuse(f"has objective {row.text('objective')!r:.60}; expected {', '.join(OBJECTIVES)}")
    return Task(row.text("objective"), row.integer("devices", 1, MOST_DEVICES))
