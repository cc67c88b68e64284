"""Weights that come with the package: which training gets the name, and what its folder holds."""

import json
import re
from dataclasses import replace

import pytest

pytest.importorskip("torch")
pytest.importorskip("safetensors")

from opgym import agents
from opgym.agents.networks.shelf import learned_in
from opgym.agents.regal.base import SHELF
from opgym.errors import InvalidRunError, OpgymError
from opgym.runs.tracking.jsonl import LogLine, read_log
from opgym.runs.train.shipping import ship

from ..agents.regal.problems import order

QUICK = {
    "graphs": 1, "samples": 2, "evaluations_per_run": 30, "width": 4, "layers": 1, "population": 10, "elites": 2,
    "mutants": 3, "moves": 20, "search_evaluations": 20, "weights": "none",
}  # fmt: skip


@pytest.fixture(scope="module")
def learner():
    return agents.make("regal-plus", **QUICK).fit([order()], steps=1, validation=[order(9)])


@pytest.fixture
def training(learner, tmp_path):
    """The folder of a training of a seed that has gained something."""

    def made(seed, gain, agent=learner):
        folder = tmp_path / f"run{seed}"
        learned = agent.learned
        record = replace(learned.trainings[-1], seed=seed, validation_gain=gain)
        agent.with_learned(replace(learned, trainings=(record,))).save(folder / "agent")
        (folder / "config.yaml").write_text(f"seed: {seed}\n")
        lines = [LogLine(n, 0.1, {"charts/updates": n}) for n in range(1, 251)]
        lines[149].metrics["charts/validation_gain"] = gain or 0.0
        (folder / "metrics.jsonl").write_text("".join(f"{line.to_json()}\n" for line in lines))
        (folder / "result.json").write_text("{}")
        return folder

    return made


def test_the_median_training_gets_the_name(training, tmp_path, monkeypatch):
    weights = tmp_path / "weights"
    runs = [training(0, 0.05), training(4, 0.01), training(7, 0.03)]
    found = ship("regal-plus", runs, weights)
    assert [path.name for path in found] == ["regal-plus-seed0", "regal-plus-seed4", "regal-plus"]
    monkeypatch.setattr(SHELF, "folder", weights)
    learned_in.cache_clear()
    default = agents.make("regal-plus")
    assert default.trained
    assert agents.load(weights / "regal-plus").learned.trainings[0].seed == 7
    assert (weights / "regal-plus" / "config.yaml").read_text() == "seed: 7\n"
    assert [line.steps for line in read_log(weights / "regal-plus" / "metrics.jsonl")] == [1, 101, 150, 201]
    with pytest.raises(InvalidRunError, match="exists"):
        ship("regal-plus", runs, weights)
    learned_in.cache_clear()


def test_of_two_the_worse_gets_the_name(training, tmp_path):
    found = ship("ablations/small", [training(0, 0.05), training(1, 0.02)], tmp_path)
    assert [path.relative_to(tmp_path).as_posix() for path in found] == [
        "ablations/small-seed0", "ablations/small",
    ]  # fmt: skip


def test_what_is_no_training_is_refused(training, learner, tmp_path):
    run = training(0, 0.1)
    for name in ("../up", "a/b", "Regal", "", "ablations/", "/tmp"):
        with pytest.raises(InvalidRunError, match="cannot be called"):
            ship(name, [run], tmp_path / "weights")
    with pytest.raises(InvalidRunError, match="each with another seed"):
        ship("a", [run, run], tmp_path / "weights")
    with pytest.raises(InvalidRunError, match="each with another seed"):
        ship("a", [], tmp_path / "weights")
    with pytest.raises(InvalidRunError, match="validation graphs"):
        ship("a", [training(1, None)], tmp_path / "weights")
    (run / "agent" / "weights.safetensors").write_bytes(b"")
    with pytest.raises(OpgymError, match="damaged"):
        ship("a", [run], tmp_path / "weights")
    (run / "result.json").unlink()
    with pytest.raises(InvalidRunError, match="no finished training"):
        ship("a", [run], tmp_path / "weights")
    assert not (tmp_path / "weights").exists()


def test_what_is_shipped_says_how_it_was_trained():
    for name in SHELF.names(ablations=True):
        folder = SHELF.folder / name
        document = json.loads((folder / "agent.json").read_text())
        agents.load(folder)
        config = (folder / "config.yaml").read_text()
        assert f"seed: {document['trainings'][-1]['seed']}\n" in config
        asked, options = int(re.search(r"steps: (\d+)\n", config)[1]), document["options"]
        update = options["graphs"] * (options["samples"] if document["agent"] != "regal-plus" else 1)
        assert (
            asked <= document["trainings"][-1]["steps"] < asked + update
        )  # the last one is taken to its end
        assert any("charts/validation_gain" in line.metrics for line in read_log(folder / "metrics.jsonl"))
