"""What every learner on Stable-Baselines3 has in common: options, the two ways to solve, training, files."""

from __future__ import annotations

import copy
import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from ...errors import InvalidProblemError, MissingExtraError, unknown_id
from ...problems import AnyProblem, Evaluator, Objective, PlacementProblem, SchedulingProblem
from ..learner import Learner, Monitor
from ..search.options import MOST_THREADS, at_least, of_type, share
from ..solver import Remark
from .learned import Learned

if TYPE_CHECKING:
    from stable_baselines3.common.base_class import BaseAlgorithm

    from .horizon import Horizon
    from .vec_env import GymnasiumVecEnv

#: What a policy sees, and the name that SB3 has for a policy that does.
POLICIES = {"node": "MlpPolicy", "dict": "MultiInputPolicy"}
#: Most episodes side by side: beyond, a rollout of short vectors alone takes gigabytes.
MOST_ENVS = 2**14
#: Largest seed.
MOST_SEED = 2**31 - 1
_PACKAGES = ("torch", "stable_baselines3", "sb3_contrib", "safetensors")


@dataclass(frozen=True)
class SB3Learner(Learner[AnyProblem, Any]):
    """A learner of Stable-Baselines3; options have the names that they have there.

    Untrained it learns on the problem that it is given: every episode is one evaluation (in the game ``refine`` every
    placement that is judged), and what the best one decided is the solution. Trained, it plays one episode by its
    most likely actions, then episodes that sample them, until the budget is spent.

    Attributes:
        policy: ``"node"``: a network of ``net_arch`` on what is known of the current decision; ``"dict"``: the same
            on features of the whole graph, by messages along its edges.
        environment: Options of the environment, such as ``{"groups": "metis:64"}``.
        num_envs: Episodes that run side by side (no more than a budget has evaluations).
        learning_rate: Step size of the optimizer.
        anneal: Whether it falls to 0 in the course of the training, and the clip range with it.
        gamma: Discount. Rewards of the environments sum to what counts, so it is 1.
        net_arch: Widths of the hidden layers, in the network of the policy and in that of values.
        graph_width: With ``policy="dict"``: numbers per node of the graph.
        graph_rounds: With ``policy="dict"``: rounds of messages.
        evaluations: Evaluations of ``solve`` where the budget states no limit.
        samples: The same for a trained one.
        threads: Of torch; more than one may give other last bits on other machines.
        device: Of torch.
    """

    policy: str = "node"
    environment: Mapping[str, Any] = field(default_factory=dict, hash=False)
    num_envs: int = 8
    learning_rate: float = 3e-4
    anneal: bool = False
    gamma: float = 1.0
    net_arch: tuple[int, ...] = (64, 64)
    graph_width: int = 64
    graph_rounds: int = 2
    evaluations: int = 1_000
    samples: int = 16
    threads: int = 1
    device: str = "cpu"
    learned: Learned | None = field(default=None, init=False, repr=False)

    problem_types = (PlacementProblem, SchedulingProblem)
    #: Of placements; the environment judges all of them.
    objectives: ClassVar[frozenset[Objective]] = frozenset(Objective)
    anytime: ClassVar[bool] = True
    #: Whether it knows which actions are legal.
    masked: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.policy not in POLICIES:
            raise unknown_id("policy", str(self.policy), list(POLICIES))
        of_type(Mapping, "options of the environment by name", environment=self.environment)
        for option in self.environment:
            of_type(str, "options of the environment by name", **{"an option of environment": option})
        object.__setattr__(self, "environment", {k: _plain(k, v) for k, v in self.environment.items()})
        if self.environment:
            from .environments import check_options

            check_options(self.environment)
        widths = self.net_arch if isinstance(self.net_arch, list | tuple) else [self.net_arch]
        object.__setattr__(self, "net_arch", tuple(widths))
        for width in widths:
            at_least(1, net_arch=width)
        at_least(
            1, graph_width=self.graph_width, graph_rounds=self.graph_rounds, evaluations=self.evaluations,
            samples=self.samples,
        )  # fmt: skip
        at_least(1, num_envs=self.num_envs, most=MOST_ENVS)
        at_least(1, threads=self.threads, most=MOST_THREADS)
        positive(learning_rate=self.learning_rate)
        at_most_one(gamma=self.gamma)
        of_type(bool, "true or false", anneal=self.anneal)
        of_type(str, "a device of torch, such as 'cpu' or 'cuda'", device=self.device)

    # --- using it

    @property
    def trained(self) -> bool:
        """Whether there is something learned to use."""
        return self.learned is not None

    @property
    def trained_on(self) -> frozenset[str]:
        """Fingerprints of the graphs that were learned from."""
        trainings = () if self.learned is None else self.learned.trainings
        return frozenset(problem.fingerprint for training in trainings for problem in training.problems)

    def skip_reason(self, problem: AnyProblem) -> str | None:
        """Why this learner should not be tried on a problem, or ``None``."""
        reason = super().skip_reason(problem)
        if reason is None and self.learned is not None:
            from .environments import environment_id

            played = environment_id(problem)
            if played != self.learned.environment:
                reason = f"was trained on {self.learned.environment}, and this is a problem of {played}"
        return reason

    def _search(self, problem: AnyProblem, evaluator: Evaluator[Any], rng: np.random.Generator) -> Remark:
        require_packages(self.name)
        from .counting import Spending
        from .playing import play
        from .searching import search

        seed = int(rng.integers(2**31))
        if self.learned is None:
            return search(self, problem, Spending(evaluator, self.evaluations), seed)
        return play(self, problem, Spending(evaluator, self.samples), seed)

    # --- learning

    def fit(
        self, problems: Sequence[AnyProblem], *, steps: int, seed: int = 0, monitor: Monitor | None = None
    ) -> Self:
        """Trains on problems; see :meth:`opgym.agents.learner.Learner.fit`.

        The last rollout is taken to its end, so some steps more than ``steps`` may be taken. A trained learner goes on
        from its weights.

        Raises:
            InvalidProblemError: No problem, no step, or problems that do not share observations and actions.
        """
        self._require_fitting(problems, seed)
        at_least(1, steps=steps)
        from .fitting import fit

        return self.with_learned(fit(self, list(problems), steps, seed, monitor))

    def check(self, problems: Sequence[AnyProblem], *, seed: int = 0) -> None:
        """Refuses at once what :meth:`fit` would refuse; see :meth:`opgym.agents.learner.Learner.check`.

        Raises:
            InvalidProblemError: No problem, problems that do not share observations and actions, a seed that is too
                large, a device that torch cannot use here.
            UnknownIdError: An option of the environment that there is not.
        """
        self._require_fitting(problems, seed)
        from .building import make_environment
        from .isolation import require_device

        require_device(self.device)
        # Few slots refuse what many would, but take less memory.
        make_environment(self, problems, min(self.num_envs, len(problems))).close()

    def _require_fitting(self, problems: Sequence[AnyProblem], seed: int) -> None:
        require_packages(self.name)
        if not problems:
            raise InvalidProblemError(f"learner {self.name!r} needs at least one problem to train on")
        at_least(0, seed=seed, most=MOST_SEED)
        for problem in problems:
            reason = self.skip_reason(problem)
            if reason is not None:
                raise InvalidProblemError(f"learner {self.name!r}: {reason}")

    def with_learned(self, learned: Learned | None) -> Self:
        """The same learner with other weights."""
        other = copy.copy(self)
        object.__setattr__(other, "learned", learned)
        return other

    # --- files

    def save(self, folder: Path) -> None:
        """Writes ``weights.safetensors`` and ``agent.json`` into a new folder.

        Raises:
            OpgymError: There is nothing learned, or the folder holds something already.
        """
        require_packages(self.name)
        from .saved import save

        save(self, Path(folder))

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Reads what :meth:`save` wrote.

        Raises:
            OpgymError: It is damaged, of another agent, or of another version.
        """
        require_packages(cls.name)
        from .saved import load

        return load(cls, Path(folder))

    # --- for subclasses

    @abstractmethod
    def algorithm(
        self, vector: GymnasiumVecEnv, horizon: Horizon, seed: int, steps: int | None, **common: Any
    ) -> BaseAlgorithm:
        """Makes SB3's algorithm.

        Args:
            vector: What it plays.
            horizon: What falls in the course of the training falls by it.
            seed: Of all randomness.
            steps: Steps that it will take; ``None``: not known. Buffers need not be larger.
            **common: Arguments that all algorithms have.
        """

    @abstractmethod
    def held_observations(self, num_envs: int) -> tuple[int, int]:
        """Observations that its buffer holds, and how often it holds each."""

    def exploring(
        self, actions: np.ndarray[Any, Any], num_actions: int, rng: np.random.Generator
    ) -> np.ndarray[Any, Any]:
        """What a trained policy does instead of the actions that it gives when it is to sample; the same by default."""
        return actions

    def losses(self, recorded: Mapping[str, Any]) -> dict[str, float]:
        """What the last update says, by the names of :mod:`opgym.agents.metrics`, from SB3's names."""
        return {}


