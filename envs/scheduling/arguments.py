"""The constructor's arguments: read once, refused at once with what was expected."""

from __future__ import annotations

from pathlib import Path

from ... import datasets
from ...errors import InvalidProblemError
from ...graphs import Graph
from ...problems import SchedulingProblem
from ..arguments import GRAPHS, of_type, one_of, positive_integer, read_padding, refuse_parts_of_a_problem

DEFAULT_GRAPH = "synthetic/ws?n=100&seed=0"
#: A choice among more ops than the latter is one of ``action="op"``.
DEFAULT_SLOTS, MOST_SLOTS = 16, 4096

ACTIONS = ("slot", "op")
OBSERVATIONS = ("node", "dict", "graph")
REWARDS = ("dense", "terminal")


def read_problem(problem: SchedulingProblem | None, graph: Graph | str | Path | None) -> SchedulingProblem:
    """The problem to play: given as it is, or posed for a graph.

    Raises:
        InvalidProblemError: A problem and a graph are given, or a graph of variables alone, or something that is none.
        UnknownIdError: An unknown graph.
    """
    of_type("problem", problem, (SchedulingProblem,), "a SchedulingProblem")
    of_type("graph", graph, GRAPHS, "a Graph, an id of opgym.datasets, or the path of a model")
    if problem is not None:
        refuse_parts_of_a_problem({"graph": graph})
        return problem
    return SchedulingProblem(graph if isinstance(graph, Graph) else datasets.load(graph or DEFAULT_GRAPH))


def read_slots(action: str, slots: int | None) -> int:
    """Number of slots; 0 where actions are ops.

    Raises:
        InvalidProblemError: ``slots`` for actions that are ops, no positive integer, or too many.
    """
    if action == "op":
        if slots is not None:
            raise InvalidProblemError(f"slots={slots!r} belongs to action='slot'; action is 'op'")
        return 0
    if slots is None:
        return DEFAULT_SLOTS
    return positive_integer("slots", slots, "the ops to choose from", MOST_SLOTS)


def read_observation(
    action: str, observation: str | None, pad_to: tuple[int, int] | None
) -> tuple[str, tuple[int, int] | None]:
    """The kind of observation, checked against the kind of action, and what it is padded to.

    Raises:
        UnknownIdError: An unknown kind.
        InvalidProblemError: It cannot show what there is to choose from, or nothing could be padded.
    """
    chosen = one_of("observation", observation or ("dict" if action == "op" else "node"), OBSERVATIONS)
    if action == "op" and chosen == "node":
        raise InvalidProblemError(
            "observation='node' is about slots and action='op' chooses among all ops; use 'dict' or 'graph'"
        )
    return chosen, read_padding(pad_to, chosen)
