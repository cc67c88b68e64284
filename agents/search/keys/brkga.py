"""BRKGA: the biased random-key genetic algorithm, on which REGAL stands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from .... import _core
from ....errors import InvalidProblemError
from ....problems import Objective, Order, Placement, PlacementProblem, SchedulingProblem
from ...registry import register
from ...solver import Remark, Solver
from ..native import evaluations_left, seed_of
from ..options import MOST_THREADS, at_least, of_type, share, solver_names
from .encoding import SIMULATED, KeyEncoding, Keys
from .proposal import Proposal, distribution, inheritance
from .starts import KeyEvaluator, evaluate_starts, run_key_search

_UNIFORM = (1.0, 1.0)
#: Largest size that the core takes, which numbers individuals with 32 bits.
_MOST = 2**30


@register
@dataclass(frozen=True)
class Brkga(Solver[PlacementProblem | SchedulingProblem, Placement | Order]):
    """Biased random-key genetic algorithm (Goncalves and Resende 2011), with proposals as in REGAL.

    A chromosome is a vector of keys in [0, 1]: see :class:`~opgym.agents.search.keys.KeyEncoding`. A generation keeps
    its elites, draws mutants anew, and fills up with children: each gene comes from a random elite with probability
    ``bias``, else from a random other. What does not fit into memory ranks behind what does, by how much is over.

    The loop runs in the core. Every individual draws from a stream of its own, so the course depends on the generator
    alone (without ``seconds`` in the budget), whatever the number of threads. The sizes and the bias are our choice.

    Attributes:
        evaluations: Evaluations where the budget states no limit; those of ``starts`` are among them.
        population: Individuals of a population.
        elites: Of them, that live on.
        mutants: Of them, drawn anew in each generation.
        bias: Probability that a gene comes from the elite parent.
        populations: Populations, which exchange elites.
        exchange_every: Generations between exchanges; 0: never.
        exchanged: Elites that each population then gives to every other one.
        restart_after: Generations without a better best after which all populations begin anew; 0: never.
        starts: Solvers whose solutions are in the first generation, such as ``("m-etf", "metis")``.
        mutant_beta: ``(a, b)`` of the Beta distribution of all mutants' genes; (1, 1) is uniform.
        initial_beta: The same for the first generation.
        proposal: Distributions of single genes, instead of both.
        groups: What shares a device; see :class:`~opgym.agents.search.keys.KeyEncoding`.
        transfer_keys: Whether transfers have keys of their own.
        threads: Threads that share the evaluations.
    """

    evaluations: int = 5_000
    population: int = 100
    elites: int = 20
    mutants: int = 15
    bias: float = 0.7
    populations: int = 1
    exchange_every: int = 20
    exchanged: int = 2
    restart_after: int = 0
    starts: tuple[str, ...] = ()
    mutant_beta: tuple[float, float] = _UNIFORM
    initial_beta: tuple[float, float] = _UNIFORM
    proposal: Proposal | None = field(default=None, repr=False)
    groups: str | None = None
    transfer_keys: bool = True
    threads: int = 1

    name: ClassVar[str] = "brkga"
    summary: ClassVar[str] = "biased random-key genetic algorithm on devices, priorities and transfers"
    anytime: ClassVar[bool] = True
    problem_types = (PlacementProblem, SchedulingProblem)
    #: Objectives of placement problems that it can work on.
    objectives: ClassVar[frozenset[Objective]] = SIMULATED

    def __post_init__(self) -> None:
        at_least(1, evaluations=self.evaluations)
        at_least(1, most=MOST_THREADS, threads=self.threads)
        at_least(1, most=_MOST, elites=self.elites, populations=self.populations)
        at_least(0, most=_MOST, mutants=self.mutants, restart_after=self.restart_after)
        at_least(0, most=_MOST, exchange_every=self.exchange_every, exchanged=self.exchanged)
        smallest = max(self.elites + self.mutants, self.elites + 1)
        at_least(smallest, most=_MOST, population=self.population)
        share(bias=self.bias)
        solver_names(starts=self.starts)
        of_type(bool, "true or false", transfer_keys=self.transfer_keys)
        if self.groups is not None:
            of_type(str, "the name of a grouping", groups=self.groups)
        if self.proposal is not None:
            of_type(Proposal, "a Proposal, which no file can state", proposal=self.proposal)
        for name in ("mutant_beta", "initial_beta"):
            distribution(getattr(self, name), 1, 0.0, name)
        others = self.population - self.elites
        if self.bias > 1 or (self.populations - 1) * self.exchanged > others:
            raise InvalidProblemError(
                f"bias {self.bias} has to be at most 1, and what the other populations give "
                f"({self.populations - 1} x {self.exchanged}) at most the {others} that are no elites"
            )

    def skip_reason(self, problem: PlacementProblem | SchedulingProblem) -> str | None:
        """Why not to try it: an objective that is not simulated, which has no use for priorities."""
        reason = super().skip_reason(problem)
        if (
            reason is None
            and isinstance(problem, PlacementProblem)
            and problem.objective not in self.objectives
        ):
            reason = f"does not optimise {problem.objective}"
        return reason

    def _search(
        self,
        problem: PlacementProblem | SchedulingProblem,
        evaluator: KeyEvaluator,
        rng: np.random.Generator,
    ) -> Remark:
        encoding = KeyEncoding(problem, self.groups, transfer_keys=self.transfer_keys)
        starts = evaluate_starts(encoding, evaluator, self.starts, rng, self.evaluations)
        most = self.populations * self.population
        keys = [encoding.encode(solution) for _, solution in starts[:most]]
        search = self.core_search(encoding, seed_of(rng), keys)
        if evaluations_left(evaluator, self.evaluations) == 0:
            return Remark(f"only {starts[0][0]} was tried" if starts else "")
        proven = run_key_search(encoding, evaluator, search, self.evaluations)
        return Remark(
            f"{search.generation} generations" + (f", started from {starts[0][0]}" if starts else ""), proven
        )

    def core_search(self, encoding: KeyEncoding, seed: int, starts: Sequence[Keys] = ()) -> _core.Brkga:
        """The search in the core, before its first evaluation.

        Args:
            encoding: Of the problem; searches may share one, also at the same time.
            seed: Of all that is drawn.
            starts: Keys that are in the first generation, each ``[genes] float32``.
        """
        proposal = self.proposal or Proposal(self.mutant_beta, self.initial_beta)
        return _core.Brkga(
            encoding.decoder,
            seed,
            encoding.target,
            population=self.population,
            elites=self.elites,
            mutants=self.mutants,
            bias=self.bias,
            populations=self.populations,
            exchange_every=self.exchange_every,
            exchanged=self.exchanged,
            restart_after=self.restart_after,
            threads=self.threads,
            starts=np.array(starts, np.float32).reshape(len(starts), encoding.genes),
            initial=distribution(proposal.initial, encoding.genes, proposal.uniform_share, "initial"),
            mutant=distribution(proposal.mutants, encoding.genes, proposal.uniform_share, "mutants"),
            inherit=inheritance(proposal, encoding.genes),
        )
