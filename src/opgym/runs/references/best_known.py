"""Longer searches for lower peaks of the headroom graphs: ``opgym reproduce best-known``.

What they find improves the stored best-known values, relative to which headroom is measured. On one device they are
annealing on orders, on more annealing on (device, priority) pairs from one device; rounds differ in seed and in
temperature, since no temperature is best on all graphs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...datasets.reference import BestKnown, Known
from ...errors import InvalidProblemError
from ..parallel import in_order
from ..reproduce.headroom import MOST_EVALUATIONS, Column, Task

#: One after the other, round by round; shares of the peak.
TEMPERATURES = (0.01, 0.04, 0.005, 0.02)
#: Seeds of rounds, apart from those of the columns of the headroom table.
_FIRST_SEED = 1_000
#: Simulations of one search.
EVALUATIONS = 400_000
#: A tried move of an order costs a fraction of a simulation.
MOVES_PER_SIMULATION = 10
#: Problems between two savings.
_BATCH = 20


def improve(
    tasks: Sequence[Task],
    known: BestKnown,
    save: Callable[[], None],
    *,
    evaluations: int = EVALUATIONS,
    rounds: Sequence[int] = (0,),
    workers: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> int:
    """Searches every problem once a round; the result does not depend on the number of workers.

    Args:
        tasks: The problems.
        known: Improved.
        save: Called after every few problems.
        evaluations: Simulations of one search; ten times as many moves on one device.
        rounds: Which rounds; others continue where these ended.
        workers: Processes.
        progress: Told how many of how many searches are done.

    Returns:
        How many values are new or better.

    Raises:
        InvalidProblemError: No evaluation, or more than can be counted.
    """
    if not 1 <= evaluations <= MOST_EVALUATIONS:
        raise InvalidProblemError(f"{evaluations} evaluations; expected 1 to {MOST_EVALUATIONS:,}")
    searches = [(task, number, evaluations) for number in rounds for task in tasks]
    report = progress or (lambda done, total: None)
    improved = 0
    for done, row in enumerate(in_order(_search, searches, workers), 1):
        improved += known.offer(Known.from_row(row))
        if done % _BATCH == 0 or done == len(searches):
            save()
        report(done, len(searches))
    return improved


def _search(search: tuple[Task, int, int]) -> dict[str, Any]:
    """The row of what one search finds."""
    task, number, evaluations = search
    temperature = TEMPERATURES[number % len(TEMPERATURES)]
    if task.devices == 1:
        column = Column("order-annealing", MOVES_PER_SIMULATION * evaluations, {"temperature": temperature})
    else:
        options = {"temperature": temperature, "starts": ("single",)}
        column = Column("pair-annealing", evaluations, options)
    problem = task.problem()
    found = column.run(problem, _FIRST_SEED + number).solution
    return Known.of(problem, found, f"{column.solver} at {temperature}, round {number}").row()