def positive(**options: float) -> None:
    """Refuses what is no finite number above 0."""
    share(**options)
    for name, value in options.items():
        if value <= 0:
            raise InvalidProblemError(f"{name} = {value!r}; expected more than 0")


def at_most_one(**options: float) -> None:
    """Refuses what is not in 0 .. 1."""
    share(**options)
    for name, value in options.items():
        if value > 1:
            raise InvalidProblemError(f"{name} = {value!r}; expected 0 to 1")


def require_packages(name: str) -> None:
    """Refuses to go on without what extra ``train`` brings.

    Raises:
        MissingExtraError: With the name of the package.
    """
    missing = [package for package in _PACKAGES if find_spec(package) is None]
    if missing:
        raise MissingExtraError(
            f"agent {name!r} needs {', '.join(missing)}, which is not installed; run: pip install 'opgym[train]'"
        )


def _plain(name: str, value: Any) -> Any:
    """An option of an environment as a file can hold it; lists and arrays become tuples."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return tuple(_plain(name, item) for item in value)
    plain = value is None or isinstance(value, str | bool | int | float)
    if not plain or (isinstance(value, float) and not math.isfinite(value)):
        raise InvalidProblemError(
            f"environment option {name} = {value!r:.60}; expected text, numbers or lists of them"
        )
    return value
