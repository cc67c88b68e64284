"""Ids to graphs: ``onnx-light/<name>``, ``example/<name>``, or the path of a file.

An id names the same graph on every machine with the same versions; a path is read as what its content is.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..errors import ImportFailedError, UnknownIdError, unknown_id
from ..graphs import Graph
from ..graphs.readers import Imported, ImportReport
from ..graphs.readers import read as read_file
from . import example, onnx_light

__all__ = ["ids", "load", "read"]


def ids() -> list[str]:
    """All ids, sorted."""
    return sorted([*onnx_light.ids(), *example.ids()])


def load(id: str | os.PathLike[str], **options: Any) -> Graph:
    """The graph of an id or file; see :func:`read`."""
    return read(id, **options).graph


def read(id: str | os.PathLike[str], **options: Any) -> Imported:
    """The graph of an id or file, with its import report.

    Args:
        id: An id of :func:`ids`, or the path of a file. An id goes before a file of the same name.
        options: Those of ``opgym.graphs.readers.read`` (``dims``, ``subgraphs``, ``strict``, ...).

    Raises:
        UnknownIdError: Neither an id nor a file; the message has the nearest ids.
        ImportFailedError: The file cannot be read, or an option does not apply.
    """
    name = os.fspath(id)
    if name.startswith(onnx_light.PREFIX):
        imported = onnx_light.read(name, **options)
        return replace(imported, report=replace(imported.report, source=name))
    if name.startswith(example.PREFIX):
        return _read_example(name, options)
    if not Path(name).exists() and not _looks_like_path(name):
        raise _unknown(name)
    return read_file(name, **options)


def _read_example(name: str, options: dict[str, Any]) -> Imported:
    graph = example.load(name)
    if options.get("dims"):
        raise ImportFailedError(f"{name} has no dynamic dimension; leave dims={options['dims']!r} out")
    report = ImportReport(name, "example", graph.level, graph.num_ops, graph.num_tensors, graph.fingerprint)
    return Imported(graph, report)


def _looks_like_path(name: str) -> bool:
    return bool(Path(name).suffix) or Path(name).is_absolute() or name.startswith(".")


def _unknown(name: str) -> UnknownIdError:
    known = {full.rpartition("/")[2]: full for full in ids()}
    if name in known:  # the family was left out
        return UnknownIdError(
            f"unknown dataset {name!r}; did you mean {known[name]}? (nor is there a file of that name)"
        )
    return unknown_id("dataset or file", name, ids())
