"""A hold-out protocol: on which graphs one pre-training may learn, and on which it is tested."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any

from ...errors import InvalidDatasetError
from ...graphs.atomic import write_text
from ...graphs.closed_json import Row, read_json

FORMAT = "opgym.protocol"
VERSION = 1
_MOST_GRAPHS = 100_000


@dataclass(frozen=True)
class Protocol:
    """Which graphs are held out.

    Attributes:
        name: Name.
        protocol_version: Raised whenever a list changes.
        summary: What is held out.
        train: Ids that one pre-training may use, all in one run.
        test: Ids that are held out, all at once.
    """

    name: str
    protocol_version: int
    summary: str
    train: tuple[str, ...]
    test: tuple[str, ...]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the protocol atomically.

        Raises:
            OSError: The folder is missing or not writable, or the disk is full.
        """
        document: dict[str, Any] = {
            "format": FORMAT,
            "version": VERSION,
            "name": self.name,
            "protocol_version": self.protocol_version,
            "summary": self.summary,
            "test": list(self.test),
            "train": list(self.train),
        }
        write_text(path, json.dumps(document, indent=1) + "\n")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Protocol:
        """Reads a protocol.

        Raises:
            InvalidDatasetError: It cannot be read, or is none.
        """
        document = Row(
            read_json(path, InvalidDatasetError, "a hold-out protocol"),
            f"{path}:",
            InvalidDatasetError,
            ("format", "version", "name", "protocol_version", "summary", "train", "test"),
        )
        if document.get("format") != FORMAT or document.get("version") != VERSION:
            document.refuse(
                f"has format {document.get('format')!r:.60}, version {document.get('version')!r:.20}; "
                f"expected {FORMAT!r}, version {VERSION}"
            )
        lists = {}
        for key in ("train", "test"):
            ids = document.rows(key, _MOST_GRAPHS)
            if not all(isinstance(id, str) for id in ids) or len(set(ids)) < len(ids):
                document.refuse(f"has a {key} that is no list of different ids")
            lists[key] = tuple(ids)
        if not set(lists["train"]).isdisjoint(lists["test"]):
            document.refuse("trains on a graph that is held out")
        return cls(
            document.text("name"),
            document.integer("protocol_version", 1, 2**31),
            document.text("summary"),
            lists["train"],
            lists["test"],
        )
