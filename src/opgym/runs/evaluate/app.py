"""``opgym evaluate`` as an application of Hydra."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ...errors import ExecutionFailedError, InvalidDatasetError, InvalidProblemError, InvalidRunError
from ...problems import PlacementProblem, SchedulingProblem
from ..hydra_app import Application
from ..run_folder import (
    RESULT,
    Progress,
    locked,
    progress_of,
    read_result,
    require_fresh,
    require_same,
    write_config,
    write_result,
)
from ..train.config import digest
from .cases import Case, cases_of_graphs, cases_of_suite
from .contestants import Contestant, contestants
from .evaluation import Comparison, Evaluated, evaluate, stored_results
from .result_tables import MOST_SEEDS, require_pyarrow

FORMAT, VERSION = "opgym.evaluation", 1
#: Settings that do not change what is run.
OUTSIDE = ("workers", "name", "runs", "resume")
_MOST_LETTERS = 60

#: Told how many of how many runs are done, and the name of the last; and of a run that failed.
Watch = tuple[Callable[[int, int, str], None] | None, Callable[[str], None] | None]


class EvaluationFailedError(ExecutionFailedError):
    """Some runs of an evaluation failed, and the others have their results; or no agent applied to any problem.

    Attributes:
        evaluated: All rows.
        folder: Where the tables are.
    """

    def __init__(self, evaluated: Evaluated, folder: Path) -> None:
        count = len(evaluated.results)
        message = f"{len(evaluated.failed)} of {count} runs failed; resume=true tries those again"
        if not evaluated.failed:
            reasons = dict.fromkeys(row["error"] for row in evaluated.results)
            message = f"no agent applies to any of the problems: {'; '.join(reasons):.500}"
        super().__init__(message)
        self.evaluated, self.folder = evaluated, folder


@dataclass
class SuiteConfig:
    """Which suite.

    Attributes:
        name: Its name; ``None``: problems of one's own.
    """

    name: str | None = None


@dataclass
class OwnProblemConfig:
    """Problems of one's own.

    Attributes:
        graph: An id of ``opgym datasets list``, the path of a model, or a list of those; ``None``: a suite is given.
        cluster: Devices, e.g. ``"4xP100"``; ``None``: the order of one device.
        objective: ``"step_time"``, ``"peak_memory"``, ``"max_load"`` or ``"latency"``.
        capacity_bytes: Memory of each device, where it is not what the cluster has.
    """

    graph: Any = None
    cluster: str | None = None
    objective: str | None = None
    capacity_bytes: int | None = None


@dataclass
class EvaluateConfig:
    """One comparison.

    Attributes:
        agents: Names of solvers or settings, paths of saved learners or of their trainings, or mappings of ``solver``,
            ``options`` and ``name``.
        suite: What they are compared on ...
        part: ... of it, ``"train"``, ``"validation"`` or ``"test"``; ``None``: all rows, or the test of the protocol.
        roles: Of these roles; empty: all.
        rows: How many from the beginning of what is left, or a list of positions or of graphs; ``None``: all.
        protocol: A hold-out protocol, which says which graphs are for training and which for the test.
        problem: Problems instead of a suite.
        budget: Most evaluations of each agent on each problem.
        seconds: Most seconds of each run; ``None``: no limit.
        seeds: How many, from 0 on, or a list.
        workers: Processes; ``None``: one per core.
        name: Of the folder; ``None``: one that says what is run.
        runs: Folder of all runs.
        resume: Whether to go on with what was interrupted or failed.
    """

    agents: Any = field(default_factory=list)
    suite: SuiteConfig = field(default_factory=SuiteConfig)
    part: str | None = None
    roles: list[str] = field(default_factory=list)
    rows: Any = None
    protocol: str | None = None
    problem: OwnProblemConfig = field(default_factory=OwnProblemConfig)
    budget: int = 1_000
    seconds: float | None = None
    seeds: Any = 3
    workers: int | None = None
    name: str | None = None
    runs: str = "runs"
    resume: bool = False

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> EvaluateConfig:
        """The settings from plain data of the right shape."""
        parts = dict(document)
        parts["suite"] = SuiteConfig(**(parts.get("suite") or {}))
        parts["problem"] = OwnProblemConfig(**(parts.get("problem") or {}))
        return cls(**parts)

    def __post_init__(self) -> None:
        if isinstance(self.agents, str | Mapping):
            self.agents = [self.agents]
        if not isinstance(self.agents, list | tuple):
            raise InvalidProblemError(
                f"agents = {self.agents!r:.200}; expected a list, e.g. agents=[m-etf,annealing]"
            )
        if self.workers is not None and self.workers < 1:
            raise InvalidProblemError(f"workers = {self.workers}; expected at least 1")

    @property
    def identity(self) -> dict[str, Any]:
        """Everything that says what is run."""
        return {key: value for key, value in asdict(self).items() if key not in OUTSIDE}

    @property
    def folder_name(self) -> str:
        """Suite, agents, and a digest of all settings."""
        given = [
            agent.get("name") or agent.get("solver") if isinstance(agent, dict) else agent
            for agent in self.agents
        ]
        words = [self.suite.name or "problems", self.part or "", *map(str, given)]
        label = re.sub(r"[^A-Za-z0-9.-]+", "-", "_".join(filter(None, words)))[:_MOST_LETTERS].strip("-.")
        return f"evaluate_{label}_{digest(self.identity)}"

    def cases(self) -> list[Case]:
        """The problems.

        Raises:
            OpgymError: Settings that contradict each other, or something that does not exist.
        """
        own = self.problem
        graphs = [own.graph] if isinstance(own.graph, str) else own.graph
        if self.suite.name is not None:
            given = [key for key, value in asdict(own).items() if value is not None]
            if given:
                raise InvalidProblemError(
                    f"suite and problem.{given[0]} are both given; a suite brings its own problems"
                )
            return cases_of_suite(
                self.suite.name, part=self.part, roles=self.roles, rows=self.rows, protocol=self.protocol
            )
        for key in ("part", "roles", "rows", "protocol"):
            if getattr(self, key):
                raise InvalidProblemError(f"{key} = {getattr(self, key)!r} needs a suite, e.g. suite=gdp")
        if graphs is None:
            raise InvalidProblemError("nothing to compare on; expected suite=NAME or problem.graph=ID")
        if not isinstance(graphs, list | tuple) or not all(isinstance(graph, str) for graph in graphs):
            raise InvalidProblemError(
                f"problem.graph = {own.graph!r:.200}; expected an id, a path, or a list of those"
            )
        return cases_of_graphs(graphs, own.cluster or "", own.objective, own.capacity_bytes)

    @property
    def all_seeds(self) -> list[int]:
        """The seeds.

        Raises:
            InvalidProblemError: Neither a number of seeds nor a list of them.
        """
        if isinstance(self.seeds, int) and not isinstance(self.seeds, bool) and 1 <= self.seeds <= MOST_SEEDS:
            return list(range(self.seeds))
        if isinstance(self.seeds, list | tuple) and all(type(seed) is int for seed in self.seeds):
            return list(self.seeds)
        raise InvalidProblemError(
            f"seeds = {self.seeds!r:.100}; expected 1 .. {MOST_SEEDS} of them, or a list such as [0,1,2]"
        )


class EvaluateApplication(Application[EvaluateConfig]):
    """Compares agents."""

    name = "evaluate"
    schema = EvaluateConfig
    open_keys = ()
    outside = OUTSIDE

    def contestant(self, given: Any) -> Contestant:
        """An agent as it is asked for in the settings."""
        return Contestant.of(given)

    @contextmanager
    def watched(self) -> Iterator[Watch]:
        """Who is told how it goes."""
        yield None, None

    def default_workers(self) -> int:
        """Processes where none are asked for."""
        return 1

    def read(self, settings: Mapping[str, Any]) -> EvaluateConfig:
        """The settings, from plain data."""
        return EvaluateConfig.from_json(settings)

    def folder_name(self, settings: EvaluateConfig) -> str:
        """Suite, agents, and a digest."""
        return settings.folder_name

    def prepare(self, settings: EvaluateConfig, folder: Path) -> Progress:
        """Makes agents and problems, and looks at the folder."""
        require_pyarrow()
        comparison = self._comparison(settings)
        _require_solvers(comparison)
        progress = _require_folder(settings, folder)
        if progress is Progress.FINISHED and not self._is_whole(comparison, folder):
            return Progress.UNFINISHED  # what was lost is made again
        return progress

    def run(self, settings: EvaluateConfig, folder: Path) -> dict[str, Any]:
        """Compares.

        Raises:
            InvalidRunError: The folder holds something that these settings do not allow to touch.
            EvaluationFailedError: In the end, if some runs failed, or no agent applied; the tables have the others.
        """
        comparison = self._comparison(settings)
        with locked(folder), self.watched() as (progress, complain):
            if _require_folder(settings, folder) is Progress.ABSENT:
                write_config(folder, asdict(settings))
            found = evaluate(
                comparison, folder, settings.workers or self.default_workers(), progress, complain
            )
            if found.failed or not found.applicable:
                raise EvaluationFailedError(found, folder)
            result = {"format": FORMAT, "version": VERSION, "results": found.results}
            write_result(folder, result)
        return result

    def result(self, folder: Path) -> dict[str, Any]:
        """The result of a finished evaluation.

        Raises:
            InvalidRunError: It is damaged, or of another version.
        """
        result = read_result(folder)
        if (result.get("format"), result.get("version")) != (FORMAT, VERSION):
            raise InvalidRunError(f"{folder}/{RESULT}: is no {FORMAT!r} of version {VERSION}")
        if not isinstance(result.get("results"), list):
            raise InvalidRunError(f"{folder}/{RESULT}: has no list of results")
        return result

    def _is_whole(self, comparison: Comparison, folder: Path) -> bool:
        """Whether a finished evaluation has all of its files as they were written."""
        try:
            return bool(self.result(folder)["results"] == stored_results(comparison, folder))
        except (InvalidRunError, InvalidDatasetError):
            return False

    def in_sweep(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Many jobs at once have one process each."""
        return {**settings, "workers": 1}

    def _comparison(self, settings: EvaluateConfig) -> Comparison:
        agents = contestants([self.contestant(given) for given in settings.agents])
        return Comparison(settings.cases(), agents, settings.budget, settings.all_seeds, settings.seconds)


def _require_solvers(comparison: Comparison) -> None:
    """Refuses agents of which none solves problems of a type that there is.

    Raises:
        InvalidProblemError: Naming them.
    """
    types = [PlacementProblem if case.row.cluster else SchedulingProblem for case in comparison.cases]
    if not any(
        issubclass(type_, agent.make().problem_types)
        for agent in comparison.contestants
        for type_ in set(types)
    ):
        names = ", ".join(agent.name for agent in comparison.contestants)
        kinds = " or ".join(sorted({type_.__name__ for type_ in types}))
        raise InvalidProblemError(f"none of the agents {names} solves any of the problems, each a {kinds}")


def _require_folder(settings: EvaluateConfig, folder: Path) -> Progress:
    """Refuses a folder that is not to be touched; a run of the same settings may be gone on with, if asked for.

    Raises:
        InvalidRunError: Saying what to do about it.
    """
    progress = progress_of(folder)
    if settings.resume and progress is not Progress.ABSENT:
        require_same(folder, lambda stored: EvaluateConfig.from_json(stored).identity, settings.identity)
    else:
        require_fresh(folder)
    return progress
