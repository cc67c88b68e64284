"""An interrupted training ends as if it had not been: the same lines of the log, the same weights to the bit."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("stable_baselines3")

from opgym import agents
from opgym.agents.networks.tree_file import read_tree
from opgym.agents.sb3 import fitting
from opgym.errors import InvalidProblemError, OpgymError

from .monitors import Recorder, Stopped
from .problems import placement, scheduling
from .test_solving import QUICK

#: Learner, problems, options beside the quick ones: native batches and single environments, one graph and several.
TRAININGS = {
    "ppo": ("ppo", [placement], {"anneal": True}),
    "maskable-ppo": ("maskable-ppo", [scheduling], {"anneal": True, "ent_coef": 0.01}),
    "a2c": ("a2c", [placement], {"environment": {"reward": "dense"}}),
    "a2c with Adam": ("a2c", [scheduling], {"use_rms_prop": False}),
    "dqn": ("dqn", [scheduling], {"num_envs": 2}),
    "dqn, full buffer": ("dqn", [placement], {"buffer_size": 40, "target_update_interval": 40}),
    "several graphs": (
        "maskable-ppo", [lambda: scheduling(8), lambda: scheduling(11), lambda: scheduling(9)], {"num_envs": 2},
    ),
    "refine": ("maskable-ppo", [placement], {"environment": {"mode": "refine", "initial": "random"}}),
    "graph policy": ("maskable-ppo", [placement], {"policy": "dict", "graph_width": 8}),
    "one shot": (
        "ppo", [placement], {"policy": "dict", "graph_width": 8, "environment": {"mode": "one_shot"}, "n_steps": 4},
    ),
    "dqn on dicts": ("dqn", [placement], {"policy": "dict", "graph_width": 8, "num_envs": 2, "learning_starts": 60}),
}  # fmt: skip
STEPS = 160


@pytest.fixture(autouse=True)
def _every_update_is_a_line(monkeypatch):
    monkeypatch.setattr(fitting, "LOG_STEPS", 1)


def make(training, **options):
    name, problems, own = TRAININGS[training]
    return agents.make(name, **{**QUICK[name], **own, **options}), [problem() for problem in problems]


def weights(learner):
    return {name: array.tobytes() for name, array in learner.learned.weights.items()}


@pytest.mark.parametrize("training", TRAININGS)
def test_goes_on_exactly(training, tmp_path):
    learner, problems = make(training)
    whole = Recorder()
    expected = learner.fit(problems, steps=STEPS, seed=3, monitor=whole)
    assert whole.ended
    assert len(whole.lines) >= 4
    assert any(len(line) > 6 for _, line in whole.lines)

    latest, curve = None, []
    for part in range(4):  # interrupted three times
        folder = tmp_path / str(part)
        folder.mkdir()
        first = STEPS * (part + 1) // 5
        monitor = Recorder(folder, latest=latest, stop_after=1 if part < 3 else None, first=first)
        try:
            trained = learner.fit(problems, steps=STEPS, seed=3, monitor=monitor)
        except Stopped:
            assert part < 3
        curve += monitor.curve
        latest = monitor.checkpoints[-1]
    assert curve == whole.curve
    assert weights(trained) == weights(expected)
    assert trained.learned.trainings == expected.learned.trainings

    again = Recorder(latest=latest)  # there is nothing left to do
    assert weights(learner.fit(problems, steps=STEPS, seed=3, monitor=again)) == weights(expected)
    assert again.lines == []


@pytest.mark.parametrize("name", QUICK)
def test_the_same_seed_gives_the_same_weights(name):
    learner = agents.make(name, **QUICK[name])
    results = [weights(learner.fit([placement()], steps=60, seed=seed)) for seed in (0, 0, 1)]
    assert results[0] == results[1]
    assert results[0] != results[2]


def test_native_batches_and_single_environments_teach_the_same(monkeypatch):
    learner = agents.make("maskable-ppo", **QUICK["maskable-ppo"])
    for problem in (placement(), scheduling()):
        native = learner.fit([problem], steps=200)
        with monkeypatch.context() as patch:
            patch.setattr("opgym.agents.sb3.environments._has_batch", lambda name, options: False)
            single = learner.fit([problem], steps=200)
        assert weights(native) == weights(single)


def test_a_trained_learner_goes_on_from_its_weights():
    learner = agents.make("a2c", **QUICK["a2c"])
    first = learner.fit([placement()], steps=40, seed=1)
    second = first.fit([placement()], steps=40, seed=2)
    assert not learner.trained
    assert weights(second) != weights(first)
    assert weights(second) != weights(learner.fit([placement()], steps=40, seed=2))
    assert [(t.steps, t.seed) for t in second.learned.trainings] == [(48, 1), (48, 2)]


@pytest.fixture
def checkpoint(tmp_path):
    learner, problems = make("a2c")
    monitor = Recorder(tmp_path, stop_after=1, first=50)
    with pytest.raises(Stopped):
        learner.fit(problems, steps=STEPS, monitor=monitor)
    return monitor.checkpoints[0]


@pytest.mark.parametrize(
    ("message", "options", "fit"),
    [
        ("steps is 160 there and 161 here", {}, {"steps": STEPS + 1}),
        ("seed is 0 there and 1 here", {}, {"seed": 1}),
        ("options is .*'gamma': 1.0.* there and .*'gamma': 0.9.* here", {"gamma": 0.9}, {}),
    ],
)
def test_a_checkpoint_of_another_training_is_refused(message, options, fit, checkpoint):
    learner, problems = make("a2c", **options)
    with pytest.raises(OpgymError, match=f"another training: {message}"):
        learner.fit(problems, **{"steps": STEPS, "monitor": Recorder(latest=checkpoint), **fit})


def test_a_checkpoint_of_another_agent_graph_or_start_is_refused(checkpoint):
    learner, problems = make("a2c")
    monitor = Recorder(latest=checkpoint)
    with pytest.raises(OpgymError, match="another training: agent is 'a2c' there and 'ppo' here"):
        make("ppo")[0].fit(problems, steps=STEPS, monitor=monitor)
    with pytest.raises(OpgymError, match="another training: problems is"):
        learner.fit([placement("example/rnn-train")], steps=STEPS, monitor=monitor)
    trained = learner.fit(problems, steps=40)
    with pytest.raises(OpgymError, match="another training: started_from is None there"):
        trained.fit(problems, steps=STEPS, monitor=monitor)


@pytest.mark.parametrize("damage", ["training.json", "training.safetensors"])
@pytest.mark.parametrize("how", ["gone", "cut", "empty", "other"])
def test_a_damaged_checkpoint_is_refused(damage, how, checkpoint):
    file = checkpoint / damage
    data = file.read_bytes()
    if how == "gone":
        file.unlink()
    else:
        file.write_bytes({"cut": data[: len(data) // 2], "empty": b"", "other": b'{"a": 1}'}[how])
    learner, problems = make("a2c")
    with pytest.raises(OpgymError, match=str(checkpoint)):
        learner.fit(problems, steps=STEPS, monitor=Recorder(latest=checkpoint))


def test_a_checkpoint_holds_no_pickle(checkpoint):
    assert sorted(file.name for file in checkpoint.iterdir()) == ["training.json", "training.safetensors"]
    json.loads((checkpoint / "training.json").read_text())
    state = read_tree(checkpoint, "training")["state"]
    assert state["counters"]["num_timesteps"] >= 50
    assert state["random"]["numpy"]["keys"].dtype == np.uint32


def test_impossible_trainings_are_refused():
    learner = agents.make("ppo", **QUICK["ppo"])
    with pytest.raises(InvalidProblemError, match="at least one problem"):
        learner.fit([], steps=10)
    with pytest.raises(InvalidProblemError, match="steps = 0"):
        learner.fit([placement()], steps=0)
    with pytest.raises(InvalidProblemError, match="of one type; got PlacementProblem and SchedulingProblem"):
        learner.fit([placement(), scheduling()], steps=10)
    refine = agents.make("ppo", num_envs=2, environment={"mode": "refine"})
    with pytest.raises(InvalidProblemError, match="set num_envs to 3 or more"):
        refine.fit([placement()] * 3, steps=10)
    for options in ({}, {"environment": {"mode": "refine"}}):
        mixed = agents.make("ppo", num_envs=2, **options)
        with pytest.raises(InvalidProblemError, match="devices"):
            mixed.fit([placement(), placement(cluster="3xP100")], steps=10)


KILLED = """
import os, signal, sys
from pathlib import Path
from opgym import agents
from opgym.agents.sb3 import fitting
from tests.agents.sb3.monitors import Recorder
from tests.agents.sb3.test_resume import STEPS, make

class Killed(Recorder):
    def checkpoint(self, steps, write, *, last=False):
        super().checkpoint(steps, write, last=last)
        if self.checkpoints:
            os.kill(os.getpid(), signal.SIGKILL)

learner, problems = make(sys.argv[1])
learner.fit(problems, steps=STEPS, seed=3, monitor=Killed(Path(sys.argv[2]), first=STEPS // 2))
"""


@pytest.mark.slow
@pytest.mark.parametrize("training", QUICK)
def test_goes_on_exactly_after_the_process_was_killed(training, tmp_path):
    """Nothing but the files goes from one process to the other."""
    root = Path(__file__).parents[3]
    run = subprocess.run(
        [sys.executable, "-c", KILLED, training, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(root)},
        check=False,
    )
    assert run.returncode == -signal.SIGKILL
    [latest] = tmp_path.iterdir()
    learner, problems = make(training)
    resumed = learner.fit(problems, steps=STEPS, seed=3, monitor=Recorder(latest=latest))
    assert weights(resumed) == weights(learner.fit(problems, steps=STEPS, seed=3))
