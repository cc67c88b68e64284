"""Graphs whose least peak memory on one device is proven, each with an order that has it.

What beats an entry refutes a proof: whoever finds such an order has found an error. Entries hold for one version of
the simulator's semantics.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import InvalidSolutionError
from ...graphs.atomic import write_text
from ...graphs.closed_json import Row, read_json

FORMAT = "opgym.proven_peak_memory"
VERSION = 1
#: Version of what a peak means: docs/simulator.md.
SEMANTICS_VERSION = 1
PACKAGED_PEAKS = Path(__file__).with_name("proven_peak_memory.json")
_MOST_ENTRIES, _MOST_OPS, _MOST_BYTES = 1_000_000, 10_000_000, 2**63 - 1


@dataclass(frozen=True, eq=False)
class ProvenPeak:
    """One graph.

    Attributes:
        graph: Its id.
        fingerprint: Of the graph.
        optimum_bytes: Least dynamic peak over all orders.
        proven_by: What proved that no order has less: a bound of the graph, or solvers, each by itself.
        order: An order with this peak, ``[schedulable ops] int64``.
    """

    graph: str
    fingerprint: str
    optimum_bytes: int
    proven_by: tuple[str, ...]
    order: NDArray[np.int64]

    def row(self) -> dict[str, Any]:
        """The entry as JSON data."""
        return {
            "graph": self.graph,
            "fingerprint": self.fingerprint,
            "optimum_bytes": self.optimum_bytes,
            "proven_by": list(self.proven_by),
            "order": self.order.tolist(),
        }

    @classmethod
    def from_row(cls, value: Any, where: str = "entry") -> ProvenPeak:
        """An entry from JSON data; its proof is believed.

        Raises:
            InvalidSolutionError: It is no entry.
        """
        row = Row(value, where, InvalidSolutionError, [field.name for field in fields(cls)])
        provers, order = row.rows("proven_by", 100), row.rows("order", _MOST_OPS)
        if not provers or not all(isinstance(prover, str) for prover in provers):
            row.refuse("has proven_by that names nothing, or no text")
        if not all(type(op) is int and 0 <= op < _MOST_OPS for op in order):
            row.refuse("has an order with something that is no op")
        return cls(
            row.text("graph"), row.text("fingerprint"), row.integer("optimum_bytes", 0, _MOST_BYTES),
            tuple(provers), np.array(order, np.int64),
        )  # fmt: skip


def save_proven_peaks(path: str | os.PathLike[str], peaks: Iterable[ProvenPeak]) -> None:
    """Writes entries atomically, one a line, by graph.

    Raises:
        OSError: The folder is missing or not writable, or the disk is full; ``path`` is as it was before.
    """
    head = f'{{"format": "{FORMAT}", "version": {VERSION}, "semantics_version": {SEMANTICS_VERSION}, "entries": ['
    ordered = sorted(peaks, key=lambda peak: peak.graph)
    lines = ",\n".join(json.dumps(peak.row(), separators=(",", ":")) for peak in ordered)
    write_text(path, f"{head}\n{lines}\n]}}\n")


def load_proven_peaks(path: str | os.PathLike[str] = PACKAGED_PEAKS) -> tuple[ProvenPeak, ...]:
    """Reads a file, by default what comes with opgym.

    Raises:
        InvalidSolutionError: It cannot be read, is no such file, or has a graph twice.
    """
    document = Row(
        read_json(path, InvalidSolutionError, "a file of proven peaks"),
        f"{path}:",
        InvalidSolutionError,
        ("format", "version", "semantics_version", "entries"),
    )
    expected = {"format": FORMAT, "version": VERSION, "semantics_version": SEMANTICS_VERSION}
    for key, value in expected.items():
        if document.get(key) != value:
            document.refuse(f"has {key} {document.get(key)!r:.60}; expected {value!r}")
    rows = document.rows("entries", _MOST_ENTRIES)
    peaks = tuple(ProvenPeak.from_row(value, f"{path}: entry {i}") for i, value in enumerate(rows))
    if len({peak.fingerprint for peak in peaks}) < len(peaks):
        document.refuse("has a graph twice")
    return peaks
