"""REGAL beside its baselines: ``opgym reproduce regal``.

Every column gets every graph with the same seeds. A row is one column on one graph, stored as soon as it is measured;
what is stored is never measured again, whatever columns, seeds and graphs a later run asks for.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ... import datasets
from ...agents import Result
from ...datasets import zoo
from ...datasets.reference import lines
from ...datasets.relatives import relatives
from ...datasets.suites import POPULATIONS, Row
from ...errors import InvalidProblemError, unknown_id
from ..evaluate.cases import Case
from ..evaluate.judging import Posed, judged, posed_case
from ..parallel import in_order
from ..references.regal_suites import CAP, CAP_EVALUATIONS, SETTINGS, easy_peak, generated, row_of
from ..row_file import RowFile
from .headroom import MOST_EVALUATIONS
from .regal_agents import learned_methods, seeded
from .regal_methods import BASELINE, EVALUATIONS, SEEDS, Method, baselines
from .regal_rows import known_rows, take

#: Raised when what a row holds changes its meaning: rows of other versions are measured anew.
ROW_VERSION = 1
#: Suite of each task, and whether its transfers take time, which those of the suites do not.
TASKS: Mapping[str, tuple[str, bool]] = MappingProxyType(
    {
        "memory-1": ("regal-memory-1", False),
        "memory-2": ("regal-memory-2", False),
        "time": ("regal-time", False),
        "memory-2-links": ("regal-memory-2", True),
        "time-links": ("regal-time", True),
    }
)
#: Two devices with links between them, for the same graphs.
LINKED: Mapping[str, str] = MappingProxyType({"synthetic": "2xREGAL@pcie3", "real": "2xP100"})
PARTS = ("test", "validation")
#: Graphs of each population in the validation part, where no number is given.
VALIDATION_GRAPHS = 24
#: A quick look: so many graphs of each population, with the first of the seeds.
QUICK_GRAPHS: Mapping[str, int] = MappingProxyType({"synthetic": 8, "real": 4})
QUICK_SEEDS = 2


def devices_of(task: str) -> int:
    """How many devices a task has."""
    return 1 if task == "memory-1" else 2


@dataclass(frozen=True)
class Settings:
    """What is measured.

    Attributes:
        tasks: Names of ``TASKS``, each with tables of its own.
        part: ``"test"``, for the figures that are reported, or ``"validation"``, for everything before.
        graphs: At most so many of each population, evenly spread over the part; ``None``: all of the test,
            ``VALIDATION_GRAPHS`` of validation.
        seeds: How many of ``SEEDS``.
        agents: Learned agents, see :func:`~opgym.runs.reproduce.regal_agents.learned_methods`.
        columns: Names of the columns to run beside agents; ``None``: all baselines, and with links those that are soon
            done. The base is always among them.
        quick: Whether to leave out what takes long: of graphs, of seeds, and of columns.
        evaluations: Of all columns with 5,000, whose names then say how many; longer ones are left out.
        seeded: Whether agents run once more, with heuristics' solutions in their first generation.
    """

    tasks: tuple[str, ...] = tuple(TASKS)
    part: str = "test"
    graphs: int | None = None
    seeds: int = len(SEEDS)
    agents: tuple[str, ...] = ()
    columns: tuple[str, ...] | None = None
    quick: bool = False
    evaluations: int = EVALUATIONS
    seeded: bool = True

    def __post_init__(self) -> None:
        for task in self.tasks:
            if task not in TASKS:
                raise unknown_id("task", task, list(TASKS))
        if self.part not in PARTS:
            raise unknown_id("part", self.part, list(PARTS))
        if not self.tasks or (self.graphs is not None and self.graphs < 1):
            raise InvalidProblemError("no tasks or no graphs; expected at least one")
        if not 1 <= self.seeds <= len(SEEDS):
            raise InvalidProblemError(f"{self.seeds} seeds; expected 1 to {len(SEEDS)}")
        if not 1 <= self.evaluations <= MOST_EVALUATIONS:
            raise InvalidProblemError(
                f"{self.evaluations} evaluations; expected 1 to {MOST_EVALUATIONS:,}, more than any machine spends"
            )
        available = {
            population: count for task in self.tasks for population, count in self.available(task).items()
        }
        if self.graphs is not None and self.graphs > max(available.values()):
            there = " and ".join(f"{count:,} {population}" for population, count in available.items())
            raise InvalidProblemError(
                f"{self.graphs:,} graphs of each population; part {self.part} has {there} ones"
            )

    def available(self, task: str) -> dict[str, int]:
        """How many graphs of each population the part of a task has."""
        suite = datasets.suite(TASKS[task][0])
        counts = {population: len(suite.part(self.part, population)) for population in POPULATIONS}
        if self.part == "validation":  # random ones are too many to be listed
            counts["synthetic"] = len(generated(self.part))
        return counts

    @property
    def scarce(self) -> dict[str, int]:
        """Populations of which there are fewer graphs than are asked for, with how many there are."""
        if self.graphs is None or self.quick:
            return {}
        return {
            population: count
            for task in self.tasks
            for population, count in self.available(task).items()
            if count < self.graphs
        }

    @property
    def chosen_seeds(self) -> tuple[int, ...]:
        """The seeds of every column."""
        return SEEDS[: min(self.seeds, QUICK_SEEDS) if self.quick else self.seeds]

    def methods(self, task: str) -> list[Method]:
        """The columns of a task, the base first, learned agents last.

        Raises:
            UnknownIdError: A column that no task has, with the nearest names.
            InvalidProblemError: An agent is called what a column is called.
            OpgymError: An agent cannot be used.
        """
        every = {method.name for count in (1, 2) for method in baselines(count)}
        for name in self.columns or ():
            if name not in every:
                raise unknown_id("column", name, sorted(every))
        found = baselines(devices_of(task))
        short = self.quick or TASKS[task][1] or self.evaluations != EVALUATIONS
        base, *others = [method for method in found if not (short and method.long)]
        if self.columns is not None:
            others = [method for method in found[1:] if method.name in self.columns]
        for method in learned_methods(self.agents):
            with_starts = seeded(method, devices_of(task)) if self.seeded else None
            others += [method, *filter(None, [with_starts])]
        methods = [method.with_evaluations(self.evaluations) for method in (base, *others)]
        # Names of all columns are taken, also of those that are left out: tables of two runs are read side by side.
        taken = {method.name for method in (*found, *(m.with_evaluations(self.evaluations) for m in found))}
        for method in methods:
            if method.kind != BASELINE:
                if method.name in taken:
                    raise InvalidProblemError(
                        f"agent {method.name!r} is called what another column is called; give it another name, "
                        "NAME=FOLDER"
                    )
                taken.add(method.name)
        return methods


# --- Which graphs -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Graph:
    """One graph of a task.

    Attributes:
        task: One of ``TASKS``.
        graph: Its id.
        part: Of the suite.
        population: ``"synthetic"`` or ``"real"``.
        position: Among those of its population in the part.
    """

    task: str
    graph: str
    part: str
    population: str
    position: int

    @property
    def key(self) -> dict[str, Any]:
        """What a stored row must share to be about this graph."""
        suite, linked = TASKS[self.task]
        base = self.graph.partition("#")[0]
        source = zoo.entry(base).fingerprint if base.startswith(zoo.PREFIX) else ""
        cap = [CAP, CAP_EVALUATIONS] if SETTINGS[suite].capped else None
        cluster = LINKED[self.population] if linked else SETTINGS[suite].clusters[self.population]
        return {"suite": suite, "cluster": cluster, "cap": cap, "graph": self.graph, "source": source}

    def row(self) -> Row:
        """Its problem.

        Where memory is little and transfers take time, memory is what the rule of the suite says with these transfers.
        """
        suite, linked = TASKS[self.task]
        if not linked:
            listed = _listed(suite).get(self.graph)
            return row_of(suite, self.graph, self.part) if listed is None else listed
        imported, cluster = datasets.read(self.graph), LINKED[self.population]
        row = Row(
            self.graph, imported.graph.fingerprint, cluster, SETTINGS[suite].objective.value, None, self.part,
            "unscreened",
        )  # fmt: skip
        if not SETTINGS[suite].capped:
            return row
        return replace(row, capacity_bytes=math.floor(CAP * easy_peak(imported, cluster).outcome.value))


def graphs_of(task: str, settings: Settings) -> list[Graph]:
    """The graphs of a task that settings choose, synthetic ones first."""
    suite = datasets.suite(TASKS[task][0])
    found = []
    for population in POPULATIONS:
        names = [row.graph for row in suite.part(settings.part, population)]
        count = settings.graphs
        if settings.part == "validation":
            if population == "synthetic":  # too many to be listed: the first of the rule
                rule = generated("validation")
                names = [rule[index] for index in range(min(len(rule), count or VALIDATION_GRAPHS))]
            else:  # in an order in which neighbours are not of one family
                names.sort(key=lambda name: hashlib.sha256(name.encode()).digest())
            count = count or VALIDATION_GRAPHS
        if settings.quick:
            count = min(count or len(names), QUICK_GRAPHS[population])
        chosen = range(len(names)) if count is None else spread(len(names), count)
        found += [Graph(task, names[at], settings.part, population, at) for at in chosen]
    return found


def spread(available: int, count: int) -> list[int]:
    """Positions of ``count`` of so many things, evenly spread: the first of each equal part."""
    return [i * available // min(count, available) for i in range(min(count, available))]


@lru_cache(maxsize=len(SETTINGS))
def _listed(suite: str) -> dict[str, Row]:
    return {row.graph: row for row in datasets.suite(suite).rows}


# --- Measuring ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Job:
    """One column on one graph."""

    graph: Graph
    method: Method
    seeds: tuple[int, ...]


def identity(graph: Graph, method: Method) -> str:
    """What stored rows are found by."""
    return json.dumps({"version": ROW_VERSION, "graph": graph.key, "method": method.key}, sort_keys=True)


def measure(job: Job) -> dict[str, Any]:
    """Runs a column on a graph.

    Returns:
        ``{key, task, method, ops, runs, skipped}``: of each seed the ``value`` (``None``: nothing that fits), the
        ``evaluations`` spent and the ``seconds``; or why the column does not apply.

    Raises:
        MisreportedError: What a solver says of its solution is not so.
    """
    posed = _posed(job.graph)
    problem = posed.problem
    row: dict[str, Any] = {
        "key": identity(job.graph, job.method),
        "task": job.graph.task,
        "graph": job.graph.graph,
        "method": job.method.name,
        "ops": problem.graph.num_ops,
        "runs": {},
        "skipped": job.method.skip_reason(problem),
    }
    if row["skipped"] is None:
        for seed in job.seeds:
            row["runs"][str(seed)] = _run(posed, job.method.run(problem, seed), job.method.evaluations)
    return row


def _run(posed: Posed, found: Sequence[Result[Any]], budget: int | None) -> dict[str, Any]:
    """The best of some results, and what all of them spent."""
    best = None
    for result in found:
        outcome = judged(posed, result, result.evaluations if budget is None else budget)
        best = outcome if outcome.better_than(best) else best
    assert best is not None  # one of the solvers applies
    return {
        "value": best.value if best.ok else None,
        "verdict": best.verdict.value,
        "evaluations": sum(result.evaluations for result in found),
        "seconds": sum(result.seconds for result in found),
    }


@lru_cache(maxsize=2)
def _posed(graph: Graph) -> Posed:
    kin = relatives(graph.graph)
    return posed_case(Case("", 0, 0, graph.row(), kin.family, kin.twins))


def jobs(settings: Settings) -> list[Job]:
    """Everything that settings ask for, graph by graph."""
    found = []
    for task in settings.tasks:
        methods = settings.methods(task)
        for graph in graphs_of(task, settings):
            for method in methods:
                most = dict(method.rows).get(graph.population)
                if most is None or graph.position < most:
                    found.append(Job(graph, method, method.chosen_seeds(settings.chosen_seeds)))
    return found


def run(
    settings: Settings,
    rows_path: Path | None = None,
    workers: int = 1,
    progress: Callable[[int, int, str], None] | None = None,
) -> list[dict[str, Any]]:
    """Measures what is not measured yet.

    Args:
        settings: What to measure.
        rows_path: File of rows, of earlier runs too; ``None``: nothing is stored.
        workers: Processes; but for seconds, results do not depend on how many.
        progress: Told how many of how many columns on graphs are done, and which was the last.

    Returns:
        A document for each task: ``task``, ``part``, ``suite_version``, ``reference_version`` (``None``: nothing is
        known of its rows), ``seeds``, ``methods``, and ``graphs`` with the ``values`` of each column by seed, its mean
        ``seconds`` and its mean ``evaluations``; ``skipped`` says of each column that applies to none of them, why.
    """
    file = RowFile(rows_path)
    done = known_rows(file.rows)
    wanted = jobs(settings)
    missing = []
    for job in wanted:
        known = done.get(identity(job.graph, job.method), {"runs": {}, "skipped": None})
        left = tuple(seed for seed in job.seeds if str(seed) not in known["runs"])
        if left and known["skipped"] is None:
            missing.append(replace(job, seeds=left))
    report = progress or (lambda done, total, name: None)
    count = len(wanted) - len(missing)
    report(count, len(wanted), "")
    for job, row in zip(missing, in_order(measure, missing, workers), strict=True):
        file.append(row)
        take(done, json.loads(json.dumps(row)))
        count += 1
        report(count, len(wanted), f"{job.method.name} on {job.graph.graph}")
    return [
        _document(task, settings, [job for job in wanted if job.graph.task == task], done)
        for task in settings.tasks
    ]


def _document(
    task: str, settings: Settings, wanted: Sequence[Job], done: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    suite, linked = TASKS[task]
    known = None if linked or settings.part != "test" else lines(suite)
    graphs: dict[str, dict[str, Any]] = {}
    skipped: dict[str, str] = {}
    for job in wanted:
        row = done[identity(job.graph, job.method)]
        graph = job.graph.graph
        if graph not in graphs:
            line = None if known is None else known.lines.get(_listed(suite)[graph].name)
            graphs[graph] = {
                "graph": graph,
                "population": job.graph.population,
                "twins": relatives(graph).twins,
                "ops": row["ops"],
                "best_known": None if line is None or line.best is None else line.best.value,
                "columns": {},
            }
        if row["skipped"] is not None:
            skipped.setdefault(job.method.name, row["skipped"])
        else:
            runs = [row["runs"][str(seed)] for seed in job.seeds]
            graphs[graph]["columns"][job.method.name] = {
                "values": [run["value"] for run in runs],
                "evaluations": sum(run["evaluations"] for run in runs) / len(runs),
                "seconds": round(sum(run["seconds"] for run in runs) / len(runs), 4),
            }
    return {
        "task": task,
        "part": settings.part,
        "suite_version": datasets.suite(suite).suite_version,
        "reference_version": None if known is None else known.reference_version,
        "seeds": list(settings.chosen_seeds),
        "methods": [method.document() for method in settings.methods(task)],
        "graphs": list(graphs.values()),
        "skipped": {
            name: reason
            for name, reason in skipped.items()
            if not any(name in graph["columns"] for graph in graphs.values())
        },
    }
