"""Training problems by rule: random graphs of several suites at once, more than a list of rows would hold."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import islice
from typing import Any

from ...errors import InvalidProblemError, unknown_id
from ..references import regal_suites
from .config import ProblemConfig
from .problems import NamedProblem
from .protocol_problems import pose_protocol_validation

#: Parts that a rule makes graphs of; those of the test are rows.
PARTS = ("train", "validation")


def pose_generated(config: ProblemConfig) -> list[NamedProblem]:
    """The problems of the first random graphs of a part, or of some positions of it, each as every suite poses it.

    Args:
        config: With ``suites``; ``rows`` is a number of graphs, or a list of positions.

    Raises:
        UnknownIdError: No such suite or part, with the nearest ones.
        InvalidProblemError: Settings that contradict each other, or positions that there are not.
    """
    for key in ("graph", "cluster", "objective", "capacity_bytes", "suite"):
        if getattr(config, key) is not None:
            raise InvalidProblemError(
                f"problem.suites and problem.{key} are both given; suites bring their own {key}"
                if key != "suite"
                else "problem.suite and problem.suites are both given: rows of the one, or random graphs of several"
            )
    if config.part not in PARTS:
        raise unknown_id("part with random graphs by rule", config.part, list(PARTS))
    return _posed(_suites(config.suites), config.part, config.rows, "problem.rows")


def pose_validation(config: ProblemConfig) -> list[NamedProblem]:
    """The problems that weights are chosen by: none without ``problem.validation``.

    Raises:
        InvalidProblemError: No suites to take them from, or no such number.
    """
    if config.validation is None:
        return []
    if config.protocol is not None:
        return pose_protocol_validation(config)
    if config.suites is None or config.part != "train":
        raise InvalidProblemError(
            f"problem.validation = {config.validation!r} takes random graphs of problem.suites, beside those of "
            "problem.part=train; leave it out, or say `learned` for those that are learned from"
        )
    return _posed(_suites(config.suites), "validation", config.validation, "problem.validation")


def _suites(given: Any) -> list[str]:
    """Names of suites, as they are or as one text."""
    names = [given] if isinstance(given, str) else given
    if not isinstance(names, list | tuple) or not names:
        raise InvalidProblemError(f"problem.suites = {given!r:.200}; expected a list of names of suites")
    for name in names:
        if name not in regal_suites.SETTINGS:
            raise unknown_id("suite with random graphs by rule", str(name), list(regal_suites.SETTINGS))
    if len(set(names)) < len(names):
        raise InvalidProblemError(f"problem.suites = {list(names)} names a suite twice")
    return list(names)


def _posed(suites: Sequence[str], part: str, rows: Any, key: str) -> list[NamedProblem]:
    rule = regal_suites.generated(part)
    wanted = [(suite, graph) for graph in _graphs(rule, rows, key) for suite in suites]
    # A limit of memory comes from a run of BRKGA, which threads share in the core.
    with ThreadPoolExecutor(min(len(wanted), os.cpu_count() or 1)) as pool:
        return list(pool.map(lambda pair: _problem(*pair, part), wanted))


def _graphs(rule: Any, rows: Any, key: str) -> list[str]:
    """Ids of the graphs at positions of a rule."""
    if isinstance(rows, int) and not isinstance(rows, bool) and 1 <= rows <= len(rule):
        return list(islice(rule, rows))
    positions = rows if isinstance(rows, list | tuple) else []
    known = [isinstance(row, int) and not isinstance(row, bool) and 0 <= row < len(rule) for row in positions]
    if known and all(known):
        return [rule[row] for row in dict.fromkeys(positions)]  # each once, as rows of suites
    raise InvalidProblemError(
        f"{key} = {rows!r:.200}; expected how many random graphs, 1 .. {len(rule)}, or a list of positions"
    )


@cache
def _problem(suite: str, graph: str, part: str) -> NamedProblem:
    """Posed once: what is checked before a training is what it learns from."""
    row = regal_suites.row_of(suite, graph, part)
    return NamedProblem(row.name, row.problem())
