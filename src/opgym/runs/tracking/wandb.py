"""Metrics for Weights & Biases, without an account or a network unless they are asked for."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ...errors import MissingExtraError, OpgymError, unknown_id
from .jsonl import LogLine
from .tracker import Metrics, Tracker, plain

#: Where metrics go: into a file of the run's folder, to an account, or nowhere.
MODES = ("offline", "online", "disabled")
#: Seconds until what was logged is in the file; what is younger is lost when the process is killed.
FLUSH_SECONDS = 1.0


class WandbTracker(Tracker):
    """A run in the folder ``wandb`` of the run's, which ``wandb sync FOLDER/wandb/offline-run-*`` uploads.

    Offline unless ``mode`` or the environment variable ``WANDB_MODE`` says otherwise. Configuration, metrics and
    summary are in the file a second later, and stay there when the process is killed. Nothing of the machine, of git
    or of the code is collected.

    A run of Weights & Biases cannot be cut back to a checkpoint, so a training that goes on begins a new one of the
    same group, which has the curve up to the checkpoint, too.

    Args:
        folder: Of the run.
        config: Of the run.
        title: Names the run, and its group.
        resumed_from: Steps of the checkpoint that the training goes on from; ``None``: it begins.
        history: What was logged up to there.
        mode: One of :data:`MODES`.
        project: Of Weights & Biases.
        entity: User or team of an account; its default if absent.

    Raises:
        MissingExtraError: ``wandb`` is not installed.
        UnknownIdError: No such mode.
        OpgymError: ``wandb`` does not begin, as when it is online without an account.
    """

    OPTIONS = frozenset({"mode", "project", "entity"})

    def __init__(
        self,
        folder: Path,
        config: Mapping[str, Any],
        *,
        title: str,
        resumed_from: int | None = None,
        history: Iterable[LogLine] = (),
        mode: str | None = None,
        project: str | None = None,
        entity: str | None = None,
    ) -> None:
        mode = mode or os.environ.get("WANDB_MODE") or MODES[0]
        if mode not in MODES:
            raise unknown_id("mode of wandb", mode, list(MODES))
        os.environ.setdefault("WANDB_ERROR_REPORTING", "false")  # read at the first import
        if not os.access(Path.home(), os.W_OK):  # else its logs go to stderr
            os.environ.setdefault("WANDB_CACHE_DIR", str(folder / "wandb"))
        try:
            import wandb
        except ImportError as error:
            raise MissingExtraError(
                "logger wandb needs the package of that name; install it with: pip install 'opgym[wandb]'"
            ) from error
        folder.mkdir(parents=True, exist_ok=True)
        settings = wandb.Settings(
            silent=mode != "online",
            console="off",
            disable_code=True,
            disable_git=True,
            disable_job_creation=True,
            x_disable_machine_info=True,
            x_disable_meta=True,
            x_disable_stats=True,
            x_save_requirements=False,
            x_transaction_log_flush_interval=FLUSH_SECONDS,
        )
        begun = {} if resumed_from is None else {"resumed_from": resumed_from}
        try:
            self._run = wandb.init(
                mode=mode,  # type: ignore[arg-type]
                dir=folder,
                project=project or os.environ.get("WANDB_PROJECT") or "opgym",
                entity=entity,
                name=title,
                group=title,
                config={**plain(config), **begun},
                reinit="create_new",
                settings=settings,
            )
        except wandb.Error as error:
            raise OpgymError(f"wandb (mode {mode}): {error}; mode=offline needs no account") from error
        self._closed = False
        self._run.define_metric("*", step_metric="steps")
        for line in history:
            self.log(line.steps, line.metrics)

    def log(self, steps: int, metrics: Metrics) -> None:
        """Hands metrics to the process of ``wandb``; those that are not finite, as text."""
        values = {name: value if math.isfinite(value) else str(value) for name, value in metrics.items()}
        self._run.log({"steps": steps, **values})

    def summary(self, values: Mapping[str, Any]) -> None:
        """Hands the summary on."""
        self._run.summary.update(plain(values))

    def close(self) -> None:
        """Waits until everything is in the file, or uploaded."""
        if not self._closed:
            self._closed = True
            self._run.finish()
