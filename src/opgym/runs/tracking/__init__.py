"""Where the metrics of a training go: JSON lines, TensorBoard, Weights & Biases, a progress bar."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ...errors import InvalidProblemError, MissingExtraError, unknown_id
from .jsonl import FILE, JsonlTracker, LogLine, read_log
from .tracker import Metrics, Tracker, Trackers, plain

__all__ = [
    "NAMES",
    "JsonlTracker",
    "LogLine",
    "Metrics",
    "Tracker",
    "Trackers",
    "check_trackers",
    "make_tracker",
    "plain",
    "read_log",
]

#: What ``make_tracker`` knows.
NAMES = ("jsonl", "tensorboard", "wandb", "console")
#: Those that need a package of their name, and the extra that brings it.
_EXTRAS = {"tensorboard": "train", "wandb": "wandb"}


def check_trackers(names: Sequence[str], wandb: Mapping[str, Any] | None = None) -> None:
    """Refuses, before there is anything to track, what :func:`make_tracker` would refuse.

    Args:
        names: Of :data:`NAMES`.
        wandb: Options of ``wandb``.

    Raises:
        UnknownIdError: No such tracker, option or mode, with the nearest ones.
        InvalidProblemError: An option that is no text.
        MissingExtraError: What a tracker needs is not installed.
    """
    from .wandb import MODES, WandbTracker

    for name in names:
        if name not in NAMES:
            raise unknown_id("logger", name, list(NAMES))
        if name in _EXTRAS and find_spec(name) is None:
            raise MissingExtraError(
                f"logger {name} needs the package of that name; install it with: pip install 'opgym[{_EXTRAS[name]}]'"
            )
    for option, value in (wandb or {}).items():
        if option not in WandbTracker.OPTIONS:
            raise unknown_id("option of wandb", option, sorted(WandbTracker.OPTIONS))
        if value is not None and not isinstance(value, str):
            raise InvalidProblemError(f"logger.wandb.{option} = {value!r:.100}; expected text")
        if option == "mode" and value and value not in MODES:
            raise unknown_id("mode of wandb", value, list(MODES))


def make_tracker(
    names: Sequence[str],
    folder: Path,
    config: Mapping[str, Any],
    *,
    title: str = "training",
    total_steps: int | None = None,
    resumed_from: int | None = None,
    reference: float | None = None,
    unit: str = "",
    wandb: Mapping[str, Any] | None = None,
) -> Trackers:
    """Makes the trackers of a run.

    Args:
        names: Of :data:`NAMES`, in any order.
        folder: Of the run, which they write into.
        config: Of the run, as plain data; kept with its metrics.
        title: Of the run, for people.
        total_steps: Steps that the training will take.
        resumed_from: Steps of the checkpoint that it goes on from (``None``: it begins): what was logged past them
            goes.
        reference: Value of the objective that the best value is compared with.
        unit: Of the objective.
        wandb: Options of ``wandb``: ``mode``, ``project``, ``entity``.

    Raises:
        UnknownIdError: No such tracker or option, with the nearest ones.
        MissingExtraError: What a tracker needs is not installed.
        OSError: The folder cannot be written.
    """
    check_trackers(names, wandb)
    made: list[Tracker] = []
    try:
        history: list[LogLine] = []
        for name in sorted(dict.fromkeys(names), key=NAMES.index):
            if name == "jsonl":
                made.append(JsonlTracker(folder, resumed_from=resumed_from))
                history = read_log(folder / FILE)
            elif name == "tensorboard":
                from .tensorboard import TensorBoardTracker

                made.append(TensorBoardTracker(folder, config, resumed_from=resumed_from))
            elif name == "wandb":
                from .wandb import WandbTracker

                made.append(
                    WandbTracker(
                        folder,
                        config,
                        title=title,
                        resumed_from=resumed_from,
                        history=history,
                        **(wandb or {}),
                    )
                )
            else:
                from .console import ConsoleTracker

                made.append(
                    ConsoleTracker(title, total_steps=total_steps, resumed_from=resumed_from or 0, unit=unit)
                )
    except BaseException:
        Trackers(made).close()
        raise
    return Trackers(made, reference=reference, resumed_from=resumed_from)
