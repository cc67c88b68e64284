"""What all solution files share: a format with a version, the graph they were made for, a claim."""

from __future__ import annotations

import json
import math
import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidSolutionError
from ..graphs import Graph
from ..graphs.atomic import write_text
from ..graphs.closed_json import Row
from ..outcome import Outcome, Verdict

#: A longer list is refused.
MAX_ROWS = 10_000_000


@dataclass(frozen=True)
class Format:
    """A closed schema of solution files.

    Attributes:
        name: Its name, e.g. ``"opgym.placement"``.
        version: The version that is written and read.
        keys: What it holds beside format, version, graph and claim.
        verb: What a solution does with the graph, for messages.
    """

    name: str
    version: int
    keys: tuple[str, ...]
    verb: str

    def write(
        self, path: str | os.PathLike[str], graph: Graph, rows: dict[str, Any], outcome: Outcome | None
    ) -> None:
        """Writes a file atomically; the outcome becomes its claim.

        Raises:
            OSError: The folder is missing or not writable, or the disk is full; ``path`` is as it was before.
        """
        document = {
            "format": self.name,
            "version": self.version,
            "graph": {"fingerprint": graph.fingerprint, "name": graph.name},
            **{key: rows[key] for key in self.keys},
            "claim": None if outcome is None else _claim(outcome),
        }
        write_text(path, json.dumps(document, allow_nan=False) + "\n")

    def read(self, document: Any, path: str | os.PathLike[str], graph: Graph) -> Row:
        """The rows of a parsed file of this format that was made for a graph.

        Raises:
            InvalidSolutionError: It has another format or version, or was made for another graph.
        """
        named = isinstance(document, dict) and document.get("format") == self.name
        if named and document.get("version") != self.version:
            raise InvalidSolutionError(
                f"{path}: is version {document.get('version')!r:.40} of {self.name}; "
                f"this opgym reads version {self.version}"
            )
        keys = ("format", "version", "graph", *self.keys, "claim")
        row = Row(document, f"{path}:", InvalidSolutionError, keys)
        if row.get("format") != self.name:
            row.refuse(f"has format {row.get('format')!r:.60}; expected {self.name!r}")
        made_for = Row(row.get("graph"), f"{path}: graph", InvalidSolutionError, ("fingerprint", "name"))
        made_for.text("name")
        fingerprint = made_for.text("fingerprint")
        if fingerprint != graph.fingerprint:
            row.refuse(
                f"{self.verb} the graph with fingerprint {fingerprint:.12}..., "
                f"not {graph.fingerprint:.12}... ({graph!r}); "
                "give the model, and the dims, that it was made for"
            )
        _check_claim(row.get("claim"), path)
        return row


def integers(row: Row, key: str) -> NDArray[np.int64]:
    """A list of whole numbers."""
    values = row.rows(key, MAX_ROWS)
    for position, value in enumerate(values):
        if isinstance(value, bool) or not isinstance(value, int) or not -(2**63) <= value < 2**63:
            row.refuse(f"has {key}[{position}] = {value!r:.60}; expected a whole number")
    return np.array(values, np.int64)


def _claim(outcome: Outcome) -> dict[str, Any]:
    value = outcome.value if math.isfinite(outcome.value) else None
    return {"value": value, "unit": outcome.unit, "verdict": outcome.verdict.value}


def _check_claim(claim: Any, path: str | os.PathLike[str]) -> None:
    if claim is None:
        return
    row = Row(claim, f"{path}: claim", InvalidSolutionError, ("value", "unit", "verdict"))
    if row.get("value") is not None:
        row.number("value", -math.inf, math.inf)
    row.text("unit")
    if row.text("verdict") not in [verdict.value for verdict in Verdict]:
        row.refuse(f"has verdict {row.text('verdict')!r:.60}; there is no such verdict")
