"""Saved learners of proposals: read back equal, and refused when they are damaged, foreign or of another version."""

import hashlib
import json
import shutil

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("safetensors")

from safetensors.numpy import load_file, save_file

from opgym import agents
from opgym.agents.networks.shelf import learned_in
from opgym.agents.regal.base import SHELF
from opgym.errors import OpgymError, UnknownIdError
from opgym.problems import Budget

from .problems import QUICK, order, placement


@pytest.fixture(scope="module")
def trained():
    learner = agents.make("regal", **QUICK, initial=True, bias=0.6)
    return learner.fit([order(), placement()], steps=12, seed=5, validation=[order(9)])


@pytest.fixture
def folder(trained, tmp_path):
    trained.save(tmp_path / "agent")
    return tmp_path / "agent"


@pytest.mark.parametrize("name", ["regal", "gas"])
def test_solves_the_same_after_it_was_saved(name, tmp_path):
    trained = agents.make(name, **QUICK, baseline="value", starts=("dfs", "m-etf")).fit(
        [placement()], steps=6
    )
    trained.save(tmp_path / "agent")
    loaded = agents.load(tmp_path / "agent")
    assert type(loaded) is type(trained)
    assert loaded.learned.trainings == trained.learned.trainings
    assert (loaded.learned.network, loaded.learned.tasks) == (trained.learned.network, trained.learned.tasks)
    assert loaded.learned.digest == trained.learned.digest
    assert loaded.with_learned(None) == trained.with_learned(None)  # all options
    results = [
        learner.solve(placement(), Budget(evaluations=50), np.random.default_rng(2))
        for learner in (trained, loaded)
    ]
    assert results[0].solution.device.tolist() == results[1].solution.device.tolist()
    assert [p.value for p in results[0].curve] == [p.value for p in results[1].curve]
    further = [learner.fit([placement()], steps=6, seed=1).learned.digest for learner in (trained, loaded)]
    assert further[0] == further[1]


def test_says_where_it_comes_from(trained, folder):
    document = json.loads((folder / "agent.json").read_text())
    assert document["agent"] == "regal"
    assert document["options"]["bias"] == 0.6
    assert "weights" not in document["options"]
    assert document["network"]["width"] == 8
    assert document["initial"] is True
    assert document["tasks"] == [
        {"objective": "peak_memory", "devices": 1}, {"objective": "peak_memory", "devices": 2},
    ]  # fmt: skip
    [training] = document["trainings"]
    assert (training["steps"], training["seed"]) == (12, 5)
    assert training["validation_gain"] == trained.learned.trainings[0].validation_gain
    assert sorted(path.name for path in folder.iterdir()) == ["agent.json", "weights.safetensors"]


def test_is_saved_into_a_new_folder_and_only_once_trained(trained, folder, tmp_path):
    with pytest.raises(OpgymError, match="holds something already"):
        trained.save(folder)
    with pytest.raises(OpgymError, match="learned nothing to save"):
        agents.make("regal", weights="none").save(tmp_path / "new")
    (tmp_path / "file").write_text("")
    with pytest.raises(OpgymError, match="cannot be written"):
        trained.save(tmp_path / "file")


def change(folder, **fields):
    path = folder / "agent.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))


def changed(folder, key, **fields):
    document = json.loads((folder / "agent.json").read_text())
    change(folder, **{key: {**document[key], **fields}})


def test_an_option_that_came_later_has_its_default(folder):
    options = json.loads((folder / "agent.json").read_text())["options"]
    assert options.pop("anneal") is True
    change(folder, options=options)
    assert agents.load(folder).anneal


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"agent": "gas"}, "other options than agent 'gas'"),
        ({"format": "opgym.agent.regal/2"}, "this version of opgym reads 'opgym.agent.regal/1'"),
        ({"more": 1}, "unknown keys 'more'"),
        ({"opgym": ""}, "opgym = ''"),
        ({"opgym": None}, "opgym = None; expected text"),
        ({"options": []}, "other options than agent 'regal'"),
        ({"options": {"more": 1}}, "other options than agent 'regal'"),
        ({"network": {}}, "other options than a network"),
        ({"initial": 1}, "initial = 1"),
        ({"tasks": []}, "has no task"),
        ({"tasks": [{"objective": "latency", "devices": 1}]}, "objective 'latency'"),
        ({"tasks": [{"objective": "step_time", "devices": 3}]}, "devices = 3"),
        ({"trainings": []}, "no training"),
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
    ("key", "fields", "message"),
    [
        ("options", {"samples": 1}, "samples = 1; expected a whole number, 2 or more"),
        ("options", {"baseline": "none"}, "unknown baseline 'none'"),
        ("network", {"encoder": "transformer"}, "unknown encoder 'transformer'"),
        ("network", {"width": 2**40}, "width = .*; expected a whole number, at most 4096"),
        ("network", {"rounds": 3}, "weights of another network"),
    ],
)
def test_an_impossible_option_or_network_is_refused(key, fields, message, folder):
    changed(folder, key, **fields)
    with pytest.raises(OpgymError, match=message):
        agents.load(folder)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("tasks", [7], "tasks that are no numbers"),
        ("tasks", {"peak_memory on one device": 0}, "tasks that are no numbers"),
        ("tasks", {}, "training 0 has no tasks"),
        ("graphs", [7], "graphs that are no fingerprints"),
        ("validation_gain", [7], "validation_gain = .*; expected a finite number"),
        ("validation_gain", True, "validation_gain = True; expected a finite number"),
        ("validation_gain", 1001, "validation_gain = 1001; expected -1000 to 1000"),
        ("validation_gain", -1e300, "validation_gain = -1e.300; expected -1000 to 1000"),
        ("steps", -1, "steps = -1"),
        ("opgym", "", "opgym = ''"),
    ],
)
def test_a_damaged_record_is_refused(field, value, message, folder):
    [training] = json.loads((folder / "agent.json").read_text())["trainings"]
    change(folder, trainings=[{**training, field: value}])
    with pytest.raises(OpgymError, match=message):
        agents.load(folder)


