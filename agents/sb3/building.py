"""A learner's algorithm, in its environment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.logger import Logger

from ...errors import InvalidProblemError
from ...problems import AnyProblem
from ..networks.weights import put_weights
from .base import POLICIES, SB3Learner
from .environments import make_vector, warn_of_large_buffer
from .horizon import Horizon
from .learned import Learned
from .vec_env import GymnasiumVecEnv

if TYPE_CHECKING:
    from stable_baselines3.common.policies import BasePolicy


def make_environment(learner: SB3Learner, problems: Sequence[AnyProblem], num_envs: int) -> GymnasiumVecEnv:
    """The environment of a learner, about problems."""
    return GymnasiumVecEnv(make_vector(problems, learner.policy, learner.environment, num_envs))


def make_algorithm(
    learner: SB3Learner, vector: GymnasiumVecEnv, horizon: Horizon, seed: int, steps: int | None
) -> BaseAlgorithm:
    """SB3's algorithm with a learner's options, and its weights if it has learned any.

    Args:
        learner: The learner.
        vector: What it plays.
        horizon: What falls in the course of the training falls by it.
        seed: Of all randomness.
        steps: Steps that it will take; ``None``: not known.

    Raises:
        InvalidProblemError: The weights do not fit what the environment shows and asks.
    """
    held, copies = learner.held_observations(vector.num_envs)
    if steps is not None:
        held = min(held, max(steps, vector.num_envs))
    warn_of_large_buffer(
        vector.observation_space, held, copies,
        "use coarser groups such as environment={'groups': 'metis:64'}, policy='node', or fewer steps or environments",
    )  # fmt: skip
    rate = horizon.falling if learner.anneal else horizon.constant
    network: dict[str, Any] = {"net_arch": list(learner.net_arch)}
    if learner.policy == "dict":
        network |= _graph_features(learner, vector)
    algorithm = learner.algorithm(
        vector, horizon, seed, steps, policy=POLICIES[learner.policy], gamma=learner.gamma,
        learning_rate=rate(learner.learning_rate), policy_kwargs=network, device=learner.device, verbose=0,
    )  # fmt: skip
    algorithm.set_logger(Logger(folder=None, output_formats=[]))
    if learner.learned is not None:
        _put(algorithm.policy, learner.learned)
    return algorithm


def _graph_features(learner: SB3Learner, vector: GymnasiumVecEnv) -> dict[str, Any]:
    from .graph_extractor import graph_extractor

    # Copies: torch wants to be able to write.
    static = {key: array.copy() for key, array in getattr(vector.vector, "static", {}).items()} or None
    return {
        "features_extractor_class": graph_extractor(vector.observation_space),
        "features_extractor_kwargs": {
            "static": static, "width": learner.graph_width, "rounds": learner.graph_rounds,
        },
    }  # fmt: skip


def _put(policy: BasePolicy, learned: Learned) -> None:
    own = policy.state_dict()
    for name in sorted(own.keys() | learned.weights.keys()):
        here = tuple(own[name].shape) if name in own else None
        there = tuple(learned.weights[name].shape) if name in learned.weights else None
        if here != there:
            raise InvalidProblemError(
                f"the weights were learned on other observations or actions: {name} is {_shape(there)}, and needs to "
                f"be {_shape(here)} for this problem; it needs as many devices (or slots) as in the training"
            )
    put_weights(policy, learned.weights)


def _shape(shape: tuple[int, ...] | None) -> str:
    return "absent" if shape is None else f"[{', '.join(map(str, shape))}]"
