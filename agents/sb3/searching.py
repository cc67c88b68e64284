"""Untrained: learning on one problem, within a budget of evaluations."""

from __future__ import annotations

from sys import maxsize

from stable_baselines3.common.callbacks import BaseCallback

from ...problems import AnyProblem
from ..networks.isolation import isolated
from ..solver import Remark
from .base import SB3Learner
from .building import make_algorithm, make_environment
from .counting import Evaluations, Spending
from .horizon import Horizon


class _Count(BaseCallback):
    """Counts what every step evaluated, and stops with the budget."""

    def __init__(self, evaluations: Evaluations, spending: Spending) -> None:
        super().__init__()
        self._evaluations = evaluations
        self._spending = spending

    def _on_training_start(self) -> None:
        self._spending.count(self._evaluations.of_reset())

    def _on_step(self) -> bool:
        return not self._spending.over and self._spending.count(self._evaluations.of_step())


def search(learner: SB3Learner, problem: AnyProblem, spending: Spending, seed: int) -> Remark:
    """Learns on a problem until the budget is spent.

    Episodes that run when it ends are not counted and not used; with no more environments than evaluations they are
    fewer than those that count.
    """
    left = spending.left
    num_envs = learner.num_envs if left is None else min(learner.num_envs, left)
    with isolated(learner.threads, learner.device):
        vector = make_environment(learner, [problem], num_envs)
        try:
            horizon = Horizon(lambda: spending.share_left)
            algorithm = make_algorithm(learner, vector, horizon, seed, steps=None)
            count = _Count(Evaluations(vector, problem, learner.environment), spending)
            algorithm.learn(maxsize, callback=count, log_interval=None)  # type: ignore[arg-type]
            return Remark(
                f"learned from {algorithm.num_timesteps:,} steps in {algorithm._n_updates:,} updates"
            )
        finally:
            vector.close()