def test_a_gain_beyond_every_number_is_refused(folder):
    path = folder / "agent.json"
    document = json.loads(path.read_text())
    document["trainings"][0]["validation_gain"] = "HERE"
    path.write_text(json.dumps(document).replace('"HERE"', "1e999"))
    with pytest.raises(OpgymError, match="validation_gain = inf; expected a finite number"):
        agents.load(folder)


@pytest.mark.parametrize("name", ["agent.json", "weights.safetensors"])
@pytest.mark.parametrize("how", ["gone", "cut", "empty"])
def test_a_damaged_file_is_refused(name, how, folder):
    file = folder / name
    data = file.read_bytes()
    file.unlink()
    if how != "gone":
        file.write_bytes(data[:-30] if how == "cut" else b"")
    with pytest.raises(OpgymError):
        agents.load(folder)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        (lambda array: None, "weights of another network"),
        (
            lambda array: array * np.float32("nan"),
            "heads.hidden.bias holds float32 numbers that are not all finite",
        ),
        (lambda array: array + np.float32("inf"), "not all finite float32"),
        (lambda array: array.astype(np.float64), "holds float64 numbers"),
        (lambda array: array.astype(np.int32), "holds int32 numbers"),
    ],
)
def test_weights_that_are_not_finite_numbers_of_the_network_are_refused(how, message, folder):
    path = folder / "weights.safetensors"
    arrays = dict(load_file(path))
    array = how(arrays.pop("heads.hidden.bias"))
    if array is not None:
        arrays["heads.hidden.bias"] = array
    save_file(arrays, path)
    change(folder, weights_sha256=hashlib.sha256(path.read_bytes()).hexdigest())
    with pytest.raises(OpgymError, match=message):
        agents.load(folder)


@pytest.fixture
def package(folder, tmp_path, monkeypatch):
    """A package that ships the trained agent as ``regal`` and, under another name, once more."""
    for name in ("regal", "regal-seed1", "ablations/regal-small"):
        shutil.copytree(folder, tmp_path / "weights" / name)
    monkeypatch.setattr(SHELF, "folder", tmp_path / "weights")
    learned_in.cache_clear()
    yield
    learned_in.cache_clear()


def test_weights_of_the_package_are_used_by_name(package, trained, folder):
    assert SHELF.names() == ["regal", "regal-seed1"]
    assert SHELF.names(ablations=True) == ["ablations/regal-small", "regal", "regal-seed1"]
    results = []
    for weights in ("shipped", "regal-seed1", "ablations/regal-small", str(folder)):
        learner = agents.make("regal", **{**QUICK, "weights": weights}, bias=0.6)
        assert learner.trained
        assert learner.trained_on == trained.trained_on
        results.append(learner.solve(order(3), Budget(evaluations=60), np.random.default_rng(1)))
    expected = trained.solve(order(3), Budget(evaluations=60), np.random.default_rng(1))
    assert [[p.value for p in result.curve] for result in results] == [[p.value for p in expected.curve]] * 4
    assert not agents.make("gas").trained
    assert not agents.make("regal", weights="none").trained


def test_weights_of_the_package_are_no_beginning_of_a_training(package):
    anew = agents.make("regal", **QUICK).fit([order()], steps=6)
    with_shipped = agents.make("regal", **{**QUICK, "weights": "shipped"}).fit([order()], steps=6)
    assert anew.learned.digest == with_shipped.learned.digest


def test_unknown_weights_are_refused(package):
    with pytest.raises(UnknownIdError, match=r"unknown weights .* 'regal-seed2'; did you mean regal-seed1"):
        agents.make("regal", weights="regal-seed2")
