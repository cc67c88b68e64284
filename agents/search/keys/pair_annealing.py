"""Simulated annealing on (device, priority) pairs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from .... import _core
from ....problems import Evaluator, Order, Placement, PlacementProblem
from ...registry import register
from ...solver import PlacementSolver, Remark
from ..native import evaluations_left, seed_of
from ..options import at_least, of_type, share, solver_names
from .encoding import SIMULATED, KeyEncoding, Keys
from .starts import evaluate_starts, run_key_search


@register
@dataclass(frozen=True)
class PairAnnealing(PlacementSolver):
    """Simulated annealing on a device for each group of ops and a priority for each op, from the best heuristic on.

    Half of the moves give a group another device; the others give one to three ops a random priority, or shift theirs
    by up to 0.05 of the range. A worse solution is accepted with probability ``exp(-(worse - now) / T)``, where ``T``
    falls from ``temperature`` x the value to 0 with the square of the share of the budget that is left; 0 is local
    search. What does not fit into memory counts as ``1.5 + 5 x overflow share`` times its value, or times the best
    value that fits if that is more. It knows nothing of layers: ``annealing`` moves these.

    Without ``seconds`` in the budget the course depends on the generator alone.

    Attributes:
        evaluations: Evaluations where the budget states no limit; those of the heuristics are among them.
        temperature: Of the start, as a share of the value.
        starts: Solvers of which the best solution is the start.
        groups: What shares a device; see :class:`~opgym.agents.search.keys.KeyEncoding`.
        start: A placement that is the start instead; the result is not worse. ``groups`` must not divide it.
    """

    evaluations: int = 5_000
    temperature: float = 0.004
    starts: tuple[str, ...] = ("single", "metis", "m-topo", "critical-path", "m-etf", "heft")
    groups: str | None = None
    start: Placement | None = field(default=None, repr=False)

    name: ClassVar[str] = "pair-annealing"
    summary: ClassVar[str] = "simulated annealing on (device, priority) pairs, from the best heuristic"
    anytime: ClassVar[bool] = True
    objectives = SIMULATED

    def __post_init__(self) -> None:
        solver_names(starts=self.starts)
        at_least(1, evaluations=self.evaluations, starts=len(self.starts))
        share(temperature=self.temperature)
        if self.groups is not None:
            of_type(str, "the name of a grouping", groups=self.groups)
        if self.start is not None:
            of_type(Placement, "a Placement, which no file can state", start=self.start)

    def _search(
        self, problem: PlacementProblem, evaluator: Evaluator[Placement], rng: np.random.Generator
    ) -> Remark:
        encoding = KeyEncoding(problem, self.groups, transfer_keys=False)
        solution: Placement | Order | None = self.start
        if self.start is not None:
            name = "a given placement"
            evaluator.evaluate(self.start)
        else:
            starts = evaluate_starts(encoding, evaluator, self.starts, rng, self.evaluations)
            name, solution = starts[0] if starts else ("nothing", None)
        left = evaluations_left(evaluator, self.evaluations)
        if left == 0:
            return Remark(f"only {name} was tried")
        search = _core.KeyAnnealing(
            encoding.decoder,
            self._keys(encoding, solution),
            seed_of(rng),
            encoding.target,
            self.temperature,
            self.evaluations if left is None else left,
        )

        def fit_into_time(evaluations_per_second: float) -> None:
            if evaluator.budget.seconds is not None:
                fits = int(evaluations_per_second * (evaluator.budget.seconds - evaluator.seconds))
                search.set_length(max(1, fits if left is None else min(left, fits)))

        proven = run_key_search(encoding, evaluator, search, self.evaluations, on_first_call=fit_into_time)
        return Remark(f"started from {name}", proven)

    def _keys(self, encoding: KeyEncoding, solution: Placement | Order | None) -> Keys:
        if solution is None:
            return np.full(encoding.genes, 0.5, np.float32)
        return encoding.encode(solution, keep_priorities=solution is self.start)
