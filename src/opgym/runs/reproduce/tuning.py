"""Tunes BRKGA on training graphs: ``opgym reproduce tuning``.

A grid over population, elites, mutants and the two parameters of the Beta distribution that all mutants share
(modelled on the "tuned BRKGA" of Paliwal et al. 2020), for peak memory on one and two devices. It is searched in
stages: every stage tries the settings that the one before kept on other graphs, with the same seeds for all. What wins
is compared with the untuned settings on validation graphs, which no stage has seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...agents import make
from ...agents.search.keys import Brkga
from ...datasets.synthetic import SEEDS
from ...errors import InvalidProblemError
from ...problems import Budget
from ...statistics import clustered_mean
from ..parallel import in_order
from ..row_file import RowFile
from .headroom import FAMILIES, Task

EVALUATIONS = 5_000
DEVICES = (1, 2)
#: Raised when what a row holds changes its meaning: rows of other versions are measured anew.
ROW_VERSION = 1
#: The settings of the untuned baseline: the defaults of the solver.
UNTUNED: Mapping[str, Any] = {
    "population": Brkga.population,
    "elites": Brkga.elites,
    "mutants": Brkga.mutants,
    "bias": Brkga.bias,
    "mutant_beta": list(Brkga.mutant_beta),
}


@dataclass(frozen=True)
class Stage:
    """One round of the search.

    Attributes:
        graphs: Graphs of each family, used by this stage only.
        seeds: Seeds of each setting on each graph.
        keep: How many settings stay.
    """

    graphs: int
    seeds: int
    keep: int


#: A first look at everything, then fewer settings on more graphs.
STAGES = (Stage(2, 1, 12), Stage(8, 1, 4), Stage(16, 2, 1))
CHECK = Stage(30, 2, 1)


def grid() -> list[dict[str, Any]]:
    """Every setting; elites and mutants are shares of the population."""
    populations, elites, mutants = (30, 50, 100, 200), (0.1, 0.2, 0.3), (0.02, 0.05, 0.15)
    betas = ((1.0, 1.0), (0.5, 0.5), (2.0, 2.0))
    return [
        {
            "population": population,
            "elites": round(population * elite),
            "mutants": max(1, round(population * mutant)),
            "bias": Brkga.bias,
            "mutant_beta": list(beta),
        }
        for population, elite, mutant, beta in product(populations, elites, mutants, betas)
    ]


@dataclass(frozen=True)
class Trial:
    """Several settings on one graph.

    Attributes:
        task: The graph, devices and seeds.
        settings: Options of BRKGA, as JSON data.
        evaluations: Budget of each run.
    """

    task: Task
    settings: tuple[Mapping[str, Any], ...]
    evaluations: int

    @property
    def key(self) -> dict[str, Any]:
        """What a stored row must share to stand for this trial."""
        return {
            "version": ROW_VERSION,
            **asdict(self.task),
            "settings": [dict(setting) for setting in self.settings],
            "evaluations": self.evaluations,
        }


def measure(trial: Trial) -> dict[str, Any]:
    """Runs every setting on a graph.

    Returns:
        The row: ``trial`` and ``values``, ``[settings][seeds]``.
    """
    problem = trial.task.problem()
    values = []
    for setting in trial.settings:
        solver = make("brkga", **{**setting, "mutant_beta": tuple(setting["mutant_beta"])})
        budget = Budget(evaluations=trial.evaluations)
        runs = (
            solver.solve(problem, budget, np.random.default_rng(seed)) for seed in range(trial.task.seeds)
        )
        values.append([int(found.outcome.value) for found in runs])
    return {"trial": trial.key, "values": values}


def run(
    stages: Sequence[Stage] = STAGES,
    check: Stage = CHECK,
    candidates: Sequence[Mapping[str, Any]] | None = None,
    *,
    rows_path: Path | None = None,
    workers: int = 1,
    evaluations: int = EVALUATIONS,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:
    """Searches the grid and checks what wins.

    Args:
        stages: Rounds of the search.
        check: The comparison on validation graphs.
        candidates: Settings to choose from; the grid by default.
        rows_path: File of rows, of earlier runs too; ``None``: nothing is stored.
        workers: Processes; the result does not depend on how many.
        evaluations: Budget of each run.
        progress: Told how many of how many graphs are done.

    Returns:
        ``tuned`` (options), ``untuned``, ``stages`` (for each: graphs, settings, and the kept ones with their mean
        gain over the untuned) and ``check`` (gain over the untuned by family and devices, with intervals).

    Raises:
        InvalidProblemError: No stages, or no settings.
    """
    chosen: list[Mapping[str, Any]] = list(grid() if candidates is None else candidates)
    if not chosen or not stages:
        raise InvalidProblemError(f"{len(chosen)} settings in {len(stages)} stages; expected some of each")
    lab = _Laboratory(RowFile(rows_path), workers, evaluations, progress)
    lab.announce(stages, check)
    report = []
    seeds = SEEDS["train"]
    for stage in stages:
        of_stage, seeds = seeds[: stage.graphs], seeds[stage.graphs :]
        gains = _gains(lab.rows(of_stage, stage.seeds, [UNTUNED, *chosen])).mean(axis=(0, 2))[1:]
        best = np.argsort(-gains, kind="stable")[: stage.keep]
        report.append(
            {
                "graphs": stage.graphs * len(FAMILIES),
                "settings": len(chosen),
                "kept": [{**chosen[i], "gain": float(gains[i])} for i in best.tolist()],
            }
        )
        chosen = [chosen[i] for i in best.tolist()]
    tuned = dict(chosen[0])
    rows = lab.rows(SEEDS["validation"][: check.graphs], check.seeds, [UNTUNED, tuned])
    return {"tuned": tuned, "untuned": dict(UNTUNED), "stages": report, "check": _check(rows)}


def _gains(rows: Sequence[Mapping[str, Any]]) -> NDArray[np.float64]:
    """1 - value / value of the first setting with the same seed, ``[rows, settings, seeds]``."""
    values = np.array([row["values"] for row in rows], np.float64)
    return 1 - values / values[:, :1]


def _check(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    lines = []
    for devices, family in product((*DEVICES, "all"), (*FAMILIES, "all")):
        chosen = [
            row
            for row in rows
            if devices in (row["trial"]["devices"], "all") and family in (row["trial"]["family"], "all")
        ]
        gains = _gains(chosen)[:, 1]
        graphs = np.repeat([row["trial"]["graph"] for row in chosen], gains.shape[1])
        interval = clustered_mean(gains.ravel(), graphs)
        lines.append({"devices": devices, "family": family, **asdict(interval)})
    return lines


class _Laboratory:
    """Measures trials that no row stands for yet."""

    def __init__(
        self,
        file: RowFile,
        workers: int,
        evaluations: int,
        progress: Callable[[int, int], None] | None,
    ) -> None:
        self._file = file
        self._workers = workers
        self._evaluations = evaluations
        self._progress = progress or (lambda done, total: None)
        self._done = self._total = 0

    def announce(self, stages: Sequence[Stage], check: Stage) -> None:
        """Tells how much there is to do."""
        graphs = sum(stage.graphs for stage in stages) + check.graphs
        self._total = graphs * len(FAMILIES) * len(DEVICES)
        self._progress(0, self._total)

    def rows(
        self, graph_seeds: Sequence[int], seeds: int, settings: Sequence[Mapping[str, Any]]
    ) -> list[Mapping[str, Any]]:
        """The rows of some graphs of all families on all numbers of devices."""
        trials = [Trial(task, tuple(settings), self._evaluations) for task in _tasks(graph_seeds, seeds)]
        missing = [trial for trial in trials if self._stored(trial) is None]
        self._count(len(trials) - len(missing))
        for row in in_order(measure, missing, self._workers):
            self._file.append(row)
            self._count(1)
        rows = [self._stored(trial) for trial in trials]
        return [row for row in rows if row is not None]

    def _count(self, more: int) -> None:
        self._done += more
        self._progress(self._done, self._total)

    def _stored(self, trial: Trial) -> Mapping[str, Any] | None:
        key = trial.key
        return next((row for row in self._file.rows if row.get("trial") == key), None)


def _tasks(graph_seeds: Sequence[int], seeds: int) -> Iterator[Task]:
    for devices, seed, family in product(DEVICES, graph_seeds, FAMILIES):
        yield Task(f"synthetic/{family}?costs=normal&seed={seed}", family, devices, seeds, 1.0)


def as_yaml(document: Mapping[str, Any], command: str) -> str:
    """The tuned settings as a file of ``conf/agent/``."""
    everything = document["check"][-1]
    gain, low, high = (100 * everything[key] for key in ("estimate", "low", "high"))
    lines = [
        f"# BRKGA tuned on training graphs by `{command}`.",
        f"# Validation graphs: peaks {gain:.1f} % [{low:.1f}, {high:.1f}] below those of the untuned settings.",
        "solver: brkga",
        "options:",
        *(f"  {name}: {value}" for name, value in document["tuned"].items()),
    ]
    return "\n".join(lines) + "\n"
