"""Solution files: a placement or an order as versioned JSON with a closed schema.

A file names the graph (by fingerprint) and the devices that it was made for, and is refused for others. What
it claims about its value is kept for people and never believed. Splits of the dnn-partitioning repository
(``{"fpgas": [{"nodes": ids}], "cpus": [...]}``) are read too.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from ..errors import ImportFailedError, InvalidSolutionError
from ..graphs import Cluster
from ..graphs.closed_json import Row, read_json
from ..graphs.readers.dnn_partitioning import Split, node_ids, parse_split
from ..outcome import Outcome
from .host_transfers import is_host
from .objectives import Objective
from .pipeline import SCHEDULES
from .placement import Placement, PlacementProblem
from .scheduling import Order, SchedulingProblem
from .solution_rows import MAX_ROWS, Format, integers

FORMAT = "opgym.placement"
ORDER_FORMAT = "opgym.order"
_PLACEMENT_FILE = Format(
    FORMAT,
    1,
    ("cluster", "devices", "objective", "pipeline", "device", "priority", "transfer_priority"),
    "places",
)
_ORDER_FILE = Format(ORDER_FORMAT, 1, ("order",), "orders")
#: JSON has no infinity; priorities do.
_INFINITIES = {"inf": math.inf, "-inf": -math.inf}


@overload
def save(
    path: str | os.PathLike[str],
    problem: PlacementProblem,
    solution: Placement,
    outcome: Outcome | None = None,
) -> None: ...


@overload
def save(
    path: str | os.PathLike[str],
    problem: SchedulingProblem,
    solution: Order,
    outcome: Outcome | None = None,
) -> None: ...


def save(
    path: str | os.PathLike[str],
    problem: PlacementProblem | SchedulingProblem,
    solution: Placement | Order,
    outcome: Outcome | None = None,
) -> None:
    """Writes a placement or an order atomically.

    Args:
        path: Where to.
        problem: The problem that it solves.
        solution: The solution.
        outcome: Its outcome, written as a claim.

    Raises:
        InvalidSolutionError: A priority is NaN.
        OSError: The folder is missing or not writable, or the disk is full; ``path`` is as it was before.
    """
    if isinstance(solution, Order):
        _ORDER_FILE.write(path, problem.graph, {"order": np.asarray(solution.op).tolist()}, outcome)
        return
    assert isinstance(problem, PlacementProblem)
    rows = {
        "cluster": problem.cluster.name,
        "devices": list(problem.cluster.device_names),
        "objective": problem.objective.value,
        "pipeline": None if problem.pipeline.micro_batches is None else asdict(problem.pipeline),
        "device": np.asarray(solution.device).tolist(),
        "priority": _numbers(solution.priority, "priority"),
        "transfer_priority": _numbers(solution.transfer_priority, "transfer_priority"),
    }
    _PLACEMENT_FILE.write(path, problem.graph, rows, outcome)


@overload
def load(path: str | os.PathLike[str], problem: PlacementProblem) -> Placement: ...


@overload
def load(path: str | os.PathLike[str], problem: SchedulingProblem) -> Order: ...


def load(path: str | os.PathLike[str], problem: PlacementProblem | SchedulingProblem) -> Placement | Order:
    """Reads a placement or an order for a problem.

    A readable file may still hold an illegal solution (a wrong length, a device that does not exist); that
    is for the evaluation to say.

    Raises:
        InvalidSolutionError: The file cannot be read, is no solution, or is one of another graph or cluster.
    """
    if isinstance(problem, SchedulingProblem):
        document = read_json(path, InvalidSolutionError, "a solution file")
        return Order(integers(_ORDER_FILE.read(document, path, problem.graph), "order"))
    document = read_json(path, InvalidSolutionError, "a solution file or a dnn-partitioning split")
    if isinstance(document, dict) and "format" not in document and "fpgas" in document:
        return _placement_of_split(_split(document, path, problem), path, problem)
    return _placement_of_file(document, path, problem)


def load_with_problem(
    path: str | os.PathLike[str], problem: PlacementProblem
) -> tuple[PlacementProblem, Placement]:
    """Reads a placement, and the problem with the devices that the file presumes.

    Only published splits can differ: one may use more accelerators than its graph file names (an expert split
    for six beside a graph file for five). The extra ones are added to the cluster, as the published
    evaluation does.

    Raises:
        InvalidSolutionError: As for :func:`load`.
    """
    document = read_json(path, InvalidSolutionError, "a solution file or a dnn-partitioning split")
    if isinstance(document, dict) and "format" not in document and "fpgas" in document:
        split = _split(document, path, problem)
        used = [number for number, nodes in enumerate(split.accelerators, start=1) if nodes]
        accelerators = int(np.count_nonzero(~is_host(problem.cluster)))
        extra = max(used, default=0) - accelerators
        if extra > 0 and accelerators:
            problem = replace(problem, cluster=_with_more_accelerators(problem.cluster, extra))
        return problem, _placement_of_split(split, path, problem)
    return problem, _placement_of_file(document, path, problem)


def _numbers(values: NDArray[Any] | None, name: str) -> list[Any] | None:
    """Nested lists with infinities as text."""
    if values is None:
        return None
    array = np.asarray(values, np.float64)
    if np.isnan(array).any():
        raise InvalidSolutionError(f"{name} holds NaN; a priority is a number or an infinity")
    if np.isfinite(array).all():
        return array.tolist()  # type: ignore[no-any-return]
    written = array.astype(object)
    written[np.isposinf(array)], written[np.isneginf(array)] = "inf", "-inf"
    return written.tolist()  # type: ignore[no-any-return]


def _placement_of_file(document: Any, path: str | os.PathLike[str], problem: PlacementProblem) -> Placement:
    row = _PLACEMENT_FILE.read(document, path, problem.graph)
    row.text("cluster")  # for people, and for a command to start from; the devices decide
    made_for = [str(name) for name in row.rows("devices", MAX_ROWS)]
    if made_for != list(problem.cluster.device_names):
        given = ", ".join(problem.cluster.device_names)
        row.refuse(f"was made for devices {', '.join(made_for)[:200]}, not {given}; give the same cluster")
    if row.text("objective") not in [objective.value for objective in Objective]:
        row.refuse(f"names objective {row.text('objective')!r:.60}; there is no such objective")
    _check_pipeline(row.get("pipeline"), path)
    return Placement(
        integers(row, "device"),
        None if row.get("priority") is None else _floats(row, "priority", row.rows("priority", MAX_ROWS)),
        None if row.get("transfer_priority") is None else _matrix(row, "transfer_priority"),
    )


def _check_pipeline(pipeline: Any, path: str | os.PathLike[str]) -> None:
    if pipeline is None:
        return
    row = Row(pipeline, f"{path}: pipeline", InvalidSolutionError, ("micro_batches", "schedule"))
    row.integer("micro_batches", 1, 2**31)
    if row.text("schedule") not in SCHEDULES:
        row.refuse(f"has schedule {row.text('schedule')!r:.60}; expected one of {', '.join(SCHEDULES)}")


def _floats(row: Row, key: str, values: list[Any]) -> NDArray[np.float64]:
    numbers = []
    for position, value in enumerate(values):
        number = _INFINITIES.get(value, value) if isinstance(value, str) else value
        if isinstance(number, bool) or not isinstance(number, int | float):
            row.refuse(f"has {key}[{position}] = {value!r:.60}; expected a number, 'inf' or '-inf'")
        try:
            numbers.append(float(number))
        except OverflowError:
            row.refuse(f"has {key}[{position}] with {len(str(value))} digits; expected a 64-bit number")
    return np.array(numbers, np.float64)


def _matrix(row: Row, key: str) -> NDArray[np.float64]:
    rows = row.rows(key, MAX_ROWS)
    for position, values in enumerate(rows):
        if not isinstance(values, list) or len(values) != len(rows[0]):
            row.refuse(f"has a {key}[{position}] that is no list as long as the first")
    return np.array([_floats(row, f"{key}[{i}]", values) for i, values in enumerate(rows)], np.float64)


def _split(document: Mapping[str, Any], path: str | os.PathLike[str], problem: PlacementProblem) -> Split:
    try:
        node_ids(problem.graph)
        return parse_split(document, path)
    except ImportFailedError as error:
        raise InvalidSolutionError(str(error)) from None


def _placement_of_split(split: Split, path: str | os.PathLike[str], problem: PlacementProblem) -> Placement:
    """The device map of a split; devices beyond those of the cluster get numbers that do not exist."""
    ids = node_ids(problem.graph)
    host = is_host(problem.cluster)
    device = np.full(problem.graph.num_ops, -1, np.int64)
    missing = len(problem.cluster)
    for parts, known in ((split.accelerators, np.flatnonzero(~host)), (split.cpus, np.flatnonzero(host))):
        for number, nodes in enumerate(parts):
            place = int(known[number]) if number < len(known) else missing
            for node in nodes:
                if node not in ids:
                    raise InvalidSolutionError(f"{path}: places node {node}; the graph has no such node")
                device[ids[node]] = place
            missing += number >= len(known)
    left_out = [node for node, op in ids.items() if device[op] < 0]
    if left_out:
        raise InvalidSolutionError(
            f"{path}: leaves {len(left_out)} nodes without a device, among them node {left_out[0]}"
        )
    return Placement(device)


def _with_more_accelerators(cluster: Cluster, extra: int) -> Cluster:
    """The cluster with copies of its last accelerator at the end, linked as that one is."""
    last = int(np.flatnonzero(~is_host(cluster))[-1])
    copied = np.concatenate([np.arange(len(cluster)), np.full(extra, last)])
    return replace(
        cluster,
        devices=tuple(cluster.devices[d] for d in copied),
        latency_ns=cluster.latency_ns[np.ix_(copied, copied)],
        bytes_per_second=cluster.bytes_per_second[np.ix_(copied, copied)],
        name=f"{cluster.name} and {extra} more accelerators",
    )
