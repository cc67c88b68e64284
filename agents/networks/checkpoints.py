"""Checkpoints of a training: its state, and everything that decides what it does."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...errors import OpgymError
from .tree_file import read_tree, write_tree

#: Name of the files.
_NAME = "training"


def write_checkpoint(folder: Path, identity: Mapping[str, Any], content: Mapping[str, Any]) -> None:
    """Writes a checkpoint.

    Args:
        folder: Where.
        identity: Everything that decides what the training does, as plain data.
        content: What the rest of the training depends on, as trees by name.
    """
    write_tree(folder, _NAME, {"identity": dict(identity), **content})


def read_checkpoint(folder: Path, identity: Mapping[str, Any]) -> dict[str, Any]:
    """Reads what :func:`write_checkpoint` wrote.

    Raises:
        OpgymError: It is damaged, or of another training.
    """
    tree = read_tree(folder, _NAME)
    there = tree.get("identity") if isinstance(tree, dict) else None
    if not isinstance(there, dict):
        raise OpgymError(f"{folder}: is no checkpoint of a training")
    for key, here in identity.items():
        if there.get(key) != here:
            raise OpgymError(
                f"{folder}: is a checkpoint of another training: {key} is {there.get(key)!r:.200} there and "
                f"{here!r:.200} here; go on with the same settings, or train in a new folder"
            )
    return dict(tree)
