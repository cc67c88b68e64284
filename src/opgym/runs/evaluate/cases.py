"""What agents are compared on: rows of suites, those that a hold-out protocol tests, or problems of one's own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ... import datasets
from ...datasets.relatives import relatives
from ...datasets.suites import Row
from ...datasets.suites.problem_list import ROLES
from ...datasets.zoo.splits import SPLITS
from ...errors import InvalidProblemError, unknown_id
from ...problems import Objective
from ..suite_rows import chosen_rows

#: Parts of a protocol: its lists of graphs.
PROTOCOL_PARTS = ("train", "test")


@dataclass(frozen=True)
class Case:
    """One problem with what is known of it.

    Attributes:
        suite: Name of the suite; empty for a problem of one's own.
        suite_version: Its version; 0 without a suite.
        reference_version: Version of its reference lines; 0 without any.
        row: The problem.
        family: Architecture of the graph, see ``datasets.relatives``.
        twins: What must not be counted twice.
        bound: Proven bound of its reference line, in the unit of the objective; ``None``: not known yet.
        best_known: Best value of its reference line; ``None``: not known.
    """

    suite: str
    suite_version: int
    reference_version: int
    row: Row
    family: str
    twins: str
    bound: float | None = None
    best_known: float | None = None


def cases_of_suite(
    suite: str,
    *,
    part: str | None = None,
    roles: Sequence[str] = (),
    rows: int | str | Sequence[int | str] | None = None,
    protocol: str | None = None,
) -> list[Case]:
    """Rows of a suite, in its order.

    Args:
        suite: Name of the suite.
        part: Only rows of this part; with a protocol, only graphs of this list of it (``"test"`` if absent).
        roles: Only rows with one of these roles; empty: all.
        rows: Of the rows that part, roles and protocol leave so many from the beginning, or these, by position from 0,
            by graph or by name; ``None``: all.
        protocol: Name of a hold-out protocol; whether a row is for training or test is then its business.

    Raises:
        UnknownIdError: An unknown name, with the nearest ones.
        InvalidProblemError: No rows are left, or one is asked for that is not there.
    """
    found = datasets.suite(suite)
    known_parts = SPLITS if protocol is None else PROTOCOL_PARTS
    if part is not None and part not in known_parts:
        raise unknown_id("part", part, list(known_parts))
    for role in roles:
        if role not in ROLES:
            raise unknown_id("role", role, list(ROLES))
    left = [row for row in found.rows if not roles or row.role in roles]
    if protocol is not None:
        held_out = datasets.protocol(protocol)
        graphs = set(held_out.train if part == "train" else held_out.test)
        left = [row for row in left if row.graph in graphs]
    elif part is not None:
        left = [row for row in left if row.part == part]
    if not left:
        raise InvalidProblemError(
            f"no row of {suite} is left by part = {part}, roles = {list(roles)}, protocol = {protocol}"
        )
    chosen = chosen_rows(left, rows, "rows")
    has_lines = suite in datasets.reference.suites_with_lines()
    lines = datasets.reference.lines(suite) if has_lines else None
    cases = []
    for row in chosen:
        case = _case(row, suite, found.suite_version)
        line = None if lines is None else lines.lines.get(row.name)
        if lines is not None and line is not None and line.fingerprint == row.fingerprint:
            case = replace(
                case,
                reference_version=lines.reference_version,
                bound=line.bound,
                best_known=None if line.best is None else line.best.value,
            )
        cases.append(case)
    return cases


def cases_of_graphs(
    graphs: Sequence[str],
    cluster: str = "",
    objective: str | None = None,
    capacity_bytes: int | None = None,
) -> list[Case]:
    """Problems of one's own: the same question about each of some graphs.

    Args:
        graphs: Ids or paths.
        cluster: Spec of the cluster; empty: the order of one device.
        objective: ``"step_time"``, ``"peak_memory"``, ``"max_load"`` or ``"latency"``; by default step time on a
            cluster, and peak memory, which is all that there is, without one.
        capacity_bytes: Memory of each device, where it is not what the cluster has.

    Raises:
        OpgymError: A graph cannot be read, or a problem cannot be posed.
    """
    if not cluster and (capacity_bytes is not None or objective not in (None, Objective.PEAK_MEMORY.value)):
        raise InvalidProblemError("an order on one device has peak_memory as its objective, and no limit")
    chosen = objective or (Objective.STEP_TIME.value if cluster else Objective.PEAK_MEMORY.value)
    if chosen not in [known.value for known in Objective]:
        raise unknown_id("objective", chosen, [known.value for known in Objective])
    if not graphs:
        raise InvalidProblemError("no graphs; expected ids or paths")
    cases = []
    for graph in dict.fromkeys(graphs):
        fingerprint = datasets.load(graph).fingerprint
        row = Row(graph, fingerprint, cluster, chosen, capacity_bytes, "test", "unscreened")
        row.problem()  # what cannot be posed is said before anything runs
        cases.append(_case(row, "", 0))
    return cases


def _case(row: Row, suite: str, suite_version: int) -> Case:
    kin = relatives(row.graph)
    return Case(suite, suite_version, 0, row, kin.family, kin.twins)
