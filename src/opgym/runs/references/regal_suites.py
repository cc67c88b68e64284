"""The suites in the manner of REGAL: ``regal-memory-1``, ``regal-memory-2`` and ``regal-time``.

Modelled on Paliwal et al. 2020: peak memory on one device, peak memory on two with transfers that take no time, and
step time on two that have little memory. Each has a part of random graphs and one of real graphs. Search marks the
rows of the test and drops none: those where it hardly beats the best heuristic are controls.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from ...agents import Result, make
from ...datasets import read, zoo
from ...datasets.suites import Candidate, Generated, Row, Screening, Suite
from ...datasets.suites.roles import LEAST_GAP
from ...datasets.synthetic import PREFIX as SYNTHETIC
from ...datasets.synthetic import SEEDS
from ...datasets.zoo.manifest import Entry
from ...graphs import Cluster
from ...graphs.readers import Imported
from ...problems import Budget, Objective, PlacementProblem, SchedulingProblem
from ..parallel import in_order
from ..reproduce.headroom import FAMILIES
from ..row_file import RowFile
from .reference import heuristic_names

Problem = SchedulingProblem | PlacementProblem

#: Raised when what a row of the row file holds changes its meaning: rows of other versions are measured anew.
ROW_VERSION = 1
#: Rules of costs; seeds take them in turn.
COSTS = ("normal", "bytes")
#: Seeds of the synthetic part of the test, each with a graph of every family.
TEST_SEEDS = 50
#: Real graphs of the test: at most so many ops, so many in all; and one of a group of twins, which is one sample.
MOST_OPS, MOST_GRAPHS = 1_000, 30
#: Each with so many copies, and with more where these are too few rows.
COPIES, LEAST_REAL_ROWS = 2, 60
#: Memory of a device in ``regal-time``, as a multiple of the peak that BRKGA finds with so many evaluations.
CAP, CAP_EVALUATIONS = 1.05, 5_000
#: Evaluations of BRKGA for marking rows; its seed is none of those that have a column.
EVALUATIONS, _SEED = 10_000, 1
#: Above this many ops, BRKGA gives a device to parts of the graph.
_UNGROUPED_OPS, _GROUPS = 256, "metis:64"
_NO_LIMIT = 2**62


@dataclass(frozen=True)
class Setting:
    """What the rows of a suite have in common.

    Attributes:
        summary: What the suite is for.
        objective: Of its rows.
        clusters: By population; empty for the order of one device. The profile ``REGAL`` has the times that random
            graphs bring along, and no rates from which those of a real op would follow.
        capped: Whether memory is limited to what is just enough.
    """

    summary: str
    objective: Objective
    clusters: Mapping[str, str]
    capped: bool = False


_ONE = MappingProxyType({"synthetic": "", "real": ""})
_TWO = MappingProxyType({"synthetic": "2xREGAL", "real": "2xP100:free"})

SETTINGS: Mapping[str, Setting] = MappingProxyType(
    {
        "regal-memory-1": Setting("peak memory of orders of one device", Objective.PEAK_MEMORY, _ONE),
        "regal-memory-2": Setting(
            "peak memory on two devices, transfers take no time", Objective.PEAK_MEMORY, _TWO
        ),
        "regal-time": Setting(
            "step time on two devices with little memory, transfers take no time",
            Objective.STEP_TIME,
            _TWO,
            True,
        ),
    }
)


# --- Which graphs -------------------------------------------------------------------------------------------


def generated(part: str) -> Generated:
    """Random graphs of a part: all seeds, of the test the first."""
    seeds = SEEDS[part][:TEST_SEEDS] if part == "test" else SEEDS[part]
    return Generated(part, FAMILIES, COSTS, seeds[0], seeds[-1])


def small_entries(part: str) -> list[Entry]:
    """Graphs of a split of the zoo that are small enough."""
    entries = zoo.manifest().entries
    return [entry for _, entry in sorted(entries.items()) if entry.split == part and entry.ops <= MOST_OPS]


def test_entries() -> list[Entry]:
    """The real graphs of the test: drawn by a hash of their names, whatever a solver makes of them."""
    chosen: list[Entry] = []
    for entry in sorted(small_entries("test"), key=lambda entry: _draw(entry.name)):
        if len(chosen) < MOST_GRAPHS and all(entry.group != other.group for other in chosen):
            chosen.append(entry)
    return sorted(chosen, key=lambda entry: entry.name)


def _draw(name: str) -> bytes:
    return hashlib.sha256(f"opgym.suites/regal/1/{name}".encode()).digest()


@dataclass(frozen=True)
class Task:
    """One graph of a suite.

    Attributes:
        suite: Name of the suite.
        graph: Id of the graph.
        part: ``"train"``, ``"validation"`` or ``"test"``.
        source: Fingerprint of the graph of the zoo, which may be another one after a rebuild.
        evaluations: Of the search that marks it; ``None``: it is not marked.
    """

    suite: str
    graph: str
    part: str
    source: str = ""
    evaluations: int | None = None

    @property
    def key(self) -> dict[str, Any]:
        """What a stored row must share to stand for this task."""
        return {"version": ROW_VERSION, "cap": [CAP, CAP_EVALUATIONS], **asdict(self)}


def tasks(suite: str, evaluations: int = EVALUATIONS) -> list[Task]:
    """All graphs of a suite: those of the test, then the real ones for training and validation."""
    found = [Task(suite, id, "test", evaluations=evaluations) for id in generated("test")]
    entries = test_entries()
    copied = max(COPIES, math.ceil(LEAST_REAL_ROWS / max(1, len(entries))) - 1)
    for entry in entries:
        id = zoo.PREFIX + entry.name
        copies = (f"{id}#augment={seed}" for seed in range(1, copied + 1))
        found += [Task(suite, graph, "test", entry.fingerprint, evaluations) for graph in (id, *copies)]
    for part in ("train", "validation"):
        found += [
            Task(suite, zoo.PREFIX + entry.name, part, entry.fingerprint) for entry in small_entries(part)
        ]
    return found


# --- What is found of a graph -------------------------------------------------------------------------------


def row_of(suite: str, id: str, part: str) -> Row:
    """The problem of a graph in one of the suites, also of one that its rule names and no row lists.

    Args:
        suite: One of ``SETTINGS``.
        id: Of the graph.
        part: ``"train"``, ``"validation"`` or ``"test"``.
    """
    return _posed(suite, id, part)[0]


def _posed(suite: str, id: str, part: str) -> tuple[Row, Result[Any] | None]:
    """The problem of a graph, and where memory is little the solution that says how much."""
    setting, imported = SETTINGS[suite], read(id)
    population = "synthetic" if id.startswith(SYNTHETIC) else "real"
    cluster = setting.clusters[population]
    row = Row(id, imported.graph.fingerprint, cluster, setting.objective.value, None, part, "unscreened")
    if not setting.capped:
        return row, None
    easy = easy_peak(imported, cluster)
    return replace(row, capacity_bytes=math.floor(CAP * easy.outcome.value)), easy


def easy_peak(imported: Imported, cluster: str) -> Result[Any]:
    """What BRKGA makes of the peak, where memory has no limit."""
    costs = () if imported.costs is None else (imported.costs,)
    problem = PlacementProblem(
        imported.graph, Cluster.parse(cluster).with_capacity(_NO_LIMIT), Objective.PEAK_MEMORY, *costs
    )
    budget = Budget(evaluations=CAP_EVALUATIONS)
    return make("brkga").solve(problem, budget, np.random.default_rng(0))


def measure(task: Task) -> dict[str, Any]:
    """Poses the problem of a graph and, for the test, looks for something to gain.

    Returns:
        ``{task, row, candidate, seconds}``, row and candidate as JSON data, ``candidate`` null without a search.
    """
    began = time.perf_counter()
    row, easy = _posed(task.suite, task.graph, task.part)
    candidate = None
    if task.evaluations is not None:
        candidate = _screened(row, easy, task.evaluations)
        row = replace(row, role="task" if leaves_a_gap(candidate) else "control")
    return {
        "task": task.key,
        "row": asdict(row),
        "candidate": None if candidate is None else asdict(candidate),
        "seconds": time.perf_counter() - began,
    }


def leaves_a_gap(candidate: Candidate) -> bool:
    """Whether a row is a task: search beats the best heuristic, or no heuristic finds anything feasible."""
    return candidate.gap is None or candidate.gap >= LEAST_GAP


def _screened(row: Row, easy: Result[Any] | None, evaluations: int) -> Candidate:
    problem: Problem = row.problem()
    known: list[tuple[float, str]] = []
    heuristics = heuristic_names(type(problem))
    for name in heuristics:
        solver = make(name)
        if solver.skip_reason(problem) is None:
            result = solver.solve(problem, Budget(), np.random.default_rng(0))
            if result.outcome.ok:
                known.append((float(result.outcome.value), name))
    best_heuristic = min(known)[0] if known else None
    result = _searched(problem, evaluations)
    if result.outcome.ok:
        known.append((float(result.outcome.value), "brkga"))
    if easy is not None:  # it fits, for the capacity is above its peak
        assert isinstance(problem, PlacementProblem)
        known.append((float(problem.evaluate(easy.solution).value), "brkga of the peak"))
    best, found_by = min(known, key=lambda pair: pair[0])
    bound = problem.lower_bound()
    ops = len(problem.ops) if isinstance(problem, SchedulingProblem) else problem.graph.num_ops
    return Candidate(
        row.graph, row.fingerprint, ops, best_heuristic, best, found_by, float(bound.value), f"bound: {bound.name}",
        accepted=True,
    )  # fmt: skip


def _searched(problem: Problem, evaluations: int) -> Result[Any]:
    """BRKGA with the heuristics' solutions in its first generation."""
    two_devices = isinstance(problem, PlacementProblem)
    groups = _GROUPS if two_devices and problem.graph.num_ops > _UNGROUPED_OPS else None
    solver = make("brkga", starts=tuple(heuristic_names(type(problem))), groups=groups)
    return solver.solve(problem, Budget(evaluations=evaluations), np.random.default_rng(_SEED))


