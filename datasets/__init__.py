"""Ids to graphs: ``zoo/<name>``, ``onnx-light/<name>``, ``example/<name>``, ``synthetic/<family>?...``, or a path.

An id names the same graph on every machine with the same versions; a path is read as what its content is.
``#augment=SEED`` behind any of them asks for a copy with other sizes and costs.
"""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..errors import ImportFailedError, UnknownIdError, unknown_id
from ..graphs import Graph
from ..graphs.readers import Imported, ImportReport
from ..graphs.readers import read as read_file
from . import example, onnx_light, reference, synthetic, zoo
from .suites import protocol, protocol_names, suite, suite_names

__all__ = ["ids", "load", "protocol", "protocol_names", "read", "reference", "suite", "suite_names"]

_AUGMENT = re.compile(r"augment=([0-9]{1,18})")


def ids() -> list[str]:
    """All ids, sorted; of each synthetic family one."""
    return sorted([*zoo.ids(), *onnx_light.ids(), *example.ids(), *synthetic.ids()])


def load(id: str | os.PathLike[str], **options: Any) -> Graph:
    """The graph of an id or file; see :func:`read`."""
    return read(id, **options).graph


def read(id: str | os.PathLike[str], **options: Any) -> Imported:
    """The graph of an id or file, with its import report.

    Args:
        id: An id of :func:`ids`, a synthetic one with other parameters, or the path of a file; with
            ``#augment=SEED`` behind it, an augmented copy (see ``synthetic.augment``). An id goes before a
            file of the same name.
        options: Those of ``opgym.graphs.readers.read`` (``dims``, ``subgraphs``, ``strict``, ...).

    Raises:
        UnknownIdError: Neither an id nor a file; the message has the nearest ids.
        ImportFailedError: The file cannot be read, or an option does not apply.
    """
    name = os.fspath(id)
    base, mark, fragment = name.rpartition("#")
    if mark and not Path(name).exists():
        match = _AUGMENT.fullmatch(fragment)
        if match is None:
            raise ImportFailedError(
                f"{name}: {fragment[:40]!r} after '#'; expected augment=SEED, e.g. augment=7"
            )
        imported = synthetic.augment_imported(_read(base, options), int(match[1]))
        return replace(imported, report=replace(imported.report, source=name))
    return _read(name, options)


def _read(name: str, options: dict[str, Any]) -> Imported:
    if name.startswith(synthetic.PREFIX):
        _refuse_model_options(name, options)
        return synthetic.read(name)
    if name.startswith(zoo.PREFIX):
        _refuse_model_options(name, options)
        return zoo.read(name)
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
    _refuse_model_options(name, options)
    report = ImportReport(name, "example", graph.level, graph.num_ops, graph.num_tensors, graph.fingerprint)
    return Imported(graph, report)


def _refuse_model_options(name: str, options: dict[str, Any]) -> None:
    """Refuses what only a model file needs; policies that find nothing to act on are harmless."""
    for option in ("dims", "trust", "shapes", "costs"):
        if options.get(option):
            raise ImportFailedError(
                f"{name}: {option} is given ({options[option]!r}) and nothing is unknown there; leave it out"
            )


def _looks_like_path(name: str) -> bool:
    return bool(Path(name).suffix) or Path(name).is_absolute() or name.startswith(".")


def _unknown(name: str) -> UnknownIdError:
    known = {full.rpartition("/")[2].partition("?")[0]: full for full in ids()}
    stem = name.partition("?")[0]
    if stem in known:  # the family was left out
        return UnknownIdError(
            f"unknown dataset {name!r}; did you mean {known[stem]}? (nor is there a file of that name)"
        )
    return unknown_id("dataset or file", name, ids())
