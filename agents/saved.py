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


def load(folder: str | os.PathLike[str]) -> Learner[Any, Any]:
    """Reads a learner that ``save`` wrote; nothing in the folder is ever executed or unpickled.

    Args:
        folder: With ``agent.json``.

    Raises:
        OpgymError: It is damaged, of another version, or no saved learner at all.
        UnknownIdError: No agent has its name, with the nearest ones.
    """
    path = Path(folder) / AGENT_FILE
    document = read_json(path, OpgymError, "a saved agent")
    name = document.get("agent") if isinstance(document, dict) else None
    if not isinstance(name, str):
        raise OpgymError(f"{path}: names no agent; expected what an agent's save wrote")
    saved = solver_class(name)
    if not (is_learner(saved) and issubclass(saved, Learner)):
        raise OpgymError(f"{path}: agent {name!r} cannot be trained, so there is nothing of it to load")
    return saved.load(Path(folder))
