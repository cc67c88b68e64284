"""Saved agents: read back equal, and refused when they are damaged, foreign or of another version."""

import json
import shutil
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("stable_baselines3")

from safetensors.numpy import load_file, save_file

from opgym import agents
from opgym.errors import InvalidProblemError, OpgymError, UnknownIdError
from opgym.problems import Budget

from .problems import placement, scheduling
from .test_solving import NAMES, QUICK


@pytest.fixture(scope="module")
def trained():
    options = {"environment": {"groups": "metis:6", "reward": "dense"}, "learning_rate": 1e-3}
    return agents.make("maskable-ppo", **{**QUICK["maskable-ppo"], **options}).fit(
        [placement()], steps=64, seed=5
    )


@pytest.fixture
def folder(trained, tmp_path):
    trained.save(tmp_path / "agent")
    return tmp_path / "agent"


@pytest.mark.parametrize("name", NAMES)
def test_plays_the_same_after_it_was_saved(name, tmp_path):
    trained = agents.make(name, **QUICK[name]).fit([scheduling()], steps=60)
    trained.save(tmp_path / "agent")
    loaded = agents.load(tmp_path / "agent")
    assert type(loaded) is type(trained)
    assert loaded.learned.environment == "OpScheduling-v0"
    assert loaded.learned.trainings == trained.learned.trainings
    assert loaded.learned.digest == trained.learned.digest
    assert loaded.with_learned(None) == trained.with_learned(None)  # all options
    results = [
        learner.solve(scheduling(), Budget(evaluations=5), np.random.default_rng(2))
        for learner in (trained, loaded)
    ]
    assert results[0].solution.op.tolist() == results[1].solution.op.tolist()
    assert [p.value for p in results[0].curve] == [p.value for p in results[1].curve]
    assert weights_after(trained) == weights_after(loaded)


def weights_after(learner):
    return learner.fit([scheduling()], steps=20, seed=1).learned.digest


def test_says_where_it_comes_from(folder):
    document = json.loads((folder / "agent.json").read_text())
    assert document["agent"] == "maskable-ppo"
    assert document["options"]["environment"] == {"groups": "metis:6", "reward": "dense"}
    assert document["options"]["net_arch"] == [16]
    [training] = document["trainings"]
    assert (training["steps"], training["seed"]) == (64, 5)
    assert training["problems"] == [
        {
            "graph": "two-branch", "fingerprint": placement().graph.fingerprint, "cluster": "2xP100",
            "objective": "step_time",
        }
    ]  # fmt: skip
    assert sorted(path.name for path in folder.iterdir()) == ["agent.json", "weights.safetensors"]


def test_is_saved_into_a_new_folder_and_only_once_trained(trained, folder, tmp_path):
    with pytest.raises(OpgymError, match="holds something already"):
        trained.save(folder)
    with pytest.raises(OpgymError, match="learned nothing to save"):
        agents.make("ppo").save(tmp_path / "new")
    (tmp_path / "file").write_text("")
    with pytest.raises(OpgymError, match="cannot be written"):
        trained.save(tmp_path / "file")


def change(folder, **fields):
    path = folder / "agent.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"agent": "m-etf"}, "agent 'm-etf' cannot be trained"),
        ({"agent": 3}, "names no agent"),
        ({"format": "opgym.agent.sb3/2"}, "this version of opgym reads 'opgym.agent.sb3/1'"),
        ({"more": 1}, "unknown keys 'more'"),
        ({"opgym": ""}, "opgym = ''"),
        ({"opgym": None}, "opgym = None; expected text"),
        ({"options": []}, "other options than agent 'maskable-ppo'"),
        ({"options": {"more": 1}}, "other options than agent 'maskable-ppo'"),
        ({"environment": "CartPole-v1"}, "was trained on 'CartPole-v1'"),
        ({"trainings": []}, "has no training"),
        ({"trainings": [{}]}, "training 0 lacks"),
        ({"weights_sha256": "0" * 64}, "is damaged, or of another agent"),
    ],
)
def test_what_is_not_a_saved_agent_is_refused(fields, message, folder):
    change(folder, **fields)
    with pytest.raises(OpgymError, match=message) as error:
        agents.load(folder)
    assert str(folder) in str(error.value)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("steps", -1, "steps = -1"),
        ("seed", 2**31, "seed = 2147483648"),
        ("opgym", "", "opgym = ''"),
        ("problems", [], "training 0 has no problems"),
        ("problems", [{}], "training 0 problem 0 lacks 'graph'"),
    ],
)
def test_a_damaged_record_is_refused(field, value, message, folder):
    [training] = json.loads((folder / "agent.json").read_text())["trainings"]
    change(folder, trainings=[{**training, field: value}])
    with pytest.raises(OpgymError, match=message):
        agents.load(folder)


