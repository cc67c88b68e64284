"""The zoo: training and inference graphs of real networks, shipped as files with a manifest.

Reading needs nothing beyond opgym; building (``opgym datasets build``) needs the extra ``zoo``.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from ...errors import unknown_id
from ...graphs.readers import Imported, ImportReport
from .manifest import MANIFEST, Entry, Manifest, read_graph

PREFIX = "zoo/"
#: Where the shipped graphs are.
FOLDER = Path(__file__).parent / "graphs"

__all__ = ["FOLDER", "PREFIX", "entry", "ids", "manifest", "read"]


@cache
def manifest() -> Manifest:
    """What is shipped.

    Raises:
        InvalidDatasetError: The manifest is damaged.
    """
    return Manifest.load(FOLDER / MANIFEST)


def ids() -> list[str]:
    """All ids of the zoo, sorted."""
    return [PREFIX + name for name in sorted(manifest().entries)]


def entry(id: str) -> Entry:
    """What the manifest says of a graph.

    Args:
        id: One of :func:`ids`, with or without the prefix.

    Raises:
        UnknownIdError: With the nearest ids.
    """
    found = manifest().entries.get(id.removeprefix(PREFIX))
    if found is None:
        raise unknown_id("dataset", PREFIX + id.removeprefix(PREFIX), ids())
    return found


def read(id: str) -> Imported:
    """Reads a graph, and makes sure that it is the one that the manifest describes.

    Raises:
        UnknownIdError: With the nearest ids.
        ImportFailedError: Its file is missing, damaged or another one.
    """
    row = entry(id)
    graph = read_graph(FOLDER, row)
    configuration = {"batch": row.batch, **row.configuration} if row.batch is not None else row.configuration
    notes = (
        f"zoo version {manifest().dataset_version}, family {row.family}, split {row.split}",
        f"{row.reference} (definition: {row.source}, {row.licence})",
        "configuration: " + ", ".join(f"{key} {value}" for key, value in configuration.items()),
    )
    report = ImportReport(
        PREFIX + row.name, "npz", row.level, row.ops, row.tensors, row.fingerprint, notes=notes
    )
    return Imported(graph, report)
