"""What every learner on Stable-Baselines3 has in common: options, the two ways to solve, training, files."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from ...errors import InvalidProblemError, unknown_id
from ...problems import AnyProblem, Evaluator, Objective, PlacementProblem, SchedulingProblem
from ..learner import Monitor
from ..networks.learner import NetworkLearner
from ..search.options import MOST_THREADS, at_least, at_most_one, of_type, positive
from ..solver import Remark
from .learned import Learned
from .saved import EpisodeFormat

if TYPE_CHECKING:
    from stable_baselines3.common.base_class import BaseAlgorithm

    from .horizon import Horizon
    from .vec_env import GymnasiumVecEnv

#: What a policy sees, and the name that SB3 has for a policy that does.
POLICIES = {"node": "MlpPolicy", "dict": "MultiInputPolicy"}
#: Most episodes side by side: beyond, a rollout of short vectors alone takes gigabytes.
MOST_ENVS = 2**14


@dataclass(frozen=True)
class SB3Learner(NetworkLearner[AnyProblem, Learned]):
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

    problem_types = (PlacementProblem, SchedulingProblem)
    #: Of placements; the environment judges all of them.
    objectives: ClassVar[frozenset[Objective]] = frozenset(Objective)
    packages = ("torch", "stable_baselines3", "sb3_contrib", "safetensors")
    saved_format = EpisodeFormat()
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
        self._require_packages()
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
        from ..networks.isolation import require_device
        from .building import make_environment

        require_device(self.device)
        # Few slots refuse what many would, but take less memory.
        make_environment(self, problems, min(self.num_envs, len(problems))).close()

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
