"""How much peak memory BRKGA leaves on REGAL-style graphs, and what closes the gap: ``opgym reproduce headroom``.

Four families of synthetic graphs with 50 to 200 ops, from the seeds that are reserved for tests, on one device (the
order alone) and on two (device and order; transfers are free, modelled on Paliwal et al. 2020). Every solver gets
every graph with the same seeds. The reference is the best value known: the lowest of everything run here, of longer
searches and of what earlier runs have stored.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from ...agents import Result, make
from ...datasets import read
from ...datasets.reference import BestKnown, Known
from ...datasets.synthetic import SEEDS
from ...errors import InvalidProblemError, InvalidSolutionError
from ...graphs import Cluster
from ...problems import Budget, Objective, PlacementProblem, SchedulingProblem
from ...statistics import Interval, clustered_mean
from ..parallel import in_order
from ..row_file import RowFile

FAMILIES = ("er", "ba", "ws", "sbm")
#: The column that all others are compared with.
BASE = "brkga-5k"
#: Raised when what a row holds changes its meaning: rows of other versions are measured anew.
ROW_VERSION = 1
#: Searches count in 64 bits, some of them several moves for each evaluation.
MOST_EVALUATIONS = 10**15
_SIZES: Mapping[str, Any] = MappingProxyType({"population": 100, "elites": 20, "mutants": 15, "bias": 0.7})

#: The first study, with prototypes and other graphs of the same families: printed beside ours, not true by itself.
FIRST_STUDY: Mapping[int, Mapping[str, Mapping[str, float]]] = MappingProxyType(
    {
        1: {
            "headroom": {"er": 0.05, "ba": 0.20, "ws": 0.17, "sbm": 0.06, "all": 0.12},
            "brkga-50k": {"all": 0.06},
            "brkga-seeded-5k": {"all": 0.002},
            "key-search-5k": {"all": 0.040},
        },
        2: {
            "headroom": {"er": 0.09, "ba": 0.26, "ws": 0.23, "sbm": 0.22, "all": 0.20},
            "brkga-50k": {"all": 0.08},
        },
    }
)


@dataclass(frozen=True)
class Column:
    """One way of searching that the table compares.

    Attributes:
        solver: Name of the solver.
        evaluations: Its budget.
        options: Its options.
    """

    solver: str
    evaluations: int
    options: Mapping[str, Any] = field(default_factory=dict)

    def run(self, problem: SchedulingProblem | PlacementProblem, seed: int) -> Result[Any]:
        """Solves a problem; the same seed gives the same course."""
        budget = Budget(evaluations=self.evaluations)
        return make(self.solver, **self.options).solve(problem, budget, np.random.default_rng(seed))


@dataclass(frozen=True)
class Settings:
    """What is measured.

    Attributes:
        graphs: Graphs of each family.
        seeds: Seeds of each solver on each graph.
        devices: Numbers of devices, each a table of its own.
        scale: Share of every budget, for trials.
    """

    graphs: int = 50
    seeds: int = 2
    devices: tuple[int, ...] = (1, 2)
    scale: float = 1.0

    def __post_init__(self) -> None:
        if not 1 <= self.graphs <= len(SEEDS["test"]):
            raise InvalidProblemError(f"{self.graphs} graphs; expected 1 to {len(SEEDS['test'])}")
        if self.seeds < 1:
            raise InvalidProblemError(f"{self.seeds} seeds; expected at least 1")
        if not self.devices or any(not 1 <= count <= 64 for count in self.devices):
            raise InvalidProblemError(f"devices {self.devices}; expected numbers from 1 to 64")
        if not 0 < self.scale <= 1:
            raise InvalidProblemError(f"scale {self.scale}; expected a share above 0, up to 1")


#: Heuristics in the first generation of a seeded BRKGA.
_ORDER_STARTS = ("program-order", "bfs", "dfs", "post-order", "greedy-freed-bytes", "sethi-ullman")
_PLACEMENT_STARTS = ("single", "metis", "m-topo", "critical-path", "m-etf", "heft")


def columns(devices: int, scale: float = 1.0) -> dict[str, Column]:
    """The columns of a table, in its order.

    Local search on keys starts from the greedy order; with several devices from the best heuristic.
    """
    few, many = _scaled(5_000, scale), _scaled(50_000, scale)
    starts = _ORDER_STARTS if devices == 1 else _PLACEMENT_STARTS
    return {
        BASE: Column("brkga", few, {**_SIZES, "starts": ()}),
        "brkga-50k": Column("brkga", many, {**_SIZES, "starts": ()}),
        "brkga-seeded-5k": Column("brkga", few, {**_SIZES, "starts": starts}),
        "key-search-5k": (
            Column("key-search", few)
            if devices == 1
            else Column("pair-annealing", few, {"temperature": 0.0, "starts": starts})
        ),
    }


def references(devices: int, scale: float = 1.0) -> dict[str, Column]:
    """Longer searches whose values count as known, and are in no column: several starts beat one long run."""
    if devices == 1:
        return {
            "order-annealing": Column("order-annealing", _scaled(1_000_000, scale)),
            "order-search": Column("order-search", _scaled(500_000, scale)),
        }
    return {
        f"pair-annealing from {start} at {temperature}": Column(
            "pair-annealing", _scaled(50_000, scale), {"temperature": temperature, "starts": (start,)}
        )
        for start in ("single", "m-etf")
        for temperature in (0.004, 0.03)
    }


def _scaled(evaluations: int, scale: float) -> int:
    return max(1, round(evaluations * scale))


@dataclass(frozen=True)
class Task:
    """One graph on one number of devices."""

    graph: str
    family: str
    devices: int
    seeds: int
    scale: float

    @property
    def key(self) -> dict[str, Any]:
        """What a stored row must share to stand for this task."""
        return {"version": ROW_VERSION, **asdict(self)}

    def problem(self) -> SchedulingProblem | PlacementProblem:
        """The problem: on one device the order alone."""
        imported = read(self.graph)
        if self.devices == 1:
            return SchedulingProblem(imported.graph)
        assert imported.costs is not None
        cluster = Cluster.parse(f"{self.devices}xREGAL")
        return PlacementProblem(imported.graph, cluster, Objective.PEAK_MEMORY, imported.costs)


def tasks(settings: Settings) -> list[Task]:
    """All tasks: a graph of each family in turn, so that a run that is cut short has some of all."""
    return [
        Task(f"synthetic/{family}?costs=normal&seed={seed}", family, devices, settings.seeds, settings.scale)
        for devices in settings.devices
        for seed in SEEDS["test"][: settings.graphs]
        for family in FAMILIES
    ]


def measure(task: Task) -> dict[str, Any]:
    """Runs every column on a graph.

    Returns:
        The row: ``task``, ``graph``, ``fingerprint``, ``ops``, ``values`` (column to one value per seed), and
        ``best``, the best solution of all columns and references as a row of the file of best-known values.
    """
    problem = task.problem()
    values: dict[str, list[int]] = {}
    best = BestKnown()
    for name, column in columns(task.devices, task.scale).items():
        results = [column.run(problem, seed) for seed in range(task.seeds)]
        values[name] = [int(result.outcome.value) for result in results]
        for result in results:
            best.offer(Known.of(problem, result.solution, name))
    for name, column in references(task.devices, task.scale).items():
        best.offer(Known.of(problem, column.run(problem, 0).solution, name))
    (known,) = best
    return {
        "task": task.key,
        "fingerprint": problem.graph.fingerprint,
        "ops": problem.graph.num_ops,
        "values": values,
        "best": known.row(),
    }


def run(
    settings: Settings,
    known: BestKnown,
    rows_path: Path | None = None,
    workers: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:
    """Measures what is not measured yet, and makes the tables.

    Args:
        settings: What to measure.
        known: Best-known values; improved by what is found.
        rows_path: File of rows, of earlier runs too; ``None``: nothing is stored.
        workers: Processes; the result does not depend on how many.
        progress: Told how many of how many tasks are done.

    Returns:
        ``settings``, ``tables`` (one per number of devices) and ``improved`` (how many best-known values are new or
        better).
    """
    file = RowFile(rows_path)
    wanted = tasks(settings)
    done = {_identity(row["task"]): row for row in file.rows if "task" in row}
    missing = [task for task in wanted if _identity(task.key) not in done]
    report = progress or (lambda done, total: None)
    report(len(wanted) - len(missing), len(wanted))
    for count, row in enumerate(in_order(measure, missing, workers), len(wanted) - len(missing) + 1):
        file.append(row)
        done[_identity(row["task"])] = row
        report(count, len(wanted))
    rows = [done[_identity(task.key)] for task in wanted]
    improved = sum(known.offer(Known.from_row(row["best"])) for row in rows)
    for task in wanted:
        _verify(task.problem(), known)
    return {
        "settings": asdict(settings),
        "tables": [_table(devices, rows, known) for devices in settings.devices],
        "improved": improved,
    }


def _verify(problem: SchedulingProblem | PlacementProblem, known: BestKnown) -> None:
    """Evaluates a best-known solution again: a stored value is a claim.

    Raises:
        InvalidSolutionError: The solution has another value.
    """
    entry = known.get(problem)
    if entry is not None and (true := Known.of(problem, entry.solution, entry.found_by).value) != entry.value:
        raise InvalidSolutionError(
            f"the best-known solution of {entry.graph} on {entry.cluster or 'one device'} is worth {true}, "
            f"not {entry.value}; correct or remove it"
        )


def _identity(key: Any) -> str:
    return json.dumps(key, sort_keys=True)


def _table(devices: int, rows: Sequence[Mapping[str, Any]], known: BestKnown) -> dict[str, Any]:
    """Means by family and over all; a graph with all its seeds is one cluster."""
    chosen = [row for row in rows if row["task"]["devices"] == devices]
    others = [name for name in chosen[0]["values"] if name != BASE]
    lines = []
    for family in (*FAMILIES, "all"):
        of_family = [row for row in chosen if family in (row["task"]["family"], "all")]
        mean = partial(_mean_gain, of_family)
        lines.append(
            {
                "family": family,
                "graphs": len(of_family),
                "headroom": mean(partial(_best_values, known)).document(),
                "gains": {name: mean(partial(_values, name)).document() for name in others},
                "found_best": _shares(of_family, known),
                "first_study": {
                    name: by_family[family]
                    for name, by_family in FIRST_STUDY.get(devices, {}).items()
                    if family in by_family
                },
            }
        )
    return {"devices": devices, "lines": lines}


def _mean_gain(
    rows: Iterable[Mapping[str, Any]], values_of: Callable[[Mapping[str, Any]], Sequence[float]]
) -> Interval:
    """Mean of 1 - value / value of the base, seed by seed."""
    gains: list[float] = []
    graphs: list[str] = []
    for row in rows:
        gain = 1 - np.asarray(values_of(row), float) / np.asarray(row["values"][BASE], float)
        gains += gain.tolist()
        graphs += [row["fingerprint"]] * len(gain)
    return clustered_mean(gains, graphs)


def _values(column: str, row: Mapping[str, Any]) -> Sequence[float]:
    values: list[int] = row["values"][column]
    return values


def _best_values(known: BestKnown, row: Mapping[str, Any]) -> Sequence[float]:
    return [_best_value(row, known)] * len(row["values"][BASE])


def _best_value(row: Mapping[str, Any], known: BestKnown) -> int:
    entry = known.entry(row["best"]["fingerprint"], row["best"]["cluster"])
    assert entry is not None
    return entry.value


def _shares(rows: Sequence[Mapping[str, Any]], known: BestKnown) -> dict[str, float]:
    """Share of runs of each column that reached the best-known value."""
    reached: dict[str, list[bool]] = {}
    for row in rows:
        best = _best_value(row, known)
        for name, values in row["values"].items():
            reached.setdefault(name, []).extend(value <= best for value in values)
    return {name: float(np.mean(hits)) for name, hits in reached.items()}
