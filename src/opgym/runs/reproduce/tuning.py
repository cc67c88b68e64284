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

from ...agents import make
from ...agents.search.keys import Brkga
from ...datasets.synthetic import SEEDS
from ...errors import InvalidProblemError
from ...problems import Budget
from ..row_file import RowFile
from .headroom import FAMILIES, Task
from .staged_search import Floats, Laboratory, Setting, gain_text, gains, mean_gain, search

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
        The row: ``trial`` and ``values``, ``[settings][seeds]``, ``None`` where nothing fits.
    """
    problem = trial.task.problem()
    values = []
    for setting in trial.settings:
        solver = make("brkga", **{**setting, "mutant_beta": tuple(setting["mutant_beta"])})
        budget = Budget(evaluations=trial.evaluations)
        runs = (
            solver.solve(problem, budget, np.random.default_rng(seed)) for seed in range(trial.task.seeds)
        )
        values.append([int(found.outcome.value) if found.outcome.ok else None for found in runs])
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
        gain over the untuned) and ``check`` (gain over the untuned by family and devices, with intervals
        where there are graphs enough).

    Raises:
        InvalidProblemError: No stages, or no settings.
    """
    chosen = list(grid() if candidates is None else candidates)
    if not chosen or not stages:
        raise InvalidProblemError(f"{len(chosen)} settings in {len(stages)} stages; expected some of each")
    rounds = _rounds(stages)
    last = _Round(SEEDS["validation"][: check.graphs], check.seeds, check.keep)
    total = sum(len(each.graphs) for each in (*rounds, last)) * len(FAMILIES) * len(DEVICES)
    lab: Laboratory[Trial] = Laboratory(measure, RowFile(rows_path), workers, total, progress)

    def rows(each: _Round, settings: Sequence[Setting]) -> list[dict[str, Any]]:
        tasks = _tasks(each.graphs, each.seeds)
        return lab.rows([Trial(task, tuple(settings), evaluations) for task in tasks])

    kept = list(search(UNTUNED, chosen, rounds, lambda each, settings: _values(rows(each, settings))))
    tuned = kept[-1].settings[0]
    return {
        "tuned": dict(tuned),
        "untuned": dict(UNTUNED),
        "stages": [
            {"graphs": len(each.graphs) * len(FAMILIES), **of_round.document()}
            for each, of_round in zip(rounds, kept, strict=True)
        ],
        "check": _check(rows(last, [UNTUNED, tuned])),
    }


@dataclass(frozen=True)
class _Round:
    """A stage and its graphs, by seeds of their generators."""

    graphs: Sequence[int]
    seeds: int
    keep: int


def _rounds(stages: Sequence[Stage]) -> list[_Round]:
    """Stages, each on the training graphs that follow those of the one before."""
    ends = np.cumsum([stage.graphs for stage in stages]).tolist()
    return [
        _Round(SEEDS["train"][end - stage.graphs : end], stage.seeds, stage.keep)
        for stage, end in zip(stages, ends, strict=True)
    ]


def _values(rows: Sequence[Mapping[str, Any]]) -> Floats:
    """Values of all rows, ``[settings, rows, seeds]``; infinity where nothing fits."""
    values = np.array([row["values"] for row in rows], np.float64).swapaxes(0, 1)
    return np.where(np.isnan(values), np.inf, values)


def _check(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    lines = []
    for devices, family in product((*DEVICES, "all"), (*FAMILIES, "all")):
        chosen = [
            row
            for row in rows
            if devices in (row["trial"]["devices"], "all") and family in (row["trial"]["family"], "all")
        ]
        found = gains(_values(chosen))[1]
        graphs = np.repeat([row["trial"]["graph"] for row in chosen], found.shape[1])
        lines.append({"devices": devices, "family": family, **mean_gain(found.ravel(), graphs)})
    return lines


def _tasks(graph_seeds: Sequence[int], seeds: int) -> Iterator[Task]:
    for devices, seed, family in product(DEVICES, graph_seeds, FAMILIES):
        yield Task(f"synthetic/{family}?costs=normal&seed={seed}", family, devices, seeds, 1.0)


def as_yaml(document: Mapping[str, Any], command: str) -> str:
    """The tuned settings as a file of ``conf/agent/``."""
    gain = gain_text(document["check"][-1])
    lines = [
        f"# BRKGA tuned on training graphs by `{command}`.",
        f"# Validation graphs: peaks {gain} below those of the untuned settings.",
        "solver: brkga",
        "options:",
        *(f"  {name}: {value}" for name, value in document["tuned"].items()),
    ]
    return "\n".join(lines) + "\n"