def test_an_option_that_came_later_has_its_default(folder):
    options = json.loads((folder / "agent.json").read_text())["options"]
    assert options.pop("anneal") is False
    assert options.pop("samples") == 16
    change(folder, options={**options, "gamma": 0.5})
    loaded = agents.load(folder)
    assert (loaded.anneal, loaded.samples, loaded.gamma) == (False, 16, 0.5)


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("num_envs", 0, "num_envs = 0; expected a whole number, 1 or more"),
        ("learning_rate", "fast", "learning_rate = 'fast'"),
        ("policy", "cnn", "unknown policy 'cnn'"),
        ("environment", {"groupz": 1}, "unknown option of environments 'groupz'; did you mean groups"),
        ("environment", {"groups": {"__reduce__": "os.system"}}, "expected text, numbers or lists of them"),
    ],
)
def test_an_impossible_option_is_refused(option, value, message, folder):
    options = json.loads((folder / "agent.json").read_text())["options"]
    change(folder, options={**options, option: value})
    with pytest.raises(OpgymError, match=message):
        agents.load(folder)


def test_an_unknown_agent_is_refused_with_the_nearest_names(folder):
    change(folder, agent="maskable-pro")
    with pytest.raises(UnknownIdError, match="did you mean maskable-ppo"):
        agents.load(folder)


@pytest.mark.parametrize("name", ["agent.json", "weights.safetensors"])
@pytest.mark.parametrize("how", ["gone", "cut", "empty", "a folder"])
def test_a_damaged_file_is_refused(name, how, folder):
    file = folder / name
    data = file.read_bytes()
    file.unlink()
    if how == "a folder":
        file.mkdir()
    elif how != "gone":
        file.write_bytes(data[: len(data) // 2] if how == "cut" else b"")
    with pytest.raises(OpgymError, match=name):
        agents.load(folder)


def test_one_bit_of_the_weights_is_noticed(folder):
    file = folder / "weights.safetensors"
    data = bytearray(file.read_bytes())
    data[-5] ^= 1
    file.write_bytes(data)
    with pytest.raises(OpgymError, match="SHA-256"):
        agents.load(folder)


def test_weights_that_do_not_fit_the_options_are_refused_when_they_are_used(folder, tmp_path):
    """Somebody wrote a file of his own, with its digest."""
    import hashlib

    file = folder / "weights.safetensors"
    arrays = load_file(file)
    save_file({name: array[..., :1].copy() for name, array in arrays.items()}, file)
    change(folder, weights_sha256=hashlib.sha256(file.read_bytes()).hexdigest())
    with pytest.raises(InvalidProblemError, match="learned on other observations or actions"):
        agents.load(folder).solve(placement(), Budget(evaluations=1))
    shutil.rmtree(folder)
    with pytest.raises(OpgymError, match="no such file"):
        agents.load(folder)


def test_it_plays_graphs_it_has_never_seen_on_as_many_devices(trained):
    other = placement("example/rnn-train")
    result = trained.solve(other, Budget(evaluations=2))
    assert other.evaluate(result.solution) == result.outcome
    with pytest.raises(InvalidProblemError, match="needs as many devices"):
        trained.solve(placement(cluster="3xP100"), Budget(evaluations=2))


def test_it_plays_no_other_game(trained):
    assert "trained on GraphPlacement-v0" in trained.skip_reason(scheduling())
    with pytest.raises(InvalidProblemError, match="this is a problem of OpScheduling-v0"):
        trained.solve(scheduling())
    with pytest.raises(InvalidProblemError, match="this is a problem of OpScheduling-v0"):
        trained.fit([scheduling()], steps=8)


def test_a_graph_policy_fits_graphs_of_any_size(tmp_path):
    options = {**QUICK["ppo"], "policy": "dict", "graph_width": 8}
    trained = agents.make("ppo", **options).fit([scheduling(8), scheduling(12)], steps=64)
    trained.save(tmp_path / "agent")
    other = scheduling(17)
    result = agents.load(tmp_path / "agent").solve(other, Budget(evaluations=3))
    assert result.evaluations == 3
    assert other.evaluate(result.solution) == result.outcome


WITHOUT = """
import sys
for name in ("torch", "stable_baselines3", "sb3_contrib", "safetensors"):
    sys.modules[name] = None
from opgym import agents
from opgym.errors import MissingExtraError
from opgym.datasets import load
from opgym.problems import SchedulingProblem
problem = SchedulingProblem(load("example/two-branch"))
assert "maskable-ppo" in agents.names()
for act in (lambda a: a.solve(problem), lambda a: a.fit([problem], steps=1), lambda a: agents.load(sys.argv[1])):
    try:
        act(agents.make("maskable-ppo", environment={"slots": 4}))
    except MissingExtraError as error:
        assert "opgym[train]" in str(error), error
    else:
        raise AssertionError("did not refuse")
"""


def test_without_the_extra_it_says_what_to_install(folder):
    subprocess.run([sys.executable, "-c", WITHOUT, str(folder)], check=True)
