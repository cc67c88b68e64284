"""The list of the zoo's graphs: what each file must hold and where it came from."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from ...errors import ImportFailedError, InvalidDatasetError
from ...graphs import Graph
from ...graphs.atomic import write_text
from ...graphs.closed_json import Row, read_json
from ...graphs.storage import from_bytes
from .registry import FAMILY, NAME
from .splits import SPLITS

FORMAT = "opgym.zoo"
VERSION = 1
MANIFEST = "manifest.json"
_MOST_GRAPHS, _MOST_OPS = 100_000, 2**31 - 1
_HEX_64, _HEX_16 = re.compile(r"[0-9a-f]{64}"), re.compile(r"[0-9a-f]{16}")


@dataclass(frozen=True)
class Entry:
    """One graph of the zoo.

    Attributes:
        name: The id is ``zoo/<name>``, the file ``<name>.npz``.
        sha256: Of the file.
        fingerprint: Of the graph.
        topology: Hash of op kinds and edges, sizes ignored.
        ops: Number of ops.
        tensors: Number of tensors.
        level: What an op is, e.g. ``"aten-train"``.
        family: Architecture.
        group: First family of its group of twins; a split never divides a group.
        split: ``"train"``, ``"validation"`` or ``"test"``.
        workload: Whether it is a workload of the papers (see ``registry.Definition``).
        source: Where the definition is from: ``"own"`` or a package.
        licence: SPDX identifier of the definition.
        reference: Paper and configuration, for people.
        batch: Samples per step; ``None`` where the definition has no batch.
        configuration: Whatever else distinguishes it, plain JSON values.
    """

    name: str
    sha256: str
    fingerprint: str
    topology: str
    ops: int
    tensors: int
    level: str
    family: str
    group: str
    split: str
    workload: bool
    source: str
    licence: str
    reference: str
    batch: int | None
    configuration: Mapping[str, Any]

    @property
    def file(self) -> str:
        """Name of its file in the zoo's folder."""
        return f"{self.name}.npz"

    @property
    def trains(self) -> bool:
        """Whether it is the graph of a training step."""
        return self.name.endswith("-train")

    @classmethod
    def from_row(cls, value: Any, where: str) -> Entry:
        """An entry from JSON data.

        Raises:
            InvalidDatasetError: It is no entry.
        """
        row = Row(value, where, InvalidDatasetError, [field.name for field in fields(cls)])
        text = {
            key: row.text(key)
            for key in ("name", "sha256", "fingerprint", "topology", "level", "family", "group", "split",
                        "source", "licence", "reference")
        }  # fmt: skip
        for key, form in (
            ("name", NAME), ("sha256", _HEX_64), ("fingerprint", _HEX_64), ("topology", _HEX_16),
            ("family", FAMILY), ("group", FAMILY),
        ):  # fmt: skip
            if not form.fullmatch(text[key]):  # a name is a file's name: it must not leave the folder
                row.refuse(f"has {key} = {text[key]!r:.80}; expected {form.pattern}")
        if text["split"] not in SPLITS:
            row.refuse(f"has split = {text['split']!r:.40}; expected {', '.join(SPLITS)}")
        configuration = row.get("configuration")
        if not isinstance(configuration, dict):
            row.refuse("has a configuration that is no object")
        return cls(
            ops=row.integer("ops", 1, _MOST_OPS),
            tensors=row.integer("tensors", 0, _MOST_OPS),
            workload=row.flag("workload"),
            batch=None if row.get("batch") is None else row.integer("batch", 1, _MOST_OPS),
            configuration=configuration,
            **text,
        )


@dataclass(frozen=True)
class Dropped:
    """A graph that was built and is not in the zoo.

    Attributes:
        name: Name.
        family: Architecture.
        ops: Number of ops.
        why: ``"near copy of NAME"``, ``"family is full"``, ``"too small"`` or ``"too large"``.
    """

    name: str
    family: str
    ops: int
    why: str

    @property
    def rule(self) -> str:
        """Which rule keeps it out, without the particulars."""
        return self.why.partition(":")[0].partition(" of ")[0]


