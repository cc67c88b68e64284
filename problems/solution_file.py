"""Solution files: a placement as versioned JSON with a closed schema.

A file names the graph (by fingerprint) and the devices that it was made for, and is refused for others. What
it claims about its value is kept for people and never believed. Splits of the dnn-partitioning repository
(``{"fpgas": [{"nodes": ids}], "cpus": [...]}``) are read too.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ImportFailedError, InvalidSolutionError
from ..graphs import Cluster
from ..graphs.atomic import write_text
from ..graphs.closed_json import Row, read_json
from ..graphs.readers.dnn_partitioning import Split, node_ids, parse_split
from ..outcome import Outcome, Verdict
from .host_transfers import is_host
from .objectives import Objective
from .pipeline import SCHEDULES
from .placement import Placement, PlacementProblem

FORMAT = "opgym.placement"
VERSION = 1
_KEYS = (
    "format",
    "version",
    "graph",
    "cluster",
    "devices",
    "objective",
    "pipeline",
    "device",
    "priority",
    "transfer_priority",
    "claim",
)
#: JSON has no infinity; priorities do.
_INFINITIES = {"inf": math.inf, "-inf": -math.inf}
_MAX_ROWS = 10_000_000


def save(
    path: str | os.PathLike[str],
    problem: PlacementProblem,
    placement: Placement,
    outcome: Outcome | None = None,
) -> None:
    """Writes a placement atomically.

    Args:
        path: Where to.
        problem: The problem that it solves.
        placement: The solution.
        outcome: Its outcome, written as a claim.

    Raises:
        InvalidSolutionError: A priority is NaN.
        OSError: The folder is missing or not writable, or the disk is full; ``path`` is as it was before.
    """
    document = {
        "format": FORMAT,
        "version": VERSION,
        "graph": {"fingerprint": problem.graph.fingerprint, "name": problem.graph.name},
        "cluster": problem.cluster.name,
        "devices": list(problem.cluster.device_names),
        "objective": problem.objective.value,
        "pipeline": None if problem.pipeline.micro_batches is None else asdict(problem.pipeline),
        "device": np.asarray(placement.device).tolist(),
        "priority": _numbers(placement.priority, "priority"),
        "transfer_priority": _numbers(placement.transfer_priority, "transfer_priority"),
        "claim": None if outcome is None else _claim(outcome),
    }
    write_text(path, json.dumps(document, allow_nan=False) + "\n")


def load(path: str | os.PathLike[str], problem: PlacementProblem) -> Placement:
    """Reads a placement for a problem.

    A readable file may still hold an illegal placement (a wrong length, a device that does not exist); that
    is for the evaluation to say.

    Raises:
        InvalidSolutionError: The file cannot be read, is no solution, or is one of another graph or cluster.
    """
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


def _claim(outcome: Outcome) -> dict[str, Any]:
    value = outcome.value if math.isfinite(outcome.value) else None
    return {"value": value, "unit": outcome.unit, "verdict": outcome.verdict.value}


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
    if isinstance(document, dict) and document.get("format") == FORMAT and document.get("version") != VERSION:
        raise InvalidSolutionError(
            f"{path}: is version {document.get('version')!r:.40} of {FORMAT}; "
            f"this opgym reads version {VERSION}"
        )
    row = Row(document, f"{path}:", InvalidSolutionError, _KEYS)
    if row.get("format") != FORMAT:
        row.refuse(f"has format {row.get('format')!r:.60}; expected {FORMAT!r}")
    graph = Row(row.get("graph"), f"{path}: graph", InvalidSolutionError, ("fingerprint", "name"))
    graph.text("name")
    fingerprint = graph.text("fingerprint")
    if fingerprint != problem.graph.fingerprint:
        row.refuse(
            f"places the graph with fingerprint {fingerprint:.12}..., "
            f"not {problem.graph.fingerprint:.12}... ({problem.graph!r}); "
            "give the model, and the dims, that it was made for"
        )
    row.text("cluster")  # for people, and for a command to start from; the devices decide
    made_for = [str(name) for name in row.rows("devices", _MAX_ROWS)]
    if made_for != list(problem.cluster.device_names):
        given = ", ".join(problem.cluster.device_names)
        row.refuse(f"was made for devices {', '.join(made_for)[:200]}, not {given}; give the same cluster")
    if row.text("objective") not in [objective.value for objective in Objective]:
        row.refuse(f"names objective {row.text('objective')!r:.60}; there is no such objective")
    _check_pipeline(row.get("pipeline"), path)
    _check_claim(row.get("claim"), path)
    return Placement(
        _integers(row, "device"),
        None if row.get("priority") is None else _floats(row, "priority", row.rows("priority", _MAX_ROWS)),
        None if row.get("transfer_priority") is None else _matrix(row, "transfer_priority"),
    )


def _check_pipeline(pipeline: Any, path: str | os.PathLike[str]) -> None:
    if pipeline is None:
        return
    row = Row(pipeline, f"{path}: pipeline", InvalidSolutionError, ("micro_batches", "schedule"))
    row.integer("micro_batches", 1, 2**31)
    if row.text("schedule") not in SCHEDULES:
        row.refuse(f"has schedule {row.text('schedule')!r:.60}; expected one of {', '.join(SCHEDULES)}")


def _check_claim(claim: Any, path: str | os.PathLike[str]) -> None:
    if claim is None:
        return
    row = Row(claim, f"{path}: claim", InvalidSolutionError, ("value", "unit", "verdict"))
    if row.get("value") is not None:
        row.number("value", -math.inf, math.inf)
    row.text("unit")
    if row.text("verdict") not in [verdict.value for verdict in Verdict]:
        row.refuse(f"has verdict {row.text('verdict')!r:.60}; there is no such verdict")


def _integers(row: Row, key: str) -> NDArray[np.int64]:
    values = row.rows(key, _MAX_ROWS)
    for position, value in enumerate(values):
        if isinstance(value, bool) or not isinstance(value, int) or not -(2**63) <= value < 2**63:
            row.refuse(f"has {key}[{position}] = {value!r:.60}; expected a whole number")
    return np.array(values, np.int64)


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
    rows = row.rows(key, _MAX_ROWS)
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
