"""Trained: one episode by the most likely actions, then episodes that sample."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.policies import BasePolicy

from ...problems import AnyProblem
from ..networks.isolation import isolated
from ..solver import Remark
from .base import SB3Learner
from .building import make_algorithm, make_environment
from .counting import Evaluations, Spending
from .horizon import Horizon
from .vec_env import GymnasiumVecEnv


def play(learner: SB3Learner, problem: AnyProblem, spending: Spending, seed: int) -> Remark:
    """Plays with what was learned until the budget is spent."""
    with isolated(learner.threads, learner.device):
        vector = make_environment(learner, [problem], 1)
        try:
            # The smallest buffers: nothing is learned here.
            policy = make_algorithm(learner, vector, Horizon(), seed, steps=1).policy
            policy.set_training_mode(False)
            rng = np.random.default_rng(seed)
            _play(learner, problem, policy, vector, spending, rng, episodes=1)
            vector.close()
            if not spending.over:
                left = spending.left
                num_envs = learner.num_envs if left is None else min(learner.num_envs, left)
                vector = make_environment(learner, [problem], num_envs)
                vector.seed(seed)
                _play(learner, problem, policy, vector, spending, rng, episodes=None)
        finally:
            vector.close()
    return Remark("played with what it had learned")


def _play(
    learner: SB3Learner,
    problem: AnyProblem,
    policy: BasePolicy,
    vector: GymnasiumVecEnv,
    spending: Spending,
    rng: np.random.Generator,
    episodes: int | None,
) -> None:
    """Plays episodes; ``None``: until the budget is spent, by actions that are sampled; else the most likely ones."""
    evaluations = Evaluations(vector, problem, learner.environment)
    observation = vector.reset()
    going_on = spending.count(evaluations.of_reset())
    ended = 0
    while going_on and (episodes is None or ended < episodes):
        actions = _act(learner, policy, vector, observation, rng, deterministic=episodes is not None)
        observation, _, _, _ = vector.step(actions)
        going_on = spending.count(evaluations.of_step())
        ended += len(vector.ended)


def _act(
    learner: SB3Learner,
    policy: BasePolicy,
    vector: GymnasiumVecEnv,
    observation: Any,
    rng: np.random.Generator,
    *,
    deterministic: bool,
) -> NDArray[Any]:
    masks: dict[str, Any] = {"action_masks": vector.action_masks()} if learner.masked else {}
    actions, _ = policy.predict(observation, deterministic=deterministic, **masks)
    if deterministic or not isinstance(vector.action_space, spaces.Discrete):
        return actions
    return learner.exploring(actions, int(vector.action_space.n), rng)
