"""Reference lines of the rows of a suite: bound, heuristics, annealing, and the best that anything has found.

A file belongs to one version, and no value in it ever changes: what is found later goes into the next version.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import InvalidDatasetError, InvalidSolutionError, unknown_id
from ...graphs.atomic import write_text
from ...graphs.closed_json import Row, read_json
from ...problems import Order, Placement, PlacementProblem, SchedulingProblem

FORMAT = "opgym.reference_lines"
#: Version 1 had no ``brkga`` and no ``searched``; files of it stay as they are.
VERSION = 2
_READ_VERSIONS = (1, 2)
#: Where the files are: ``<suite>.v<reference version>.json``.
FOLDER = Path(__file__).with_name("by_suite")
_MOST_LINES, _MOST_OPS, _MOST_VALUE = 100_000, 10_000_000, 2.0**63

Problem = SchedulingProblem | PlacementProblem


@dataclass(frozen=True, eq=False)
class Best:
    """The best solution known of one problem.

    Attributes:
        value: Its value.
        found_by: Name of the solver.
        evaluations: Evaluations that the solver was given; for one that stops by itself, those that it spent.
        seconds_limit: Seconds that the solver was given; ``None`` without a limit, and then the course of the search
            did not depend on the machine.
        order: Ops, those of highest priority first; on one device, the order in which they run,
            ``[ops] int32``; empty where the order does not matter.
        device: Device of each op, ``[ops] int32``; empty for the order on one device.
    """

    value: float
    found_by: str
    evaluations: int
    seconds_limit: float | None
    order: NDArray[np.int32]
    device: NDArray[np.int32]

    @classmethod
    def of(
        cls,
        problem: Problem,
        solution: Order | Placement,
        found_by: str,
        evaluations: int,
        seconds_limit: float | None,
    ) -> Best:
        """A solution, evaluated as it will be stored.

        Raises:
            InvalidSolutionError: It is infeasible, or sets priorities of transfers, which are not stored.
        """
        order, device = np.empty(0, np.int32), np.empty(0, np.int32)
        if isinstance(solution, Order):
            order = np.asarray(solution.op, np.int32)
        else:
            assert isinstance(problem, PlacementProblem)
            if solution.transfer_priority is not None:
                raise InvalidSolutionError("a placement with priorities of transfers has no reference line")
            device = np.asarray(solution.device, np.int32)
            if problem.objective.simulated:
                priority = solution.priority
                if priority is None:
                    priority = problem.simulator.upward_rank(device)
                # equal priorities by op, as in the simulator
                order = np.argsort(-np.asarray(priority), kind="stable").astype(np.int32)
        draft = cls(0.0, found_by, evaluations, seconds_limit, order, device)
        outcome = problem.evaluate(draft.solution)  # type: ignore[arg-type]
        if not outcome.ok:
            raise InvalidSolutionError(
                f"the solution of {found_by} is {outcome.verdict}: no best-known value"
            )
        return cls(float(outcome.value), found_by, evaluations, seconds_limit, order, device)

    @property
    def solution(self) -> Order | Placement:
        """What to evaluate."""
        if not len(self.device):
            return Order(self.order)
        if not len(self.order):
            return Placement(self.device)
        priority = np.empty(len(self.order), np.float64)
        priority[self.order] = -np.arange(len(self.order), dtype=np.float64)
        return Placement(self.device, priority)

    def row(self) -> dict[str, Any]:
        """As JSON data."""
        return {
            "value": self.value,
            "found_by": self.found_by,
            "evaluations": self.evaluations,
            "seconds_limit": self.seconds_limit,
            "order": _packed(self.order),
            "device": _packed(self.device),
        }

    @classmethod
    def from_row(cls, value: Any, where: str) -> Best:
        """From JSON data; the value is believed.

        Raises:
            InvalidDatasetError: It is none.
        """
        row = Row(value, where, InvalidDatasetError, [field.name for field in fields(cls)])
        limit = None if row.get("seconds_limit") is None else row.number("seconds_limit", 0, 1e9)
        order, device = _unpacked(row, "order"), _unpacked(row, "device")
        if not len(order) and not len(device):
            row.refuse("has no solution")
        return cls(
            row.number("value", 0, _MOST_VALUE), row.text("found_by"), row.integer("evaluations", 1, 2**62), limit,
            order, device,
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Line:
    """What one row of a suite is measured against.

    Attributes:
        problem: Name of the row (``Row.name``).
        fingerprint: Of the graph.
        ops: Ops to decide on.
        unit: Unit of all values.
        bound: A value that no solution beats.
        bound_by: What proved it.
        heuristics: Value of each heuristic; ``None`` where it finds nothing feasible, or does not apply.
        annealing: Value of simulated annealing by its number of evaluations.
        best: The best known solution; ``None`` where nothing feasible is known.
        brkga: Value of BRKGA, drawn uniformly, by its number of evaluations; empty where it was not run.
        searched: Evaluations of all searches together, whether they found the best solution or not; those of columns
            count, those of heuristics do not. 0: lines of version 1 do not say.
    """

    problem: str
    fingerprint: str
    ops: int
    unit: str
    bound: float
    bound_by: str
    heuristics: Mapping[str, float | None]
    annealing: Mapping[int, float | None]
    best: Best | None
    brkga: Mapping[int, float | None] = field(default_factory=dict)
    searched: int = 0

    @property
    def proven(self) -> bool:
        """Whether the best known value is the optimum."""
        return self.best is not None and self.best.value <= self.bound

    @property
    def best_heuristic(self) -> float | None:
        """Value of the best heuristic."""
        return min((value for value in self.heuristics.values() if value is not None), default=None)

    @property
    def gap(self) -> float | None:
        """By how much the best heuristic is above the best known value, as a share of the latter."""
        if self.best is None or self.best_heuristic is None or not self.best.value:
            return None
        return self.best_heuristic / self.best.value - 1

    def joined(self, measured: Line) -> Line:
        """This line with what was measured anew: columns of the measurement, the better solution and bound of both."""
        best = self.best
        if measured.best is not None and (best is None or measured.best.value < best.value):
            best = measured.best
        tighter = measured if measured.bound > self.bound else self
        return Line(
            measured.problem, measured.fingerprint, measured.ops, measured.unit, tighter.bound, tighter.bound_by,
            measured.heuristics, measured.annealing, best, measured.brkga, max(self.searched, measured.searched),
        )  # fmt: skip

    def row(self) -> dict[str, Any]:
        """As JSON data."""
        return {
            "problem": self.problem,
            "fingerprint": self.fingerprint,
            "ops": self.ops,
            "unit": self.unit,
            "bound": self.bound,
            "bound_by": self.bound_by,
            "heuristics": dict(self.heuristics),
            "annealing": {str(count): value for count, value in self.annealing.items()},
            "brkga": {str(count): value for count, value in self.brkga.items()},
            "searched": self.searched,
            "best": None if self.best is None else self.best.row(),
            "proven": self.proven,
        }

    @classmethod
    def from_row(cls, value: Any, where: str = "line") -> Line:
        """From JSON data.

        Raises:
            InvalidDatasetError: It is no line, or contradicts itself.
        """
        required = {"proven", *(field.name for field in fields(cls))} - {"brkga", "searched"}
        row = Row(value, where, InvalidDatasetError, sorted(required), ("brkga", "searched"))
        best = None if row.get("best") is None else Best.from_row(row.get("best"), f"{where}: best")
        annealing = _by_evaluations(row, "annealing")
        brkga = {} if row.get("brkga") is None else _by_evaluations(row, "brkga")
        line = cls(
            row.text("problem"), row.text("fingerprint"), row.integer("ops", 1, _MOST_OPS), row.text("unit"),
            row.number("bound", 0, _MOST_VALUE), row.text("bound_by"), _values(row, "heuristics"),
            annealing, best, brkga, 0 if row.get("searched") is None else row.integer("searched", 0, 2**62),
        )  # fmt: skip
        if row.flag("proven") != line.proven:
            row.refuse(f"has proven = {row.get('proven')!r}, and the bound says otherwise")
        if best is not None and best.value < line.bound:
            row.refuse(f"has a best value of {best.value:g} below the bound of {line.bound:g}")
        return line


@dataclass(frozen=True, eq=False)
class Lines:
    """The lines of a suite.

    Attributes:
        suite: Its name.
        suite_version: Version of the suite that they belong to.
        reference_version: Raised whenever a line changes; lines of new rows may come without.
        lines: By name of the row, in the order of the suite.
    """

    suite: str
    suite_version: int
    reference_version: int
    lines: Mapping[str, Line]

    def __len__(self) -> int:
        return len(self.lines)

    def __iter__(self) -> Iterator[Line]:
        return iter(self.lines.values())

    def __getitem__(self, problem: str) -> Line:
        return self.lines[problem]

    @property
    def file_name(self) -> str:
        """The name of the file that these lines belong into."""
        return f"{self.suite}.v{self.reference_version}.json"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the lines atomically, one a line.

        Raises:
            OSError: The folder is missing or not writable, or the disk is full; ``path`` is as it was before.
        """
        head = {
            "format": FORMAT,
            "version": VERSION,
            "suite": self.suite,
            "suite_version": self.suite_version,
            "reference_version": self.reference_version,
        }
        rows = ",\n".join(json.dumps(line.row(), separators=(",", ":"), allow_nan=False) for line in self)
        write_text(path, f'{json.dumps(head)[:-1]}, "lines": [\n{rows}\n]}}\n')

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Lines:
        """Reads a file.

        Raises:
            InvalidDatasetError: It cannot be read, is no such file, or contradicts itself.
        """
        document = Row(
            read_json(path, InvalidDatasetError, "a file of reference lines"),
            f"{path}:",
            InvalidDatasetError,
            ("format", "version", "suite", "suite_version", "reference_version", "lines"),
        )
        if document.get("format") != FORMAT or document.get("version") not in _READ_VERSIONS:
            document.refuse(
                f"has format {document.get('format')!r:.60}, version {document.get('version')!r:.20}; "
                f"expected {FORMAT!r}, version {VERSION}"
            )
        rows = document.rows("lines", _MOST_LINES)
        lines = [Line.from_row(value, f"{path}: line {i}") for i, value in enumerate(rows)]
        if len({line.problem for line in lines}) < len(lines):
            document.refuse("has a problem twice")
        return cls(
            document.text("suite"),
            document.integer("suite_version", 1, 2**31),
            document.integer("reference_version", 1, 2**31),
            {line.problem: line for line in lines},
        )


