"""Training with a monitor that logs and keeps checkpoints."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

from stable_baselines3.common.callbacks import BaseCallback

from ...problems import AnyProblem
from .. import metrics
from ..learner import Monitor
from ..networks.checkpoints import read_checkpoint, write_checkpoint
from ..networks.isolation import isolated
from ..networks.options import options_of
from ..networks.weights import weights_of
from .base import SB3Learner
from .building import make_algorithm, make_environment
from .horizon import Horizon
from .learned import Learned, ProblemRecord, TrainingRecord
from .progress import EpisodeLog
from .state import put_state, state_of
from .vec_env import GymnasiumVecEnv

#: Fewest steps between two lines of the log: some learners update after every step.
LOG_STEPS = 1_000
#: Version of checkpoints.
_FORMAT = "opgym.training/1"


def fit(
    learner: SB3Learner, problems: Sequence[AnyProblem], steps: int, seed: int, monitor: Monitor | None
) -> Learned:
    """Trains a learner; see its ``fit``."""
    records = [ProblemRecord.of(problem) for problem in problems]
    with isolated(learner.threads, learner.device):
        vector = make_environment(learner, problems, learner.num_envs)
        try:
            horizon = Horizon()
            algorithm = make_algorithm(learner, vector, horizon, seed, steps)
            horizon.share_left = lambda: max(0.0, 1.0 - algorithm.num_timesteps / steps)
            identity = {
                "format": _FORMAT, "agent": learner.name, "options": options_of(learner), "steps": steps,
                "seed": seed, "problems": [asdict(record) for record in records],
                "started_from": None if learner.learned is None else learner.learned.digest,
            }  # fmt: skip
            training = _Training(learner, EpisodeLog(problems), identity, monitor)
            training.init_callback(algorithm)
            latest = None if monitor is None else monitor.latest
            if latest is not None:
                training.resume(latest)
            left = steps - algorithm.num_timesteps
            if left > 0:
                algorithm.learn(
                    left, callback=training, log_interval=None, reset_num_timesteps=latest is None  # type: ignore[arg-type]
                )  # fmt: skip
            weights, taken = weights_of(algorithm.policy), algorithm.num_timesteps
        finally:
            vector.close()
    record = TrainingRecord(tuple(records), taken, seed, version("opgym"))
    earlier = () if learner.learned is None else learner.learned.trainings
    from .environments import environment_id

    return Learned(weights, (*earlier, record), environment_id(problems[0]))


class _Training(BaseCallback):
    """Tells the monitor what happens, between updates."""

    def __init__(
        self, learner: SB3Learner, episodes: EpisodeLog, identity: Mapping[str, Any], monitor: Monitor | None
    ) -> None:
        super().__init__()
        self._learner = learner
        self._episodes = episodes
        self._identity = identity
        self._monitor = monitor
        self._told_steps = self._line_steps = 0
        self._line_began = time.perf_counter()
        self._line_environment_s = 0.0

    @property
    def _vector(self) -> GymnasiumVecEnv:
        assert isinstance(self.training_env, GymnasiumVecEnv)
        return self.training_env

    def resume(self, folder: Path) -> None:
        """Goes on from a checkpoint.

        Raises:
            OpgymError: It is damaged, or of another training.
        """
        tree = read_checkpoint(folder, self._identity)
        put_state(self.model, self._vector, self._learner.device, tree["state"])
        self._episodes.restore(tree["episodes"])
        self._told_steps, self._line_steps = self.model.num_timesteps, tree["line_steps"]

    def _on_step(self) -> bool:
        for slot, info in self._vector.ended:
            self._episodes.add(slot, info)
        return True

    def _on_training_start(self) -> None:
        self._line_began = time.perf_counter()

    def _on_rollout_start(self) -> None:  # the update before it is complete
        self._tell(last=False)

    def _on_training_end(self) -> None:
        self._tell(last=True)

    def _tell(self, *, last: bool) -> None:
        steps = self.model.num_timesteps
        if self._monitor is None or steps == self._told_steps:
            return
        self._told_steps = steps
        if last or steps - self._line_steps >= LOG_STEPS:
            self._monitor.log(steps, self._line(steps))
        self._monitor.checkpoint(steps, self._write, last=last)

    def _line(self, steps: int) -> dict[str, float]:
        now, environment_s = time.perf_counter(), self._vector.seconds
        seconds = max(now - self._line_began, 1e-9)
        line = {
            **self._episodes.line(),
            **self._learner.losses(self.model.logger.name_to_value),
            metrics.UPDATES.name: float(self._gradient_steps()),
            metrics.STEPS_PER_SECOND.name: (steps - self._line_steps) / seconds,
            metrics.ENVIRONMENT_SHARE.name: (environment_s - self._line_environment_s) / seconds,
        }
        self._line_steps, self._line_began, self._line_environment_s = steps, now, environment_s
        return line

    def _gradient_steps(self) -> int:
        optimizer = self.model.policy.optimizer
        return max((int(state["step"]) for state in optimizer.state.values()), default=0)

    def _write(self, folder: Path) -> None:
        content = {
            "state": state_of(self.model, self._vector, self._learner.device),
            "episodes": self._episodes.state(),
            "line_steps": self._line_steps,
        }
        write_checkpoint(folder, self._identity, content)