def found_by_screening(row: Row, found_by: str) -> tuple[Result[Any], int]:
    """The solution with which a search of the screening found its value, and the evaluations that it took.

    Args:
        row: The problem.
        found_by: What the screening says: ``"brkga"`` or ``"brkga of the peak"``.
    """
    if found_by == "brkga":
        return _searched(row.problem(), EVALUATIONS), EVALUATIONS
    return easy_peak(read(row.graph), row.cluster), CAP_EVALUATIONS


def screen(
    wanted: Sequence[Task],
    rows_path: Path | None = None,
    *,
    workers: int = 1,
    progress: Callable[[int, int, str], None] | None = None,
) -> list[tuple[Row, Candidate | None]]:
    """The rows of tasks and what was found of each, measured where no earlier run has.

    Args:
        wanted: The graphs.
        rows_path: File of rows, of earlier runs too; ``None``: nothing is stored.
        workers: Processes; the result does not depend on how many.
        progress: Told how many of how many graphs are done, and the name of the last.
    """
    file = RowFile(rows_path)
    done = {_identity(row["task"]): row for row in file.rows if "task" in row and "row" in row}
    missing = [task for task in wanted if _identity(task.key) not in done]
    report = progress or (lambda done, total, name: None)
    count = len(wanted) - len(missing)
    report(count, len(wanted), "")
    for found in in_order(measure, missing, workers):
        file.append(found)
        done[_identity(found["task"])] = json.loads(json.dumps(found))
        count += 1
        report(count, len(wanted), found["row"]["graph"])
    results = []
    for task in wanted:
        found, where = done[_identity(task.key)], f"{rows_path}: {task.graph}"
        candidate = found["candidate"]
        results.append(
            (
                Row.from_json(found["row"], where),
                None if candidate is None else Candidate.from_json(candidate, where),
            )
        )
    return results


