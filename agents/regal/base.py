"""What every learner of proposals has in common: options, training, files."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ...problems import AnyProblem, Evaluator
from ..learner import Monitor
from ..networks.shelf import Shelf, ShelvedLearner
from ..search.keys import Brkga
from ..search.options import at_least, of_type, positive
from ..solver import Remark
from .learned import Learned, TrainingRecord
from .saved import ProposalFormat
from .task import Task, skip_reason

#: Weights that come with the package.
SHELF = Shelf(Path(__file__).with_name("weights"))
#: Most proposals at a time, and most updates between two looks at the validation problems.
_MOST = 2**20


@dataclass(frozen=True)
class ProposalLearner(ShelvedLearner[AnyProblem, Learned]):
    """A learner of proposals for BRKGA, one policy for peak memory and step time on one and on two devices.

    Trained, it looks at the graph once, which costs no evaluation, and runs BRKGA with what it proposes.

    Attributes:
        evaluations: Evaluations where the budget states no limit.
        evaluations_per_run: In training, of each run of BRKGA.
        width: Numbers per op in the network.
        initial: Whether proposals are for the first generation.
        graphs: In training, graphs of an update.
        samples: Drawn for each graph of an update.
        learning_rate: Step size of the optimizer.
        validate_every: Updates between two looks at the validation problems.
        starts: Solvers whose solutions are in the first generation of BRKGA.
        population: As of ``brkga``.
        elites: As of ``brkga``.
        mutants: As of ``brkga``.
        bias: As of ``brkga``.
        groups: As of ``brkga``.
        transfer_keys: As of ``brkga``.
        threads: Runs at a time; when solving as of ``brkga``. No result depends on it.
    """

    evaluations: int = 5_000
    evaluations_per_run: int = 5_000
    width: int = 64
    initial: bool = False
    graphs: int = 16
    samples: int = 8
    learning_rate: float = 1e-3
    validate_every: int = 50
    starts: tuple[str, ...] = ()
    population: int = Brkga.population
    elites: int = Brkga.elites
    mutants: int = Brkga.mutants
    bias: float = Brkga.bias
    groups: str | None = None
    transfer_keys: bool = True
    threads: int = 1

    problem_types = Brkga.problem_types
    objectives = Brkga.objectives
    packages = ("torch", "safetensors")
    saved_format = ProposalFormat()
    shelf = SHELF
    selects: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(1, evaluations=self.evaluations, evaluations_per_run=self.evaluations_per_run)
        at_least(1, most=_MOST, graphs=self.graphs, samples=self.samples, validate_every=self.validate_every)
        positive(learning_rate=self.learning_rate)
        of_type(bool, "true or false", initial=self.initial)
        if isinstance(self.starts, list):  # as files have it
            object.__setattr__(self, "starts", tuple(self.starts))
        self.brkga()  # refuses wrong options
        self.network()

    # --- using it

    def skip_reason(self, problem: AnyProblem) -> str | None:
        """Why not to try it: another objective, more than two devices, or a task that it was not trained for."""
        reason = self._unfit(problem)
        known = self._known()
        if reason is None and known is not None and Task.of(problem) not in known.tasks:
            tasks = ", ".join(map(str, known.tasks))
            reason = f"was trained for {tasks}, and this is {Task.of(problem)}"
        return reason

    def _search(self, problem: AnyProblem, evaluator: Evaluator[Any], rng: np.random.Generator) -> Remark:
        self._require_packages()
        known = self._known()
        if known is None:
            return self.solve_untrained(problem, evaluator, rng)
        return self.solve_trained(known, problem, evaluator, rng)

    def _unfit(self, problem: AnyProblem) -> str | None:
        return super().skip_reason(problem) or skip_reason(problem)

    # --- learning

    def fit(
        self,
        problems: Sequence[AnyProblem],
        *,
        steps: int,
        seed: int = 0,
        monitor: Monitor | None = None,
        validation: Sequence[AnyProblem] = (),
    ) -> Self:
        """Trains on problems; see :meth:`opgym.agents.learner.Learner.fit`.

        The last update is taken to its end. A learner that was trained or loaded goes on from its weights; weights
        that come with the package are no beginning.

        Args:
            problems: What to learn from.
            steps: Proposals to try, or searches to make.
            seed: Of all randomness: the same seed gives the same weights.
            monitor: Watches; with a checkpoint of the same training it goes on from there.
            validation: What weights are chosen by: of all that were looked at, those that gain most. Without, the
                last weights are taken.

        Raises:
            InvalidProblemError: No problem, no step, or a problem that it has no proposals for.
        """
        self.check(problems, seed=seed, validation=validation)
        at_least(1, steps=steps)
        weights, taken, gain = self.train(problems, validation, steps, seed, monitor)
        counts: dict[str, int] = {}
        for problem in problems:
            task = str(Task.of(problem))
            counts[task] = counts.get(task, 0) + 1
        graphs = tuple(sorted({problem.graph.fingerprint for problem in problems}))
        record = TrainingRecord(counts, graphs, taken, seed, version("opgym"), gain)
        before = self.learned
        tasks = {Task.of(problem) for problem in problems} | set(before.tasks if before else ())
        trainings = (*(before.trainings if before else ()), record)
        network = before.network if before else self.network()
        return self.with_learned(Learned(weights, trainings, network, self.initial, tuple(sorted(tasks))))

    def check(
        self, problems: Sequence[AnyProblem], *, seed: int = 0, validation: Sequence[AnyProblem] = ()
    ) -> None:
        """Refuses at once what :meth:`fit` would refuse; see :meth:`opgym.agents.learner.Learner.check`.

        Raises:
            InvalidProblemError: No problem, one that it has no proposals for, or a seed that is too large.
            MissingExtraError: Something that training needs is not installed.
        """
        self._require_fitting(problems, seed, validation)

    # --- what subclasses give

    #: The dataclass that says the shape of a policy.
    network_type: ClassVar[type[Any]]

    @abstractmethod
    def network(self) -> Any:
        """Shape of a new policy."""

    @abstractmethod
    def solve_trained(
        self, learned: Learned, problem: AnyProblem, evaluator: Evaluator[Any], rng: np.random.Generator
    ) -> Remark:
        """One forward pass, then one run of BRKGA."""

    @abstractmethod
    def solve_untrained(
        self, problem: AnyProblem, evaluator: Evaluator[Any], rng: np.random.Generator
    ) -> Remark:
        """Does without anything learned."""

    @abstractmethod
    def train(
        self,
        problems: Sequence[AnyProblem],
        validation: Sequence[AnyProblem],
        steps: int,
        seed: int,
        monitor: Monitor | None,
    ) -> tuple[Mapping[str, NDArray[Any]], int, float | None]:
        """Trains; see :meth:`fit`.

        Returns:
            Weights, the steps that were made, and the gain on the validation problems, if there are any.
        """

    # --- for the modules beside this one

    def brkga(self) -> Brkga:
        """Settings of the runs."""
        return Brkga(
            evaluations=self.evaluations,
            starts=self.starts,
            population=self.population,
            elites=self.elites,
            mutants=self.mutants,
            bias=self.bias,
            groups=self.groups,
            transfer_keys=self.transfer_keys,
            threads=self.threads,
        )