@dataclass(frozen=True)
class Manifest:
    """The zoo's graphs by name, sorted, and what it was built with.

    Attributes:
        entries: The graphs.
        dropped: Graphs that a rule keeps out.
        built_with: Versions of the packages that the graphs depend on.
        dataset_version: Raised whenever the bytes of a graph change, or a graph goes.
    """

    entries: Mapping[str, Entry]
    dropped: tuple[Dropped, ...] = ()
    built_with: Mapping[str, str] | None = None
    dataset_version: int = 1

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the manifest atomically, one graph a line.

        Raises:
            OSError: The folder is missing or not writable, or the disk is full.
        """

        def lines(rows: list[dict[str, Any]]) -> str:
            return ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows)

        head = {
            "format": FORMAT,
            "version": VERSION,
            "dataset_version": self.dataset_version,
            "built_with": dict(sorted((self.built_with or {}).items())),
        }
        entries = [_plain(self.entries[name]) for name in sorted(self.entries)]
        dropped = [_plain(row) for row in sorted(self.dropped, key=lambda row: row.name)]
        write_text(
            path,
            f'{json.dumps(head)[:-1]}, "entries": [\n{lines(entries)}\n], '
            f'"dropped": [\n{lines(dropped)}\n]}}\n',
        )

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Manifest:
        """Reads a manifest.

        Raises:
            InvalidDatasetError: It cannot be read, or is none.
        """
        document = Row(
            read_json(path, InvalidDatasetError, "a manifest of the zoo"), f"{path}:", InvalidDatasetError,
            ("format", "version", "dataset_version", "built_with", "entries", "dropped"),
        )  # fmt: skip
        if document.get("format") != FORMAT or document.get("version") != VERSION:
            document.refuse(
                f"has format {document.get('format')!r:.60}, version {document.get('version')!r:.20}; "
                f"expected {FORMAT!r}, version {VERSION}"
            )
        built_with = document.get("built_with")
        if not isinstance(built_with, dict) or not all(isinstance(v, str) for v in built_with.values()):
            document.refuse("has a built_with that is no object of texts")
        entries: dict[str, Entry] = {}
        for i, value in enumerate(document.rows("entries", _MOST_GRAPHS)):
            entry = Entry.from_row(value, f"{path}: entry {i}")
            if entry.name in entries:
                document.refuse(f"lists {entry.name!r} twice")
            entries[entry.name] = entry
        dropped = []
        for i, value in enumerate(document.rows("dropped", _MOST_GRAPHS)):
            row = Row(
                value, f"{path}: dropped {i}", InvalidDatasetError, [field.name for field in fields(Dropped)]
            )
            ops = row.integer("ops", 1, _MOST_OPS)
            dropped.append(Dropped(row.text("name"), row.text("family"), ops, row.text("why")))
        version = document.integer("dataset_version", 1, _MOST_OPS)
        return cls(entries, tuple(dropped), built_with, version)


def read_graph(folder: Path, entry: Entry) -> Graph:
    """The graph of an entry; its file must be the one that the manifest describes.

    Raises:
        ImportFailedError: The file is missing, damaged or another one; it is named.
    """
    path = folder / entry.file
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ImportFailedError(f"{path}: cannot be read ({error.strerror}); reinstall opgym") from error
    digest = hashlib.sha256(data).hexdigest()
    if digest != entry.sha256:
        raise ImportFailedError(
            f"{path}: is damaged or another file: sha256 {digest[:16]}..., the manifest says "
            f"{entry.sha256[:16]}...; reinstall opgym, or see: opgym datasets verify"
        )
    return from_bytes(data, str(path))


def _plain(row: Entry | Dropped) -> dict[str, Any]:
    return {field.name: getattr(row, field.name) for field in fields(row)}
