"""Whether a row leaves something to gain, by its reference line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ..reference import Line, lines
from .problem_list import Row, Suite

#: A heuristic that comes this close to the best known value leaves nothing to learn.
LEAST_GAP = 0.02


def role_of(row: Row, found: Mapping[str, Line]) -> str:
    """The role of a row.

    Args:
        row: The row.
        found: Reference lines by name of the row.

    Returns:
        ``"control"`` where the best heuristic is less than ``LEAST_GAP`` above the best known value, ``"task"`` where
        it is not, or where no heuristic finds anything feasible; ``"unscreened"`` where no line tells.
    """
    line = found.get(row.name)
    if line is None or line.fingerprint != row.fingerprint or line.best is None:
        return "unscreened"
    return "control" if line.gap is not None and line.gap < LEAST_GAP else "task"


def with_roles(suite: Suite, reference_version: int) -> Suite:
    """A suite with roles by one version of its reference lines, so that later ones do not change it.

    Raises:
        UnknownIdError: There is no such version.
    """
    found = lines(suite.name, reference_version).lines
    return replace(
        suite,
        rule=f"{suite.rule}; roles by reference version {reference_version}: `control` where the best heuristic is "
        f"less than {LEAST_GAP:.0%} above the best known value",
        rows=[replace(row, role=role_of(row, found)) for row in suite.rows],
    )
