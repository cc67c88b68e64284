"""REGAL beside its baselines: ``opgym reproduce regal``.

Every column gets every graph with the same seeds. A row is one column on one graph, stored as soon as it is measured;
what is stored is never measured again, whatever columns, seeds and graphs a later run asks for.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from .... import datasets
from ....agents import Result
from ....datasets.reference import lines
from ....datasets.relatives import relatives
from ....datasets.suites import POPULATIONS
from ....errors import InvalidProblemError, unknown_id
from ...evaluate.cases import Case
from ...evaluate.judging import Posed, judged, posed_case
from ...parallel import in_order
from ...references.regal_suites import generated
from ...row_file import RowFile
from ..headroom import MOST_EVALUATIONS
from .agents import learned_methods, seeded
from .methods import BASELINE, EVALUATIONS, SEEDS, Method, baselines
from .rows import known_rows, take
from .tasks import PARTS, TASKS, Graph, devices_of, graphs_of, listed

#: Raised when what a row holds changes its meaning: rows of other versions are measured anew.
ROW_VERSION = 1
#: Graphs of each population in the validation part, where no number is given.
VALIDATION_GRAPHS = 24
#: A quick look: so many graphs of each population, with the first of the seeds.
QUICK_GRAPHS: Mapping[str, int] = MappingProxyType({"synthetic": 8, "real": 4})
QUICK_SEEDS = 2


@dataclass(frozen=True)
class Settings:
    """What is measured.

    Attributes:
        tasks: Names of ``TASKS``, each with tables of its own.
        part: ``"test"``, for the figures that are reported, or ``"validation"``, for everything before.
        graphs: At most so many of each population, evenly spread over the part; ``None``: all of the test,
            ``VALIDATION_GRAPHS`` of validation.
        seeds: How many of ``SEEDS``.
        agents: Learned agents, see :func:`~opgym.runs.reproduce.regal.agents.learned_methods`.
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
    def most_graphs(self) -> dict[str, int]:
        """The most graphs of each population, where not all are taken."""
        count = VALIDATION_GRAPHS if self.graphs is None and self.part == "validation" else self.graphs
        most = {} if count is None else dict.fromkeys(POPULATIONS, count)
        return {p: min(n, most.get(p, n)) for p, n in QUICK_GRAPHS.items()} if self.quick else most

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
        for graph in graphs_of(task, settings.part, settings.most_graphs):
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
            line = None if known is None else known.lines.get(listed(suite)[graph].name)
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
