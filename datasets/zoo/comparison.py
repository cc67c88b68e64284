"""Whether a graph that was built again is the one that is shipped."""

from __future__ import annotations

import enum
import zipfile
from pathlib import Path


class Sameness(enum.StrEnum):
    """How two files are alike."""

    BYTES = "same bytes"
    CONTENT = "same content, compressed otherwise"
    NONE = "other content"
    ABSENT = "missing on one side"


def compare(built: Path, shipped: Path) -> Sameness:
    """How the file of a rebuilt graph is like the shipped one.

    Compressors differ between builds of zlib, and then the bytes of a file do, while what it holds is the same.
    """
    if not built.exists() or not shipped.exists():
        return Sameness.ABSENT
    if built.read_bytes() == shipped.read_bytes():
        return Sameness.BYTES
    return Sameness.CONTENT if _content(built) == _content(shipped) else Sameness.NONE


def _content(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}
