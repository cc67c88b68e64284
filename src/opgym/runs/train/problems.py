"""From the settings of a training to its problems."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ...envs import PLACEMENT, SCHEDULING
from ...errors import InvalidProblemError, unknown_id
from ...outcome import Outcome
from ...problems import PlacementProblem, SchedulingProblem
from ..suite_rows import chosen_rows
from .config import ProblemConfig

#: What each environment plays.
PROBLEM_TYPES: dict[str, type[Any]] = {PLACEMENT: PlacementProblem, SCHEDULING: SchedulingProblem}


@dataclass(frozen=True)
class NamedProblem:
    """A problem, and what people call it.

    Attributes:
        name: Of the graph, or of the row of a suite.
        problem: The problem.
    """

    name: str
    problem: PlacementProblem | SchedulingProblem

    @cached_property
    def reference(self) -> float:
        """What returns of its environment are divided by, in the unit of its values."""
        if isinstance(self.problem, SchedulingProblem):
            return float(max(self.problem.reference_bytes, 1))
        from ...envs.placement.reward import reference_of

        return reference_of(self.problem).value

    def score(self, outcome: Outcome) -> float:
        """Value / reference, plus a penalty where the solution is infeasible: minus the return of its episode."""
        from ...envs.placement.reward import score

        return score(outcome, self.reference)


def pose(config: ProblemConfig, environment: str) -> list[NamedProblem]:
    """The problems of a training.

    Args:
        config: What to learn on.
        environment: Id of the environment.

    Raises:
        UnknownIdError: No such environment, graph, suite, cluster, ...
        InvalidProblemError: Settings that contradict each other, or do not fit the environment.
        OpgymError: A graph cannot be read.
    """
    if environment not in PROBLEM_TYPES:
        raise unknown_id("environment", environment, list(PROBLEM_TYPES))
    if config.protocol is not None:
        from .protocol_problems import pose_protocol

        if environment != PLACEMENT:
            raise InvalidProblemError(
                f"problem.protocol is about placement, which {environment} does not play"
            )
        return pose_protocol(config)
    for key in ("clusters", "most_ops"):
        if getattr(config, key) is not None:
            raise InvalidProblemError(f"problem.{key} = {getattr(config, key)!r:.200} needs problem.protocol")
    if config.suites is not None:
        from .generated_problems import pose_generated

        return pose_generated(config)
    if config.suite is not None:
        return _of_suite(config, environment)
    if config.rows is not None:
        raise InvalidProblemError(f"problem.rows = {config.rows!r} needs problem.suite or problem.suites")
    graphs = config.graph if isinstance(config.graph, list | tuple) else [config.graph]
    if not graphs or (isinstance(config.graph, list | tuple) and None in graphs):
        raise InvalidProblemError(
            f"problem.graph = {config.graph!r:.200}; expected an id, a path, or a list of those"
        )
    for key in ("cluster", "objective"):
        if getattr(config, key) == "":
            raise InvalidProblemError(f"problem.{key} = ''; leave it out for what is usual")
    return [_of_graph(config, graph, environment) for graph in graphs]


def _of_graph(config: ProblemConfig, graph: Any, environment: str) -> NamedProblem:
    if graph is not None and not (isinstance(graph, str) and graph):
        raise InvalidProblemError(f"problem.graph = {graph!r}; expected an id, a path, or a list of those")
    if environment == SCHEDULING:
        from ...envs.scheduling import arguments as scheduling

        for key in ("cluster", "objective", "capacity_bytes"):
            if getattr(config, key) is not None:
                raise InvalidProblemError(
                    f"problem.{key} = {getattr(config, key)!r}: {SCHEDULING} is about one device and its peak "
                    "memory; leave it out, or use env=placement"
                )
        name = graph or scheduling.DEFAULT_GRAPH
        return NamedProblem(name, scheduling.read_problem(None, name))
    from ...envs.placement import arguments as placement

    problem = placement.read_problem(None, graph, config.cluster, config.objective, None)
    if config.capacity_bytes is not None:
        cluster = problem.cluster.with_capacity(config.capacity_bytes)
        problem = PlacementProblem(problem.graph, cluster, problem.objective, problem.costs)
    return NamedProblem(graph or placement.DEFAULT_GRAPH, problem)


def _of_suite(config: ProblemConfig, environment: str) -> list[NamedProblem]:
    from ... import datasets
    from ...datasets.zoo.splits import SPLITS

    for key in ("graph", "cluster", "objective", "capacity_bytes"):
        if getattr(config, key) is not None:
            raise InvalidProblemError(
                f"problem.suite and problem.{key} are both given; a suite brings its own {key}"
            )
    assert config.suite is not None
    suite = datasets.suite(config.suite)
    if config.part not in SPLITS:
        raise unknown_id("part of a suite", config.part, list(SPLITS))
    listed = suite.part(config.part)
    if not listed:
        parts = sorted({row.part for row in suite.rows})
        raise InvalidProblemError(
            f"suite {config.suite!r} has no rows in part {config.part!r}; it has some in {', '.join(parts)}"
        )
    wanted = PROBLEM_TYPES[environment]
    found = [
        NamedProblem(row.name, row.problem()) for row in chosen_rows(listed, config.rows, "problem.rows")
    ]
    other = next((named for named in found if not isinstance(named.problem, wanted)), None)
    if other is not None:
        fitting = "env=scheduling" if environment == PLACEMENT else "env=placement"
        raise InvalidProblemError(
            f"{other.name} (suite {config.suite!r}) is a {type(other.problem).__name__}, which {environment} does "
            f"not play; use {fitting}, or choose other problem.rows"
        )
    return found
