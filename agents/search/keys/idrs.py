"""Random proposals per instance: what REGAL's budget finds without learning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ....problems import Order, Placement, PlacementProblem, SchedulingProblem
from ...registry import register
from ...solver import Remark, Solver
from ..native import evaluations_left
from ..options import at_least
from .brkga import Brkga
from .encoding import KeyEncoding
from .proposal import Proposal, betas
from .starts import KeyEvaluator

#: Means and variances are drawn from the middles of so many equal parts of (0, 1).
BINS = 16


@register
@dataclass(frozen=True)
class InstanceDependentRandomSearch(Solver[PlacementProblem | SchedulingProblem, Placement | Order]):
    """Random Beta distributions per gene, each tried with a run of BRKGA, until the budget is spent; the best stays.

    The control of REGAL (Paliwal et al. 2020, baseline IDRS): it proposes distributions for the mutants as REGAL
    does, drawn instead of learned, for each instance anew. Given all the evaluations that a learned proposal costs,
    it shows what of its gain is search. Mean and variance of each gene are drawn independently from 16 values each.

    Without ``seconds`` in the budget the course depends on the generator alone.

    Attributes:
        evaluations: Evaluations of all runs together where the budget states no limit.
        evaluations_per_proposal: Evaluations of the run that tries one proposal.
        population: As of ``brkga``.
        elites: As of ``brkga``.
        mutants: As of ``brkga``.
        bias: As of ``brkga``.
        groups: As of ``brkga``.
        transfer_keys: As of ``brkga``.
        threads: As of ``brkga``.
    """

    evaluations: int = 100_000
    evaluations_per_proposal: int = 5_000
    population: int = Brkga.population
    elites: int = Brkga.elites
    mutants: int = Brkga.mutants
    bias: float = Brkga.bias
    groups: str | None = None
    transfer_keys: bool = True
    threads: int = 1

    name: ClassVar[str] = "idrs"
    summary: ClassVar[str] = "runs of brkga with random distributions of mutants: the control of REGAL"
    anytime: ClassVar[bool] = True
    control: ClassVar[bool] = True
    problem_types = Brkga.problem_types
    objectives = Brkga.objectives

    def __post_init__(self) -> None:
        at_least(1, evaluations=self.evaluations, evaluations_per_proposal=self.evaluations_per_proposal)
        self._run_of(None)  # refuses wrong options

    def skip_reason(self, problem: PlacementProblem | SchedulingProblem) -> str | None:
        """Why not to try it: that of ``brkga``."""
        return self._run_of(None).skip_reason(problem)

    def _search(
        self,
        problem: PlacementProblem | SchedulingProblem,
        evaluator: KeyEvaluator,
        rng: np.random.Generator,
    ) -> Remark:
        genes = KeyEncoding(problem, self.groups, transfer_keys=self.transfer_keys).genes
        proposals, proven, best = 0, False, 0
        while not (proven or evaluator.exhausted):
            left = evaluations_left(evaluator, self.evaluations)
            if left == 0:
                break
            before = evaluator.best
            most = self.evaluations_per_proposal
            with evaluator.share(most if left is None else min(left, most)) as own:
                remark = self._run_of(Proposal(random_betas(genes, rng)))._search(problem, own, rng)
            proposals += 1
            if evaluator.best is not before:
                best = proposals
            proven = remark.proven_optimal
        tried = "1 proposal" if proposals == 1 else f"{proposals} proposals, the best is number {best}"
        return Remark(tried, proven)

    def _run_of(self, proposal: Proposal | None) -> Brkga:
        return Brkga(
            population=self.population,
            elites=self.elites,
            mutants=self.mutants,
            bias=self.bias,
            groups=self.groups,
            transfer_keys=self.transfer_keys,
            threads=self.threads,
            proposal=proposal,
        )


def random_betas(genes: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """A Beta distribution for each gene, mean and share of the largest variance drawn independently.

    Returns:
        ``(a, b)`` of each, ``[genes, 2]``.
    """
    mean, variance_share = (rng.integers(BINS, size=(2, genes)) + 0.5) / BINS
    return betas(mean, variance_share)
