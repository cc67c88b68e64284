"""Saved learners of any kind, by their folder."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ..errors import OpgymError
from ..graphs.closed_json import read_json
from .learner import Learner, is_learner
from .registry import solver_class

#: What a folder of a saved learner holds, whatever else: a JSON object whose ``agent`` is the learner's name.
AGENT_FILE = "agent.json"
#: Where the folder of a training has the learner that it saved.
AGENT_FOLDER = "agent"


def saved_in(folder: str | os.PathLike[str]) -> Path | None:
    """Where a learner is saved: in a folder itself, or in the folder of its training; ``None``: in neither."""
    path = Path(folder)
    return next((place for place in (path, path / AGENT_FOLDER) if (place / AGENT_FILE).is_file()), None)


def load(folder: str | os.PathLike[str]) -> Learner[Any, Any]:
    """Reads a learner that ``save`` wrote; nothing in the folder is ever executed or unpickled.

    Args:
        folder: With ``agent.json``, or that of its training.

    Raises:
        OpgymError: It is damaged, of another version, or no saved learner at all.
        UnknownIdError: No agent has its name, with the nearest ones.
    """
    place = saved_in(folder) or Path(folder)
    path = place / AGENT_FILE
    document = read_json(path, OpgymError, "a saved agent")
    name = document.get("agent") if isinstance(document, dict) else None
    if not isinstance(name, str):
        raise OpgymError(f"{path}: names no agent; expected what an agent's save wrote")
    saved = solver_class(name)
    if not (is_learner(saved) and issubclass(saved, Learner)):
        raise OpgymError(f"{path}: agent {name!r} cannot be trained, so there is nothing of it to load")
    return saved.load(place)
