"""Metrics as TensorBoard's event files; neither PyTorch nor TensorFlow is needed."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...errors import MissingExtraError
from .append_file import AppendFile
from .tracker import Metrics, Tracker, plain

FOLDER = "tensorboard"
_PREFIX = "events.out.tfevents."


class TensorBoardTracker(Tracker):
    """Event files in the folder ``tensorboard`` of the run; ``tensorboard --logdir FOLDER`` shows all runs below.

    An event is in the file when ``log`` returns. A training that goes on begins a new file, whose first events tell
    TensorBoard to forget what comes after the checkpoint. Configuration and summary are texts.

    Args:
        folder: Of the run.
        config: Of the run.
        resumed_from: Steps of the checkpoint that the training goes on from; ``None``: it begins.

    Raises:
        MissingExtraError: TensorBoard is not installed.
        OSError: The file cannot be made.
    """

    def __init__(self, folder: Path, config: Mapping[str, Any], *, resumed_from: int | None = None) -> None:
        try:
            from tensorboard.compat.proto.event_pb2 import Event, SessionLog
        except ImportError as error:
            raise MissingExtraError(
                "logger tensorboard needs TensorBoard; install it with: pip install 'opgym[train]'"
            ) from error
        folder = folder / FOLDER
        folder.mkdir(parents=True, exist_ok=True)
        second = int(time.time())
        earlier = sorted(folder.glob(f"{_PREFIX}*"))
        if earlier:  # files are read in the order of their names
            second = max(second, int(earlier[-1].name.removeprefix(_PREFIX).split(".")[0]) + 1)
        self._file = AppendFile(folder / f"{_PREFIX}{second:010}.opgym")
        self._steps = 0 if resumed_from is None else resumed_from
        self._summary: dict[str, Any] = {}
        self._write(Event(file_version="brain.Event:2"))
        first = 0 if resumed_from is None else resumed_from + 1
        self._write(Event(step=first, session_log=SessionLog(status=SessionLog.START)))
        self._text("config", config)

    def log(self, steps: int, metrics: Metrics) -> None:
        """Writes an event with all metrics."""
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.proto.summary_pb2 import Summary

        self._steps = steps
        values = [Summary.Value(tag=name, simple_value=float(value)) for name, value in metrics.items()]
        self._write(Event(step=steps, summary=Summary(value=values)))

    def summary(self, values: Mapping[str, Any]) -> None:
        """Writes all that is known as a text."""
        self._summary |= values
        self._text("summary", self._summary)

    def _text(self, tag: str, values: Mapping[str, Any]) -> None:
        """Writes a mapping as text, which TensorBoard shows as Markdown."""
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.proto.summary_pb2 import Summary
        from tensorboard.compat.proto.tensor_pb2 import TensorProto
        from tensorboard.compat.proto.types_pb2 import DT_STRING
        from tensorboard.plugins.text.metadata import create_summary_metadata

        text = f"```json\n{json.dumps(plain(values), indent=1, allow_nan=False)}\n```"
        tensor = TensorProto(dtype=DT_STRING, string_val=[text.encode()])
        value = Summary.Value(tag=tag, metadata=create_summary_metadata(tag, ""), tensor=tensor)
        self._write(Event(step=self._steps, summary=Summary(value=[value])))

    def _write(self, event: Any) -> None:
        from tensorboard.summary.writer.record_writer import RecordWriter

        event.wall_time = time.time()
        record = io.BytesIO()
        RecordWriter(record).write(event.SerializeToString())
        self._file.append(record.getvalue())

    def sync(self) -> None:
        """Waits for the disk."""
        self._file.sync()

    def close(self) -> None:
        """Closes the file."""
        self._file.close()
