"""The lowest peak memory that anything has found, per graph and number of devices; it is only ever improved.

A value stands with the solution that reaches it, so anybody can evaluate it again. Headroom is relative to it, and
therefore grows when a value is improved: figures name the version of the file.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import InvalidSolutionError
from ...graphs.atomic import write_text
from ...graphs.closed_json import Row, read_json
from ...problems import Objective, Order, Placement, PlacementProblem, SchedulingProblem

FORMAT = "opgym.best_known_peak_memory"
VERSION = 1
PACKAGED = Path(__file__).with_name("best_known_peak_memory.json")
_MOST_ENTRIES, _MOST_OPS, _MOST_BYTES = 1_000_000, 10_000_000, 2**63 - 1

Problem = SchedulingProblem | PlacementProblem


@dataclass(frozen=True, eq=False)
class Known:
    """The best solution known of one problem.

    Attributes:
        graph: Name of the graph (for a synthetic one its id).
        fingerprint: Of the graph.
        cluster: Spec of the cluster, e.g. ``"2xREGAL"``; empty for one device and its order.
        value: Peak bytes.
        found_by: What found it.
        order: Ops, the ones of highest priority first; on one device, the order in which they run,
            ``[ops] int64``.
        device: Device of each op, ``[ops] int64``; empty on one device.
    """

    graph: str
    fingerprint: str
    cluster: str
    value: int
    found_by: str
    order: NDArray[np.int64]
    device: NDArray[np.int64]

    @property
    def solution(self) -> Order | Placement:
        """What to evaluate."""
        if not self.cluster:
            return Order(self.order)
        priority = np.empty(len(self.order), np.float64)
        priority[self.order] = -np.arange(len(self.order), dtype=np.float64)
        return Placement(self.device, priority)

    @classmethod
    def of(cls, problem: Problem, solution: Order | Placement, found_by: str) -> Known:
        """A solution, evaluated.

        Raises:
            InvalidSolutionError: It is illegal or does not fit, or its problem is none of peak memory with
                transfers that take no time.
        """
        graph = problem.graph
        device = np.empty(0, np.int64)
        if isinstance(problem, SchedulingProblem):
            assert isinstance(solution, Order)
            cluster, order = "", np.asarray(solution.op, np.int64)
        else:
            assert isinstance(solution, Placement)
            if problem.objective is not Objective.PEAK_MEMORY or problem.cluster.channel != "free":
                raise InvalidSolutionError(
                    f"{problem.objective} over {problem.cluster.channel!r} channels; "
                    "best-known values are of peak_memory over free ones"
                )
            cluster, device = problem.cluster.name, np.asarray(solution.device, np.int64)
            priority = solution.priority
            if priority is None:
                priority = problem.simulator.upward_rank(device)
            order = np.argsort(-np.asarray(priority), kind="stable")  # equal ones by op, as in the simulator
        known = cls(graph.name, graph.fingerprint, cluster, 0, found_by, order, device)
        outcome = problem.evaluate(known.solution)  # type: ignore[arg-type]
        if not outcome.ok:
            raise InvalidSolutionError(
                f"a solution of {graph.name} is {outcome.verdict}: no best-known value"
            )
        return cls(graph.name, graph.fingerprint, cluster, int(outcome.value), found_by, order, device)

    def row(self) -> dict[str, Any]:
        """The entry as JSON data."""
        return {
            "graph": self.graph,
            "fingerprint": self.fingerprint,
            "cluster": self.cluster,
            "value": self.value,
            "found_by": self.found_by,
            "order": self.order.tolist(),
            "device": self.device.tolist(),
        }

    @classmethod
    def from_row(cls, value: Any, where: str = "entry") -> Known:
        """An entry from JSON data; its value is believed.

        Raises:
            InvalidSolutionError: It is no entry.
        """
        row = Row(value, where, InvalidSolutionError, [field.name for field in fields(cls)])
        return cls(
            row.text("graph"), row.text("fingerprint"), row.text("cluster"), row.integer("value", 0, _MOST_BYTES),
            row.text("found_by"), _whole(row, "order"), _whole(row, "device"),
        )  # fmt: skip


class BestKnown:
    """Best-known solutions by graph and cluster."""

    def __init__(self) -> None:
        self._entries: dict[tuple[str, str], Known] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Known]:
        """All entries, by name of the graph and cluster."""
        return iter(sorted(self._entries.values(), key=lambda known: (known.graph, known.cluster)))

    def get(self, problem: Problem) -> Known | None:
        """What is known of a problem; another graph of the same name is another problem."""
        cluster = problem.cluster.name if isinstance(problem, PlacementProblem) else ""
        return self.entry(problem.graph.fingerprint, cluster)

    def entry(self, fingerprint: str, cluster: str = "") -> Known | None:
        """What is known of the graph with a fingerprint."""
        return self._entries.get((fingerprint, cluster))

    def offer(self, known: Known) -> bool:
        """Keeps an entry if it is new or better; whether it is."""
        key = (known.fingerprint, known.cluster)
        if key in self._entries and self._entries[key].value <= known.value:
            return False
        self._entries[key] = known
        return True

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes all entries atomically, one a line.

        Raises:
            OSError: The folder is missing or not writable, or the disk is full; ``path`` is as it was before.
        """
        head = f'{{"format": "{FORMAT}", "version": {VERSION}, "entries": ['
        lines = ",\n".join(json.dumps(known.row(), separators=(",", ":")) for known in self)
        write_text(path, f"{head}\n{lines}\n]}}\n")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> BestKnown:
        """Reads a file.

        Raises:
            InvalidSolutionError: It cannot be read, or is no such file.
        """
        known = cls()
        document = Row(
            read_json(path, InvalidSolutionError, "a file of best-known values"),
            f"{path}:",
            InvalidSolutionError,
            ("format", "version", "entries"),
        )
        if document.get("format") != FORMAT or document.get("version") != VERSION:
            document.refuse(
                f"has format {document.get('format')!r:.60}, version {document.get('version')!r:.20}; "
                f"expected {FORMAT!r}, version {VERSION}"
            )
        for i, value in enumerate(document.rows("entries", _MOST_ENTRIES)):
            known.offer(Known.from_row(value, f"{path}: entry {i}"))
        return known


def packaged_best_known() -> BestKnown:
    """What comes with opgym."""
    return BestKnown.load(PACKAGED)


def _whole(row: Row, key: str) -> NDArray[np.int64]:
    values = row.rows(key, _MOST_OPS)
    if not all(type(value) is int and 0 <= value < _MOST_OPS for value in values):
        row.refuse(f"has {key} with something that is no op or device")
    return np.array(values, np.int64)