def _identity(key: Any) -> str:
    return json.dumps(key, sort_keys=True)


# --- The suite ----------------------------------------------------------------------------------------------


def rule(suite: str) -> str:
    """Which rows a suite has, in words."""
    text = (
        f"test: random graphs of {', '.join(FAMILIES)} with 50 to 200 ops, of the first {TEST_SEEDS} test seeds, costs "
        f"{' and '.join(COSTS)} in turn; up to {MOST_GRAPHS} graphs of the zoo's test split with at most {MOST_OPS:,} "
        f"ops, by a hash of their names, one of a family and its twins, each also with sizes and costs times "
        f"U(0.5, 1.5) ({COPIES} copies; more where these make less than {LEAST_REAL_ROWS} rows); train and validation: "
        f"all graphs of these splits with at most {MOST_OPS:,} ops, and random graphs by rule; `control` where the "
        f"best heuristic is within {LEAST_GAP:.0%} of the best value that the screening found; no row was dropped"
    )
    if SETTINGS[suite].capped:
        text += (
            f"; memory of a device: {CAP} of the peak that BRKGA finds with {CAP_EVALUATIONS:,} evaluations where "
            "memory has no limit"
        )
    return text


def method(suite: str, evaluations: int = EVALUATIONS) -> str:
    """How rows were marked, in words."""
    groups = (
        "on orders"
        if not SETTINGS[suite].clusters["real"]
        else f"on ops, above {_UNGROUPED_OPS} ops over {_GROUPS.partition(':')[2]} METIS groups"
    )
    text = (
        f"heuristics; BRKGA with {evaluations:,} evaluations {groups}, their solutions in its first generation, "
        "whose values are in no column of any table"
    )
    return text + "; the solution that the memory was taken from" * SETTINGS[suite].capped


def suite_of(name: str, found: Iterable[tuple[Row, Candidate | None]], how: str, version: int = 1) -> Suite:
    """The suite of what was found.

    Args:
        name: One of ``SETTINGS``.
        found: What :func:`screen` returns.
        how: :func:`method` of it.
        version: Of the suite.
    """
    pairs = list(found)
    candidates = tuple(candidate for _, candidate in pairs if candidate is not None)
    return Suite(
        name,
        version,
        SETTINGS[name].summary,
        rule(name),
        tuple(row for row, _ in pairs),
        Screening(how, candidates),
        (generated("train"), generated("validation")),
    )
