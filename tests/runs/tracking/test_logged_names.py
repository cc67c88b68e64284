"""What is explained is logged, and what is logged is explained."""

import pytest

from opgym.agents import make
from opgym.agents.learner import is_learner
from opgym.agents.metrics import NAMES
from opgym.agents.registry import names, solver_class
from opgym.datasets import load
from opgym.graphs import Cluster
from opgym.problems import Objective, PlacementProblem, SchedulingProblem
from opgym.runs.tracking import Tracker, Trackers

#: Options that make a learner learn within a few steps.
_PROPOSALS = {
    "graphs": 3,
    "samples": 2,
    "evaluations_per_run": 20,
    "population": 10,
    "elites": 2,
    "mutants": 2,
}
_PLACERS = (
    "gdp", "gdp-plus", "gdp-plus-100", "gdp-plus-anneal", "gdp-plus-finetune", "hdp", "placeto",
)  # fmt: skip
QUICK = {
    "dqn": {"learning_starts": 16, "batch_size": 8, "num_envs": 2},
    "regal": {**_PROPOSALS, "baseline": "value"},
    "gas": _PROPOSALS,
    "regal-plus": {**_PROPOSALS, "moves": 20, "search_evaluations": 20},
    **{name: {"samples": 4, "validate_every": 4} for name in _PLACERS},
}


class Names(Tracker):
    """Keeps the names of what is logged."""

    def __init__(self):
        self.seen = set()

    def log(self, steps, metrics):
        self.seen |= metrics.keys()

    def summary(self, values):
        """There is none."""

    def close(self):
        """There is nothing to close."""


class Watch:
    """A monitor that hands metrics on, and makes no checkpoint."""

    latest = None

    def __init__(self, tracker):
        self.log = tracker.log

    def checkpoint(self, steps, write, *, last=False):
        """Not in this test."""


def test_learners_log_every_metric_that_is_explained_and_no_other():
    for package in ("sb3_contrib", "safetensors"):
        pytest.importorskip(package)
    problem = PlacementProblem(load("example/two-branch"), Cluster.parse("2xP100"))
    peak = PlacementProblem(problem.graph, problem.cluster, Objective.PEAK_MEMORY)
    tasks = [problem, peak, SchedulingProblem(problem.graph)]  # of each, what is gained is logged apart
    seen = Names()
    learners = [name for name in names(PlacementProblem) if is_learner(solver_class(name))]
    assert {"ppo", "maskable-ppo", "a2c", "dqn", "regal", "gas", "regal-plus", *_PLACERS} <= set(learners)
    for name in learners:
        options = QUICK.get(name, {"n_steps": 16, "num_envs": 2})
        with Trackers([seen]) as tracker:  # refuses what is not explained
            learner = make(name, **options)
            judged = [task for task in tasks if learner.skip_reason(task) is None]
            chosen_by = {"validation": judged} if learner.selects else {}
            learner.fit([problem], steps=64, seed=0, monitor=Watch(tracker), **chosen_by)
    assert seen.seen == NAMES
