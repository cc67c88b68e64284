"""What every learned placer has in common as a solver: options, training, use, files."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ....problems import Evaluator, PlacementProblem
from ...learner import Monitor
from ...search.options import at_least, of_type, positive, share
from ...solver import Remark
from ..options import identity_of
from ..shelf import ShelvedLearner
from .learned import LearnedPlacer, PlacerRecord, fingerprint_of
from .saved import PlacerFormat

#: Options that say how to solve, or where; no training depends on them.
_OUTSIDE = ("evaluations", "finetune", "device")
_MOST = 2**20
_FORMAT = "opgym.training.placer/1"


@dataclass(frozen=True)
class PlacementLearner(ShelvedLearner[PlacementProblem, LearnedPlacer]):
    """A learner that places ops itself: a network says on which device, evaluations say how good that is.

    Untrained, it learns on the problem that it is given until the budget is spent, and the best placement that it
    has tried is the result. Trained, its most likely placement is the result, from one look at the graph; with
    ``finetune`` it goes on learning on the problem. ``fit`` learns on many problems in turn; a step is a placement that
    is tried.

    Attributes:
        evaluations: Evaluations where the budget states no limit.
        finetune: Trained, most updates on the problem that it is given; 0: its most likely placement alone.
        samples: Placements tried in an update.
        learning_rate: Step size of the optimizer.
        anneal: Whether the step size falls to 0 in the course of ``fit``.
        entropy: Weight of the entropy of decisions, in what is maximised.
        validate_every: Updates between two looks at the validation problems.
        device: Of torch: ``"cpu"``, ``"cuda"``.
    """

    evaluations: int = 5_000
    finetune: int = 0
    samples: int = 8
    learning_rate: float = 1e-3
    anneal: bool = True
    entropy: float = 3e-4
    validate_every: int = 50
    device: str = "cpu"

    problem_types: ClassVar[tuple[type[Any], ...]] = (PlacementProblem,)
    packages = ("torch", "safetensors")
    saved_format = PlacerFormat()
    selects: ClassVar[bool] = True
    #: The dataclass that says the shape of a policy; its field ``devices`` is the most devices it can choose among.
    network_type: ClassVar[type[Any]]

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(1, evaluations=self.evaluations)
        at_least(0, most=_MOST, finetune=self.finetune)
        at_least(1, most=_MOST, samples=self.samples, validate_every=self.validate_every)
        positive(learning_rate=self.learning_rate)
        share(entropy=self.entropy)
        of_type(bool, "true or false", anneal=self.anneal)
        of_type(str, "'cpu', 'cuda', 'cuda:1'", device=self.device)
        self.network(())  # refuses wrong options

    # --- what subclasses give

    @abstractmethod
    def network(self, problems: Sequence[PlacementProblem]) -> Any:
        """Shape of a new policy for problems."""

    @abstractmethod
    def placer(self, policy: Any, network: Any) -> Any:
        """A :class:`~.placer.Placer`.

        Args:
            policy: Its policy.
            network: Shape of the policy.
        """

    # --- using it

    def finetuned(self) -> Self:
        """The same learner, which goes on learning on a problem until the budget is spent, trained or not."""
        return replace(self, finetune=_MOST).with_learned(self.learned)

    def skip_reason(self, problem: PlacementProblem) -> str | None:
        """Why not to try it: another type of problem, or more devices than its policy can choose among."""
        reason = super().skip_reason(problem)
        if reason is not None:
            return reason
        known = self._known()
        most = (self.network(()) if known is None else known.network).devices
        if len(problem.cluster) > most:
            return f"chooses among at most {most} devices, and this cluster has {len(problem.cluster)}"
        return None

    def _search(
        self, problem: PlacementProblem, evaluator: Evaluator[Any], rng: np.random.Generator
    ) -> Remark:
        self._require_packages()
        from ..isolation import isolated
        from .solving import solve

        known = self._known()
        network = self.network([problem]) if known is None else known.network
        seed = int(rng.integers(2**31))
        with isolated(1, self.device):
            placer = self._placer(network, None if known is None else known.weights, seed)
            if known is None:
                return solve(placer, problem, evaluator, rng, self.evaluations, None)
            return self._search_with(placer, problem, evaluator, rng)

    def _search_with(
        self, placer: Any, problem: PlacementProblem, evaluator: Evaluator[Any], rng: np.random.Generator
    ) -> Remark:
        """Solves a problem with a placer that is trained."""
        from .solving import solve

        return solve(placer, problem, evaluator, rng, self.evaluations, self.finetune)

    # --- learning

    def fit(
        self,
        problems: Sequence[PlacementProblem],
        *,
        steps: int,
        seed: int = 0,
        monitor: Monitor | None = None,
        validation: Sequence[PlacementProblem] = (),
    ) -> Self:
        """Trains on problems; see :meth:`opgym.agents.learner.Learner.fit`.

        The last update is taken to its end. A learner that was trained or loaded goes on from its weights; weights
        that come with the package are no beginning.

        Args:
            problems: What to learn from.
            steps: Placements to try.
            seed: Of all randomness: the same seed gives the same weights.
            monitor: Watches; with a checkpoint of the same training it goes on from there.
            validation: What weights are chosen by: of all that were looked at, those whose most likely placements are
                best. Without, the last weights are taken.

        Raises:
            InvalidProblemError: No problem, no step, or a problem that it cannot place.
        """
        self.check(problems, seed=seed, validation=validation)
        at_least(1, steps=steps)
        from ..isolation import isolated
        from .training import PlacerTraining

        before = self.learned
        network = before.network if before else self.network(problems)
        identity = identity_of(
            _FORMAT, self, network, _OUTSIDE, steps=steps, seed=seed, problems=fingerprint_of(problems),
            validation=fingerprint_of(validation),
        )  # fmt: skip
        with isolated(1, self.device):
            placer = self._placer(network, before.weights if before else None, seed)
            training = PlacerTraining(
                placer, problems, validation, steps=steps, validate_every=self.validate_every, anneal=self.anneal,
                seed=seed,
            )  # fmt: skip
            training.run(identity, monitor)
            weights, gain = training.result
        graphs = tuple(sorted({problem.graph.fingerprint for problem in problems}))
        record = PlacerRecord(len(problems), graphs, training.steps, seed, version("opgym"), gain)
        trainings = (*(before.trainings if before else ()), record)
        return self.with_learned(LearnedPlacer(weights, trainings, network))

    def check(
        self,
        problems: Sequence[PlacementProblem],
        *,
        seed: int = 0,
        validation: Sequence[PlacementProblem] = (),
    ) -> None:
        """Refuses at once what :meth:`fit` would refuse; see :meth:`opgym.agents.learner.Learner.check`.

        Raises:
            InvalidProblemError: No problem, one that it cannot place, or a seed that is too large.
            MissingExtraError: Something that training needs is not installed.
        """
        self._require_fitting(problems, seed, validation)

    def _placer(self, network: Any, weights: Mapping[str, NDArray[Any]] | None, seed: int) -> Any:
        """A placer with these weights; ``None``: with random ones."""
        policy = self.policy_type()
        return self.placer(
            policy.untrained(network, seed) if weights is None else policy.of(network, weights), network
        )
