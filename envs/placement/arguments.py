"""The constructor's arguments: read once, refused at once with what was expected."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ... import datasets
from ...errors import InvalidProblemError, InvalidSolutionError
from ...graphs import Cluster, CostModel, Graph
from ...problems import Objective, Placement, PlacementProblem, program_order
from ...problems.grouping import assign
from ..arguments import (
    GRAPHS,
    of_type,
    one_of,
    positive_integer,
    read_padding,
    refuse_parts_of_a_problem,
    shortened,
)
from .blocks import Blocks

DEFAULT_GRAPH = "example/rnn-train"
DEFAULT_CLUSTER = "2xP100"
#: Up to this many ops a step is about one op; past it, about one of at most this many groups.
MOST_SINGLE_OPS, DEFAULT_GROUPS = 2_000, "metis:256"

#: Decisions of an episode of refine.
MOST_STEPS = 2**31 - 1

MODES = ("sequential", "one_shot", "refine")
OBSERVATIONS = ("node", "dict", "graph")
REWARDS = ("terminal", "dense")
ORDERS = ("critical_path", "program")
INITIALS = ("single", "random")


def read_problem(
    problem: PlacementProblem | None,
    graph: Graph | str | Path | None,
    cluster: Cluster | str | None,
    objective: Objective | str | None,
    costs: CostModel | None,
) -> PlacementProblem:
    """The problem to play: given as it is, or posed from its parts and defaults.

    Raises:
        InvalidProblemError: A problem and a part of one are given, or something that is none.
        UnknownIdError: An unknown graph, device profile or objective.
    """
    of_type("problem", problem, (PlacementProblem,), "a PlacementProblem")
    of_type("graph", graph, GRAPHS, "a Graph, an id of opgym.datasets, or the path of a model")
    of_type("cluster", cluster, (Cluster, str), "a Cluster, or its text such as '2xP100'")
    if costs is not None and not callable(getattr(costs, "cost_ns", None)):
        raise InvalidProblemError(
            f"costs={shortened(costs)}; expected a cost model, which has a method cost_ns"
        )
    if problem is not None:
        refuse_parts_of_a_problem(
            {"graph": graph, "cluster": cluster, "objective": objective, "costs": costs}
        )
        return problem
    if not isinstance(graph, Graph):
        imported = datasets.read(str(graph or DEFAULT_GRAPH))
        graph = imported.graph
        costs = imported.costs if costs is None else costs
        cluster = imported.cluster if cluster is None else cluster
    if cluster is None or isinstance(cluster, str):
        cluster = Cluster.parse(cluster or DEFAULT_CLUSTER)
    chosen: dict[str, Any] = {} if costs is None else {"costs": costs}
    if objective is not None:
        chosen["objective"] = objective
    return PlacementProblem(graph, cluster, **chosen)


def read_groups(problem: PlacementProblem, groups: str | ArrayLike | None) -> NDArray[np.int32]:
    """Group of each op, ``[ops] int32``; by default as fine as a game of some 2,000 decisions allows."""
    if groups is None:
        groups = "op" if problem.graph.num_ops <= MOST_SINGLE_OPS else DEFAULT_GROUPS
    return assign(problem, groups)


def read_priority(problem: PlacementProblem, order: str) -> NDArray[np.float64] | None:
    """Priorities by which devices pick their ops at the end, ``[ops]``; ``None``: by upward rank.

    Raises:
        UnknownIdError: An unknown order.
    """
    return None if one_of("order", order, ORDERS) == "critical_path" else program_order(problem.graph)


def read_observation(
    mode: str, observation: str | None, pad_to: tuple[int, int] | None
) -> tuple[str, tuple[int, int] | None]:
    """The kind of observation, checked against the mode, and what it is padded to.

    Raises:
        UnknownIdError: An unknown kind.
        InvalidProblemError: It cannot show what the mode decides, or nothing could be padded.
    """
    chosen = one_of("observation", observation or ("dict" if mode == "one_shot" else "node"), OBSERVATIONS)
    if mode == "one_shot" and chosen == "node":
        raise InvalidProblemError(
            "observation='node' is about one group and mode='one_shot' decides on all; use 'dict' or 'graph'"
        )
    return chosen, read_padding(pad_to, chosen)


def read_steps(mode: str, steps: int | None, initial: object, num_groups: int) -> int:
    """Decisions of an episode.

    Raises:
        InvalidProblemError: ``steps`` or ``initial`` for a mode that has none, or no positive integer.
    """
    if mode != "refine":
        for name, value in (("steps", steps), ("initial", initial)):
            if value is not None:
                raise InvalidProblemError(f"{name}= belongs to mode='refine'; mode is {mode!r}")
        return num_groups if mode == "sequential" else 1
    if steps is None:
        return num_groups
    return positive_integer("steps", steps, "the decisions of an episode", MOST_STEPS)


def read_initial(
    problem: PlacementProblem, blocks: Blocks, initial: str | Placement | NDArray[Any]
) -> NDArray[np.int64]:
    """Device of each group in a placement of ops, ``[groups] int64``.

    Raises:
        InvalidSolutionError: It is illegal, or puts the ops of one group on several devices.
    """
    placement = initial if isinstance(initial, Placement) else Placement(np.asarray(initial))
    outcome = problem.evaluate(placement)
    if not np.isfinite(outcome.value):
        reason = outcome.details.get("reason", "")
        raise InvalidSolutionError(
            f"initial placement is illegal ({outcome.verdict}): {reason}; expected {' or '.join(INITIALS)}, "
            "a Placement, or one allowed device per op"
        )
    device = placement.device[blocks.first_op].astype(np.int64)
    split = np.flatnonzero(device[blocks.group_of_op] != placement.device)
    if len(split):
        op = int(split[0])
        raise InvalidSolutionError(
            f"initial placement puts op {op} on device {placement.device[op]} and the first op of its group "
            f"{blocks.group_of_op[op]} on device {device[blocks.group_of_op[op]]}; a group is on one device"
        )
    return device
