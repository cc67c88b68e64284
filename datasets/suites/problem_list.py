"""One suite: its rows, and the file that holds them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import InvalidDatasetError
from ...graphs import Cluster, Graph
from ...graphs.atomic import write_text
from ...graphs.closed_json import Row as JsonRow
from ...graphs.closed_json import read_json
from ...problems import Objective, PlacementProblem, SchedulingProblem
from ..synthetic import PREFIX as SYNTHETIC
from ..zoo.splits import SPLITS
from .generated import Generated
from .screening import Screening

FORMAT = "opgym.suite"
#: Version 1 had no ``generated``, and a value of the best heuristic of every candidate.
VERSION = 2
_READ_VERSIONS = (1, 2)
#: Whether a row leaves something to gain: a ``task`` does, a ``control`` does not, ``unscreened`` was not looked at.
ROLES = ("task", "control", "unscreened")
#: Where the graph of a row is from; results on the two are not averaged.
POPULATIONS = ("synthetic", "real")
_MOST_ROWS, _MOST_RULES, _MOST_BYTES = 100_000, 100, 2**62


@dataclass(frozen=True)
class Row:
    """One problem.

    Attributes:
        graph: Id of the graph.
        fingerprint: Of the graph; a graph that has changed is another problem.
        cluster: Spec of the cluster; empty for the order of one device.
        objective: ``"step_time"``, ``"peak_memory"``, ``"max_load"`` or ``"latency"``.
        capacity_bytes: Memory of each device, where it is not what the cluster has.
        unsupported: Kinds of op that a class of device (a profile or a kind of device) cannot run, beside what the
            graph says.
        part: ``"train"``, ``"validation"`` or ``"test"``.
        role: One of ``ROLES``.
    """

    graph: str
    fingerprint: str
    cluster: str
    objective: str
    capacity_bytes: int | None
    part: str
    role: str
    unsupported: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Unique within its suite."""
        cap = "" if self.capacity_bytes is None else f" capped at {self.capacity_bytes} bytes"
        return f"{self.graph} on {self.cluster or 'one device'}{cap}: {self.objective}"

    @property
    def population(self) -> str:
        """``"synthetic"`` where the graph was drawn, ``"real"`` otherwise."""
        return POPULATIONS[not self.graph.startswith(SYNTHETIC)]

    def problem(self) -> PlacementProblem | SchedulingProblem:
        """Loads the graph and poses the problem.

        Raises:
            InvalidDatasetError: The graph is another one than the suite was made for.
            OpgymError: The graph cannot be read.
        """
        from .. import read

        imported = read(self.graph)
        if imported.graph.fingerprint != self.fingerprint:
            raise InvalidDatasetError(
                f"{self.graph}: has fingerprint {imported.graph.fingerprint[:16]}..., the suite was made for "
                f"{self.fingerprint[:16]}...; use the versions of opgym and its dataset that belong together"
            )
        if not self.cluster:
            return SchedulingProblem(imported.graph)
        cluster = Cluster.parse(self.cluster)
        if self.capacity_bytes is not None:
            cluster = cluster.with_capacity(self.capacity_bytes)
        graph, objective = forbid(imported.graph, self.unsupported), Objective(self.objective)
        if imported.costs is None:
            return PlacementProblem(graph, cluster, objective)
        return PlacementProblem(graph, cluster, objective, imported.costs)

    @classmethod
    def from_json(cls, value: Any, where: str) -> Row:
        """A row from JSON data.

        Raises:
            InvalidDatasetError: It is no row.
        """
        row = JsonRow(value, where, InvalidDatasetError, [field.name for field in fields(cls)])
        part, role, objective = row.text("part"), row.text("role"), row.text("objective")
        for key, given, known in (
            ("part", part, SPLITS),
            ("role", role, ROLES),
            ("objective", objective, [o.value for o in Objective]),
        ):
            if given not in known:
                row.refuse(f"has {key} = {given!r:.40}; expected {', '.join(known)}")
        no_cap = row.get("capacity_bytes") is None
        unsupported = row.get("unsupported")
        if not isinstance(unsupported, dict) or not all(
            isinstance(kinds, list) and all(isinstance(kind, str) for kind in kinds)
            for kinds in unsupported.values()
        ):
            row.refuse("has an unsupported that is no object of lists of kinds")
        return cls(
            graph=row.text("graph"),
            fingerprint=row.text("fingerprint"),
            cluster=row.text("cluster"),
            objective=objective,
            capacity_bytes=None if no_cap else row.integer("capacity_bytes", 1, _MOST_BYTES),
            part=part,
            role=role,
            unsupported={name: tuple(kinds) for name, kinds in unsupported.items()},
        )