def versions(suite: str, folder: Path = FOLDER) -> dict[int, Path]:
    """The files of a suite by reference version, oldest first."""
    found = {}
    for path in folder.glob(f"{suite}.v*.json"):
        match = re.fullmatch(re.escape(suite) + r"\.v([1-9][0-9]{0,8})\.json", path.name)
        if match:
            found[int(match[1])] = path
    return dict(sorted(found.items()))


def suites_with_lines(folder: Path = FOLDER) -> list[str]:
    """Names of the suites that have a file."""
    names = {path.name.rpartition(".v")[0] for path in folder.glob("*.v*.json")}
    return sorted(name for name in names if versions(name, folder))


@cache
def lines(suite: str, version: int | None = None) -> Lines:
    """The reference lines that come with opgym.

    Args:
        suite: Name of a suite.
        version: Their reference version; the newest if absent.

    Raises:
        UnknownIdError: There are none of that suite, or not in that version.
        InvalidDatasetError: The file is damaged.
    """
    found = versions(suite)
    if not found:
        raise unknown_id("suite with reference lines", suite, suites_with_lines())
    if version is not None and version not in found:
        raise unknown_id(f"version of the reference lines of {suite}", str(version), [str(v) for v in found])
    return load_named(found[max(found) if version is None else version])


