"""A training that is killed again and again logs what an uninterrupted one logs."""

import json
import multiprocessing
import os
import signal
from dataclasses import replace

import numpy as np
import pytest

from opgym.agents.metrics import TIMED
from opgym.runs.tracking import make_tracker, read_log
from opgym.runs.train.checkpoints import CheckpointStore, TrainingMonitor

pytest.importorskip("tensorboard")

TRAINING = {"learner": "walk", "seed": 0}
STEPS = 400


def walk(monitor, at_step):
    """Stands for a learner: a random walk, whose state is a position and a generator."""
    rng = np.random.default_rng(0)
    steps, position, since = 0, 0.0, 0
    if monitor.latest is not None:
        state = json.loads((monitor.latest / "state.json").read_text())
        steps, position, since = state["steps"], state["position"], state["since"]
        rng.bit_generator.state = state["generator"]
    while steps < STEPS:
        steps += 10
        position += rng.standard_normal()
        since += 1
        if since == 3 or steps == STEPS:
            monitor.log(
                steps, {"charts/value": position, "losses/td": np.inf, "charts/steps_per_second": os.getpid()}
            )
            since = 0
        at_step(steps)
        state = {"steps": steps, "position": position, "since": since, "generator": rng.bit_generator.state}

        def write(folder, state=state):
            (folder / "state.json").write_text(json.dumps(state))
            at_step(state["steps"] + 0.5)

        monitor.checkpoint(steps, write, last=steps == STEPS)


def train(folder, at_step=lambda steps: None):
    store = CheckpointStore(folder / "checkpoints", TRAINING)
    with make_tracker(["jsonl", "tensorboard"], folder, TRAINING, resumed_from=store.resumed_from) as tracker:
        walk(TrainingMonitor(store, tracker, every_steps=50), at_step)


def killed(folder, when):
    def at_step(steps):
        if steps == when:
            os.kill(os.getpid(), signal.SIGKILL)

    train(folder, at_step)
    os._exit(0)


def logged(folder):
    """Everything of the log but what depends on the clock."""
    return [
        replace(line, seconds=0, metrics={k: v for k, v in line.metrics.items() if k not in TIMED})
        for line in read_log(folder / "metrics.jsonl")
    ]


def scalars(folder):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    accumulator = EventAccumulator(str(folder / "tensorboard"))
    accumulator.Reload()
    return [(event.step, event.value) for event in accumulator.Scalars("charts/value")]


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("uninterrupted")
    train(folder)
    assert [line.steps for line in read_log(folder / "metrics.jsonl")] == [*range(30, 400, 30), 400]
    return folder


@pytest.mark.parametrize(
    "kills",
    [
        (10,), (30,), (120,), (150,), (150.5,), (180,), (400,), (400.5,),
        (60, 60, 90, 90, 120.0, 200.5, 200.5, 360, 400.5),
    ],
)  # fmt: skip
def test_killed_and_gone_on_with_the_log_is_the_same(tmp_path, uninterrupted, kills):
    for when in kills:
        child = multiprocessing.get_context("fork").Process(target=killed, args=(tmp_path, when))
        child.start()
        child.join()
        assert child.exitcode == -signal.SIGKILL
    train(tmp_path)
    assert logged(tmp_path) == logged(uninterrupted)
    assert scalars(tmp_path) == scalars(uninterrupted)
    seconds = [line.seconds for line in read_log(tmp_path / "metrics.jsonl")]
    assert seconds == sorted(seconds)
    assert sorted(os.listdir(tmp_path / "checkpoints")) == sorted(os.listdir(uninterrupted / "checkpoints"))


def test_ctrl_c_and_gone_on_with_the_log_is_the_same(tmp_path, uninterrupted):
    def at_step(steps):
        if steps == 230:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(tmp_path, at_step)
    train(tmp_path)
    assert logged(tmp_path) == logged(uninterrupted)


def test_a_damaged_newest_checkpoint_costs_steps_and_nothing_else(tmp_path, uninterrupted):
    child = multiprocessing.get_context("fork").Process(target=killed, args=(tmp_path, 240))
    child.start()
    child.join()
    (tmp_path / "checkpoints" / "000000000200" / "state.json").write_text("{}")
    resumed = []
    train(tmp_path, resumed.append)
    assert resumed[0] == 160, "after the one at 150"
    assert logged(tmp_path) == logged(uninterrupted)