def forbid(graph: Graph, unsupported: Mapping[str, Sequence[str]]) -> Graph:
    """The graph, with kinds of op that a class of device cannot run.

    Args:
        graph: A graph, which may have ops of that sort already.
        unsupported: Kinds by device class; kinds that the graph does not have say nothing.
    """
    forbidden: dict[str, NDArray[np.bool_]] = {}
    for bit, name in enumerate(graph.device_classes):
        forbidden[name] = (graph.op_unsupported >> np.uint64(bit)) & np.uint64(1) != 0
    for name, kinds in unsupported.items():
        codes = [code for code, kind in enumerate(graph.kinds) if kind in kinds]
        if codes:
            forbidden[name] = forbidden.get(name, np.zeros(graph.num_ops, np.bool_)) | np.isin(
                graph.op_kind, codes
            )
    classes = tuple(sorted(forbidden))
    bits = np.zeros(graph.num_ops, np.uint64)
    for bit, name in enumerate(classes):
        bits |= forbidden[name].astype(np.uint64) << np.uint64(bit)
    return replace(graph, device_classes=classes, op_unsupported=bits)


@dataclass(frozen=True)
class Suite:
    """A list of problems.

    Attributes:
        name: Name.
        suite_version: Raised whenever a row changes or goes.
        summary: What it is for, one line.
        rule: How its rows were chosen.
        rows: The problems.
        screening: What was looked at, where rows were chosen or marked by search.
        generated: Graphs for training and validation by rule, too many to be rows.
    """

    name: str
    suite_version: int
    summary: str
    rule: str
    rows: Sequence[Row]
    screening: Screening | None = None
    generated: Sequence[Generated] = ()

    def part(self, part: str, population: str | None = None) -> list[Row]:
        """The rows of ``"train"``, ``"validation"`` or ``"test"``, of one of ``POPULATIONS`` or of both."""
        return [row for row in self.rows if row.part == part and population in (None, row.population)]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the suite atomically, one row and one candidate a line.

        Raises:
            OSError: The folder is missing or not writable, or the disk is full.
        """
        head = {
            "format": FORMAT,
            "version": VERSION,
            "name": self.name,
            "suite_version": self.suite_version,
            "summary": self.summary,
            "rule": self.rule,
        }
        lines = ",\n".join(json.dumps(asdict(row), separators=(",", ":")) for row in self.rows)
        text = f'{json.dumps(head)[:-1]}, "rows": [\n{lines}\n]'
        if self.screening is not None:
            screened = self.screening.to_json()
            candidates = ",\n".join(
                json.dumps(row, separators=(",", ":")) for row in screened.pop("candidates")
            )
            text += f', "screening": {json.dumps(screened)[:-1]}, "candidates": [\n{candidates}\n]}}'
        if self.generated:
            text += f', "generated": {json.dumps([rule.to_json() for rule in self.generated])}'
        write_text(path, text + "}\n")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Suite:
        """Reads a suite.

        Raises:
            InvalidDatasetError: It cannot be read, or is none.
        """
        document = JsonRow(
            read_json(path, InvalidDatasetError, "a suite"),
            f"{path}:",
            InvalidDatasetError,
            ("format", "version", "name", "suite_version", "summary", "rule", "rows"),
            ("screening", "generated"),
        )
        if document.get("format") != FORMAT or document.get("version") not in _READ_VERSIONS:
            document.refuse(
                f"has format {document.get('format')!r:.60}, version {document.get('version')!r:.20}; "
                f"expected {FORMAT!r}, version {VERSION}"
            )
        rows = [
            Row.from_json(value, f"{path}: row {i}")
            for i, value in enumerate(document.rows("rows", _MOST_ROWS))
        ]
        if len({row.name for row in rows}) < len(rows):
            document.refuse("has one problem twice")
        screening = None
        if document.get("screening") is not None:
            screening = Screening.from_json(document.get("screening"), f"{path}: screening")
            accepted = {c.graph: c.fingerprint for c in screening.candidates if c.accepted}
            if {row.graph: row.fingerprint for row in rows if row.role != "unscreened"} != accepted:
                document.refuse("has other screened rows than its screening accepts")
        rules = () if document.get("generated") is None else document.rows("generated", _MOST_RULES)
        return cls(
            document.text("name"),
            document.integer("suite_version", 1, 2**31),
            document.text("summary"),
            document.text("rule"),
            tuple(rows),
            screening,
            tuple(Generated.from_json(rule, f"{path}: generated {i}") for i, rule in enumerate(rules)),
        )
