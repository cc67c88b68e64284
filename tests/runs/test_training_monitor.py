"""When a training makes a checkpoint, and what of its metrics is on the disk by then."""

import pytest

from opgym.runs.tracking import Tracker
from opgym.runs.train.checkpoints import CheckpointStore, TrainingMonitor

from .test_checkpoints import TRAINING, names, write_state


class Recorder(Tracker):
    def __init__(self):
        self.heard = []

    def log(self, steps, metrics):
        self.heard.append((steps, dict(metrics)))

    def summary(self, values):
        raise AssertionError("of the run, not of the monitor")

    def sync(self):
        self.heard.append("sync")

    def close(self):
        raise AssertionError("of the run, not of the monitor")


def run(monitor, steps, **options):
    for at in steps:
        monitor.checkpoint(at, write_state(at), **options)


def kept(folder):
    return [int(name) for name in names(folder)] if folder.exists() else []


def test_a_checkpoint_is_due_when_a_multiple_of_the_steps_is_passed(tmp_path):
    monitor = TrainingMonitor(CheckpointStore(tmp_path, TRAINING, keep=99), Recorder(), every_steps=100)
    assert monitor.latest is None
    run(monitor, range(30, 500, 30))
    assert kept(tmp_path) == [120, 210, 300, 420]
    assert monitor.latest == tmp_path / "000000000420"
    again = TrainingMonitor(CheckpointStore(tmp_path, TRAINING, keep=99), Recorder(), every_steps=100)
    run(again, range(450, 700, 30))
    assert kept(tmp_path) == [120, 210, 300, 420, 510, 600], "at the same steps as without the interruption"


def test_a_checkpoint_is_due_after_minutes_whatever_the_steps(tmp_path):
    now = 1_000.0
    monitor = TrainingMonitor(
        CheckpointStore(tmp_path, TRAINING, keep=99), Recorder(), every_minutes=0.5, clock=lambda: now
    )
    for steps in range(1, 10):
        now += 12
        monitor.checkpoint(steps, write_state(steps))
    assert kept(tmp_path) == [3, 6, 9]


def test_both_clocks_run_at_once(tmp_path):
    now = 0.0
    monitor = TrainingMonitor(
        CheckpointStore(tmp_path, TRAINING, keep=99),
        Recorder(),
        every_steps=4,
        every_minutes=1,
        clock=lambda: now,
    )
    for steps in range(1, 11):
        now += 25
        monitor.checkpoint(steps, write_state(steps))
    assert kept(tmp_path) == [3, 4, 7, 8]


def test_without_either_only_the_last_one_is_made(tmp_path):
    monitor = TrainingMonitor(CheckpointStore(tmp_path, TRAINING), Recorder())
    run(monitor, range(1, 100))
    assert kept(tmp_path) == []
    run(monitor, [100], last=True)
    run(monitor, [100], last=True)
    assert kept(tmp_path) == [100]


def test_one_that_is_not_due_is_not_written(tmp_path):
    monitor = TrainingMonitor(CheckpointStore(tmp_path, TRAINING), Recorder(), every_steps=10)

    def write(folder):
        raise AssertionError("an expensive thing")

    monitor.checkpoint(9, write)
    with pytest.raises(AssertionError, match="expensive"):
        monitor.checkpoint(10, write)


@pytest.mark.parametrize(
    "options", [{"every_steps": 0}, {"every_minutes": -1}, {"every_minutes": float("nan")}]
)
def test_impossible_intervals_are_refused(tmp_path, options):
    with pytest.raises(ValueError, match="expected a positive number"):
        TrainingMonitor(CheckpointStore(tmp_path, TRAINING), Recorder(), **options)


def test_metrics_reach_the_disk_before_the_checkpoint_that_cuts_them(tmp_path):
    tracker = Recorder()
    monitor = TrainingMonitor(CheckpointStore(tmp_path, TRAINING), tracker, every_steps=20)
    for steps in (10, 20):
        monitor.log(steps, {"charts/value": 1.0})
        run(monitor, [steps])
    assert tracker.heard == [(10, {"charts/value": 1.0}), (20, {"charts/value": 1.0}), "sync"]


def test_what_would_be_logged_twice_after_an_interruption_is_refused(tmp_path):
    monitor = TrainingMonitor(CheckpointStore(tmp_path, TRAINING), Recorder(), every_steps=10)
    run(monitor, [5])
    with pytest.raises(ValueError, match="metrics of 5 steps after their checkpoint; a learner logs first"):
        monitor.log(5, {})
    monitor.log(10, {})
    run(monitor, [10])
    again = TrainingMonitor(CheckpointStore(tmp_path, TRAINING), Recorder(), every_steps=10)
    with pytest.raises(ValueError, match="a learner logs first"):
        again.log(10, {})
    again.log(11, {})
