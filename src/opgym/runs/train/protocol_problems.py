"""Training problems by a hold-out protocol: placement of what one pre-training may learn from."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Sequence
from itertools import chain, islice, zip_longest
from typing import Any

from ... import datasets
from ...datasets import zoo
from ...datasets.suites import Row, protocol
from ...datasets.zoo.manifest import Entry
from ...errors import InvalidProblemError
from ...problems import Objective
from .config import ProblemConfig
from .problems import NamedProblem

#: Rows of this suite are problems as they are, where a protocol trains on its graphs.
WORKLOADS = "gdp"
#: Clusters that each graph gets, of those that there are, in turn.
CLUSTERS_PER_GRAPH = 2
#: Training steps in the zoo have names that end so.
_TRAINING = "-train"


def pose_protocol(config: ProblemConfig) -> list[NamedProblem]:
    """The problems of a protocol: rows of the suite of workloads, or graphs of the zoo on clusters in turn.

    Of the zoo they are training steps of the part, with at most so many ops; each has two of the clusters. One graph of
    each family comes before the second of any.

    Raises:
        UnknownIdError: No such protocol, with the nearest ones.
        InvalidProblemError: Settings that contradict each other, or no such number.
    """
    _require_alone(config)
    return _posed(config, config.part, config.rows, "problem.rows")


def pose_protocol_validation(config: ProblemConfig) -> list[NamedProblem]:
    """The problems that weights are chosen by: those of the validation part.

    A protocol that trains on workloads alone has nothing to choose by but what is learned from.

    Raises:
        InvalidProblemError: No such number.
    """
    return _posed(config, "validation", config.validation, "problem.validation")


def _require_alone(config: ProblemConfig) -> None:
    for key in ("graph", "cluster", "objective", "capacity_bytes", "suite", "suites"):
        if getattr(config, key) is not None:
            raise InvalidProblemError(
                f"problem.protocol and problem.{key} are both given; a protocol says what is learned from"
            )


def _posed(config: ProblemConfig, part: str, count: Any, key: str) -> list[NamedProblem]:
    learned = protocol(str(config.protocol)).train
    workloads = [row for row in datasets.suite(WORKLOADS).rows if row.graph in set(learned)]
    rows = workloads or _rows_of_zoo(config, learned, part)
    if not rows:
        raise InvalidProblemError(
            f"protocol {config.protocol!r} has nothing to learn from with these settings"
        )
    if count is None:
        count = len(rows)
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= len(rows):
        raise InvalidProblemError(f"{key} = {count!r:.200}; expected how many problems, 1 .. {len(rows)}")
    if workloads:  # of which those of a family are side by side
        return [_problem(rows[i * len(rows) // count]) for i in range(count)]
    return list(islice(filter(None, map(_posable, rows)), count))


def _posable(row: Row) -> NamedProblem | None:
    """The problem of a row; ``None``: it has an op that no device has the memory for."""
    try:
        return _problem(row)
    except InvalidProblemError:
        return None


def _problem(row: Row) -> NamedProblem:
    return NamedProblem(row.name, row.problem())


def _rows_of_zoo(config: ProblemConfig, learned: Sequence[str], part: str) -> list[Row]:
    """Training steps of a part of the zoo, each on the clusters that it has."""
    clusters = _clusters(config.clusters)
    entries = _by_family(
        [
            entry
            for entry in map(zoo.entry, learned)
            if entry.name.endswith(_TRAINING)
            and entry.split == part
            and (config.most_ops is None or entry.ops <= config.most_ops)
        ]
    )
    objective, apart = Objective.STEP_TIME.value, max(1, len(clusters) // CLUSTERS_PER_GRAPH)
    found = []
    for turn in range(min(CLUSTERS_PER_GRAPH, len(clusters))):
        for at, entry in enumerate(entries):
            cluster = clusters[(at + turn * apart) % len(clusters)]
            graph = zoo.PREFIX + entry.name
            found.append(Row(graph, entry.fingerprint, cluster, objective, None, part, "unscreened"))
    return found


def _by_family(entries: Sequence[Entry]) -> list[Entry]:
    """Graphs in an order in which those of a family, or of its twins, are far apart."""
    families: dict[str, list[Entry]] = defaultdict(list)
    for entry in sorted(entries, key=lambda entry: hashlib.sha256(entry.name.encode()).digest()):
        families[entry.group].append(entry)
    turns = zip_longest(*families.values())
    return [entry for entry in chain.from_iterable(turns) if entry is not None]


def _clusters(given: Any) -> list[str]:
    clusters = [given] if isinstance(given, str) else given
    if (
        not isinstance(clusters, list | tuple)
        or not clusters
        or not all(isinstance(c, str) for c in clusters)
    ):
        raise InvalidProblemError(
            f"problem.clusters = {given!r:.200}; a protocol that trains on the zoo needs a list of clusters, e.g. "
            "[2xP100,4xP100@nvlink]"
        )
    return list(clusters)
