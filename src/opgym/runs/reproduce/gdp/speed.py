"""How many evaluations something takes to what another has found in the end."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ....statistics import geometric_mean
from .columns import Column
from .figures import Line, cluster_of, line, mean
from .workloads import Workload


@dataclass(frozen=True)
class Race:
    """One run beside another on the same row.

    Attributes:
        workload: The row.
        base: Evaluations of the other to its best value.
        ours: Evaluations of this one to a value as good; ``None``: it never found one.
        spent: All evaluations of this one.
    """

    workload: Workload
    base: int
    ours: int | None
    spent: int

    @property
    def speed_up(self) -> float:
        """How many times fewer evaluations; where it never found one, what it is at most."""
        return self.base / (self.spent if self.ours is None else self.ours)


def races(column: Column, base: Column, workloads: Sequence[Workload]) -> list[Race]:
    """Every run beside that of the other column with the same seed, where that has found anything."""
    return [
        Race(workload, to, ours.evaluations_to(theirs.value), ours.evaluations)
        for workload in workloads
        for ours, theirs in column.pairs(base, workload)
        if math.isfinite(theirs.value) and (to := theirs.evaluations_to(theirs.value)) is not None
    ]


def speed_ups(
    task: str, column: Column, base: Column, name: str, workloads: Sequence[Workload]
) -> Iterator[Line]:
    """Evaluations of a base to its best value / evaluations of a column to one as good, geometric means over rows.

    ``search_speedup_over:NAME`` is over the runs that find one, ``never_reaches:NAME`` counts the others;
    ``search_speedup_at_most_over:NAME`` is over all, with those at what they spent: it is no more than that.
    """
    found = races(column, base, workloads)
    yield from _told(task, column.name, "search_speedup", name, found, geometric=True)


def saved(
    task: str, column: Column, base: Column, name: str, workloads: Sequence[Workload]
) -> Iterator[Line]:
    """1 - evaluations of a column to what a base found in the end / evaluations of the base to that, means over rows.

    ``evaluations_saved_over:NAME`` is over the runs that find it, ``never_reaches:NAME`` counts the others;
    ``evaluations_saved_at_most_over:NAME`` is over all, with those at what they spent.
    """
    found = races(column, base, workloads)
    yield from _told(task, column.name, "evaluations_saved", name, found, geometric=False)


def _told(
    task: str, method: str, metric: str, name: str, found: Sequence[Race], *, geometric: bool
) -> Iterator[Line]:
    reached = [race for race in found if race.ours is not None]
    for which, chosen in ((f"{metric}_over", reached), (f"{metric}_at_most_over", found)):
        rows: dict[str, list[Race]] = {}
        for race in chosen:
            rows.setdefault(race.workload.name, []).append(race)
        values = [_of_row([race.speed_up for race in of_row], geometric) for of_row in rows.values()]
        clusters = [cluster_of(of_row[0].workload) for of_row in rows.values()]
        yield from mean(task, method, f"{which}:{name}", values, clusters, geometric=geometric)
    if found:
        yield line(task, method, f"never_reaches:{name}", len(found) - len(reached), len(found))


def _of_row(speed_ups: Sequence[float], geometric: bool) -> float:
    if geometric:
        return geometric_mean(speed_ups)
    return sum(1 - 1 / speed_up for speed_up in speed_ups) / len(speed_ups)
