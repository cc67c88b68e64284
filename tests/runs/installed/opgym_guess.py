"""A learner of another package, without any network: it guesses devices, and can be told to crash or to die."""

import json
import os
import signal
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from opgym.agents.learner import Learner
from opgym.problems import Order, Placement, PlacementProblem, SchedulingProblem

#: Steps between two updates.
UPDATE = 10


@dataclass(frozen=True)
class Guess(Learner):
    """Keeps the best of random placements.

    Attributes:
        pause_s: Seconds that each update takes.
        fail_at: Raises an error after so many steps.
        die_at: Kills its own process after so many steps.
        once: File that is there once it has failed or died, and then it does not again.
    """

    name = "guess"
    summary = "guesses"
    problem_types = (PlacementProblem, SchedulingProblem)

    pause_s: float = 0.0
    fail_at: int | None = None
    die_at: int | None = None
    once: str | None = None
    guess: int | None = field(default=None, init=False)

    @property
    def trained(self):
        return self.guess is not None

    def fit(self, problems, *, steps, seed=0, monitor=None):
        rng, done, best = np.random.default_rng(seed), 0, (np.inf, 0)
        if monitor is not None and monitor.latest is not None:
            state = json.loads((monitor.latest / "state.json").read_text())
            done, best = state["done"], tuple(state["best"])
            rng.bit_generator.state = state["rng"]
        while done < steps:
            time.sleep(self.pause_s)
            guess = int(rng.integers(2**31))
            value = float(np.mean([self._play(problem, guess).value for problem in problems]))
            best = min(best, (value, guess))
            done += UPDATE
            self._misbehave(done)
            if monitor is not None:
                monitor.log(done, {"custom/guess": guess, "charts/best_value": best[0]})
                state = {"done": done, "best": best, "rng": rng.bit_generator.state}
                monitor.checkpoint(
                    done, lambda folder, s=state: _write(folder / "state.json", s), last=done >= steps
                )
        return self._with(best[1])

    def _with(self, guess):
        trained = replace(self)
        object.__setattr__(trained, "guess", guess)
        return trained

    def _misbehave(self, done):
        if done not in (self.fail_at, self.die_at) or (self.once and Path(self.once).exists()):
            return
        if self.once:
            Path(self.once).touch()
        if done == self.die_at:
            os.kill(os.getpid(), signal.SIGKILL)
        raise RuntimeError(f"told to fail after {done} steps")

    def _solution(self, problem, guess):
        if isinstance(problem, SchedulingProblem):
            return Order(problem.ops)
        return Placement(
            np.random.default_rng(guess).integers(len(problem.cluster), size=problem.graph.num_ops)
        )

    def _play(self, problem, guess):
        return problem.evaluate(self._solution(problem, guess))

    def _search(self, problem, evaluator, rng):
        evaluator.evaluate(self._solution(problem, self.guess or 0))

    def save(self, folder):
        _write(folder / "agent.json", {"agent": self.name, "guess": self.guess})

    @classmethod
    def load(cls, folder):
        return cls()._with(json.loads((folder / "agent.json").read_text())["guess"])


def _write(path, document):
    path.write_text(json.dumps(document))