def load_named(path: Path) -> Lines:
    """Reads a file that is found by its name.

    Raises:
        InvalidDatasetError: It is damaged, or has other lines than its name says.
    """
    found = Lines.load(path)
    if found.file_name != path.name:
        raise InvalidDatasetError(
            f"{path}: has lines of {found.suite}, reference version {found.reference_version}, which belong into "
            f"{found.file_name}; rename the file"
        )
    return found


def _values(row: Row, key: str) -> dict[str, float | None]:
    values = row.get(key)
    if not isinstance(values, dict):
        row.refuse(f"has {key} that is no object")
    for value in values.values():
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if value is not None and not (number and 0 <= value <= _MOST_VALUE):  # NaN is in no range
            row.refuse(f"has {key} with {value!r:.40}; expected a value or null")
    return {name: None if value is None else float(value) for name, value in values.items()}


def _by_evaluations(row: Row, key: str) -> dict[int, float | None]:
    values = _values(row, key)
    if not all(re.fullmatch("[1-9][0-9]{0,17}", count) for count in values):
        row.refuse(f"has {key} whose keys are no numbers of evaluations")
    return {int(count): value for count, value in values.items()}


def _packed(values: NDArray[np.int32]) -> str:
    """Differences of neighbours, deflated: an order that is near the program's is a few bytes."""
    steps = np.diff(np.asarray(values, np.int64), prepend=0).astype("<i4")
    return base64.b64encode(zlib.compress(steps.tobytes(), 9)).decode() if len(steps) else ""


def _unpacked(row: Row, key: str) -> NDArray[np.int32]:
    text = row.text(key)
    if not text:
        return np.empty(0, np.int32)
    most = 4 * _MOST_OPS
    try:
        inflate = zlib.decompressobj()
        data = inflate.decompress(base64.b64decode(text, validate=True), most)
    except (binascii.Error, ValueError, zlib.error) as problem:
        row.refuse(f"has {key} that cannot be unpacked ({problem})")
    if not inflate.eof or inflate.unused_data or len(data) % 4 or not data:
        row.refuse(f"has {key} that is cut off, too long, or followed by something")
    values = np.cumsum(np.frombuffer(data, "<i4").astype(np.int64))
    if values.min() < 0 or values.max() >= _MOST_OPS:
        row.refuse(f"has {key} with something that is no op or device")
    return values.astype(np.int32)
