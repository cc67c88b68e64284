"""Makes weights that come with the package out of trainings.

    python -m opgym.runs.train.shipping regal-plus runs/a runs/b runs/c

Of several trainings of one agent that with the median gain on validation graphs gets the name; the others get it with
``-seedN``. A name with a slash, ``ablations/NAME``, is for weights that no agent takes by itself.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

from ...agents.networks.saved import WEIGHTS_FILE
from ...agents.networks.shelf import ShelvedLearner
from ...agents.saved import AGENT_FILE, AGENT_FOLDER, load
from ...errors import InvalidRunError
from ...graphs.atomic import atomic_write, write_text
from ..run_folder import CONFIG, Progress, progress_of
from ..tracking.jsonl import FILE as METRICS_FILE
from ..tracking.jsonl import read_log

#: Of the lines of a log that say nothing about validation, every so many is kept.
_EVERY = 100
_NAME = re.compile(r"(ablations/)?[a-z0-9]+(-[a-z0-9]+)*", re.ASCII)


def ship(name: str, runs: Sequence[Path], folder: Path | None = None) -> list[Path]:
    """Copies the agents of finished trainings, with their settings and the curve of their metrics.

    Args:
        name: Of the weights.
        runs: Folders of trainings of the same agent, each with another seed.
        folder: Where weights are; that of the family of the agent where absent.

    Returns:
        The folder of each training's weights.

    Raises:
        InvalidRunError: A training is not finished, has no validation gain, or is of another agent or of the same seed
            as another one; there are weights of that name; or it is no name.
        OpgymError: An agent is damaged.
    """
    if not _NAME.fullmatch(name):
        raise InvalidRunError(f"weights cannot be called {name!r}; expected a-b-c, or ablations/a-b-c")
    gains: list[tuple[float, int]] = []
    for run in runs:
        if progress_of(run) is not Progress.FINISHED:
            raise InvalidRunError(f"{run}: no finished training")
        learner = load(run)
        if not isinstance(learner, ShelvedLearner) or learner.learned is None:
            raise InvalidRunError(f"{run}: {learner.name} is no learner that comes trained")
        training = learner.learned.trainings[-1]
        if training.validation_gain is None:
            raise InvalidRunError(f"{run}: no training with validation graphs")
        folder = folder or learner.shelf.folder
        gains.append((training.validation_gain, training.seed))
    if not runs or len({seed for _, seed in gains}) < len(runs) or len({load(run).name for run in runs}) > 1:
        raise InvalidRunError("expected trainings of one agent, each with another seed")
    median = sorted(gains)[(len(gains) - 1) // 2]
    assert folder is not None  # there is a training
    targets = [folder / (name if gain == median else f"{name}-seed{gain[1]}") for gain in gains]
    for target in targets:
        if target.exists():
            raise InvalidRunError(f"{target} exists; remove it, or choose another name")
    for run, target in zip(runs, targets, strict=True):
        _copy(run, target)
    return targets


def _copy(run: Path, target: Path) -> None:
    """Writes the folder of some weights; ``agent.json`` comes last, so a folder that has it is complete."""
    target.mkdir(parents=True)
    lines = read_log(run / METRICS_FILE)
    kept = [
        line
        for number, line in enumerate(lines)
        if number % _EVERY == 0 or any("validation" in metric for metric in line.metrics)
    ]
    write_text(target / METRICS_FILE, "".join(f"{line.to_json()}\n" for line in kept))
    write_text(target / CONFIG, (run / CONFIG).read_text(encoding="utf-8"))
    for file in (WEIGHTS_FILE, AGENT_FILE):
        with atomic_write(target / file) as out:
            out.write((run / AGENT_FOLDER / file).read_bytes())


if __name__ == "__main__":
    for path in ship(sys.argv[1], [Path(run) for run in sys.argv[2:]]):
        print(path)
