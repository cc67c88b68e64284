"""One training in one folder: what it leaves there, and what happens when it is started again, fails or is killed."""

import errno
import json
import os
import signal
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from opgym.errors import InvalidRunError
from opgym.runs.run_folder import locked
from opgym.runs.train import training
from opgym.runs.train.config import AgentConfig, EnvConfig, ProblemConfig, TrainConfig, TrainerConfig
from opgym.runs.train.training import TrainResult, make_learner

from .conftest import GUESS, HEARING, environment, metrics, process, results

pytestmark = pytest.mark.filterwarnings("error::ResourceWarning")


def _only_run(folder: Path) -> Path:
    (run,) = (path for path in (folder / "runs").iterdir() if path.is_dir())
    return run


def test_a_run_leaves_everything_in_a_folder_that_says_what_it_is(train, tmp_path):
    done = train(*GUESS, "seed=3", "problem.cluster=4xP100", "agent.options.pause_s=0", "--json")
    assert done.exit_code == 0, done.stderr
    folder = _only_run(tmp_path)
    assert folder.name.startswith("guess_GraphPlacement_ws_seed3_")
    config = yaml.safe_load((folder / "config.yaml").read_text())
    assert config["agent"] == {"solver": "guess", "options": {"pause_s": 0}}
    assert config["problem"]["cluster"] == "4xP100"
    assert config["seed"] == 3
    result = json.loads((folder / "result.json").read_text())
    assert {"folder": f"runs/{folder.name}", **result} == json.loads(done.stdout)
    assert result["steps"] == 60
    assert result["verdict"] == "ok"
    assert result["ratio_to_reference"] == result["value"] / result["reference"] == result["score"]
    assert [line["steps"] for line in metrics(tmp_path / "runs")[folder.name]] == [10, 20, 30, 40, 50, 60]
    assert sorted(path.name for path in (folder / "checkpoints").iterdir()) == [
        "000000000050",
        "000000000060",
    ]
    assert (folder / "agent" / "agent.json").is_file()


def test_the_result_is_that_of_the_best_placement_of_the_training(train, tmp_path):
    train(*GUESS)
    folder = _only_run(tmp_path)
    best = json.loads((folder / "metrics.jsonl").read_text().splitlines()[-1])["charts/best_value"]
    assert TrainResult.load(folder).value == best


@pytest.mark.parametrize("chosen", [(), ("problem.validation=learned",)])
def test_weights_may_be_chosen_by_what_is_learned_from(train, tmp_path, chosen):
    pytest.importorskip("torch")
    from opgym import agents

    options = {"samples": 2, "width": 8, "heads": 2, "validate_every": 1}
    small = [*(f"agent.options.{name}={value}" for name, value in options.items()), "trainer.evaluations=1"]
    done = train("agent=gdp", "problem=tiny", "trainer.steps=4", "logger=jsonl", *small, *chosen)
    assert done.exit_code == 0, done.stderr
    training = agents.load(_only_run(tmp_path)).learned.trainings[-1]
    assert (training.validation_gain is not None) == bool(chosen)
    log = (_only_run(tmp_path) / "metrics.jsonl").read_text()
    assert ("validation" in log) == bool(chosen)


def test_the_same_seed_gives_the_same_and_another_one_another(train, tmp_path):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        assert train(*GUESS, f"name={name}", f"seed={seed}").exit_code == 0
    found, logs = results(tmp_path / "runs"), metrics(tmp_path / "runs")
    assert found["a"] == found["b"]
    assert logs["a"] == logs["b"] != logs["c"]


def test_settings_survive_their_file(train, tmp_path):
    train(*GUESS, "agent.options.once=x", "problem.graph=[example/two-branch,synthetic/ws?n=20&seed=1]")
    folder = _only_run(tmp_path)
    stored = yaml.safe_load((folder / "config.yaml").read_text())
    again = TrainConfig.from_json(stored)
    assert again.problem.graph == ["example/two-branch", "synthetic/ws?n=20&seed=1"]
    assert again.folder_name == folder.name
    result = TrainResult.load(folder)
    assert [row["problem"] for row in result.problems] == again.problem.graph
    assert result.score == sum(row["score"] for row in result.problems) / 2


def test_a_folder_is_named_after_suites_where_several_are_learned():
    problem = ProblemConfig(suites=["regal-memory-1", "regal-time"])
    several = replace(_config(), agent=AgentConfig("regal"), problem=problem).folder_name
    assert several.startswith("regal_regal-memory-1-regal-time_seed0_")
    assert several != replace(_config(), agent=AgentConfig("regal"), problem=problem, seed=1).folder_name
    one = replace(_config(), problem=ProblemConfig(suite="gdp")).folder_name
    assert one.startswith("guess_GraphPlacement_gdp-train_seed0_")


def test_rows_of_a_suite(train, tmp_path):
    done = train(
        *GUESS, "env=scheduling", "problem=default", "problem.suite=memory-order", "problem.rows=1", "--json"
    )
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["unit"] == "bytes"
    assert "memory-order-train" in _only_run(tmp_path).name


# --- again


def test_a_finished_run_is_not_touched(train, tmp_path):
    train(*GUESS)
    result = _only_run(tmp_path) / "result.json"
    before = result.stat().st_mtime_ns
    refused = train(*GUESS)
    assert refused.exit_code == 2
    assert "holds a finished run" in refused.stderr
    assert "resume=true" in refused.stderr
    kept = train(*GUESS, "resume=true", "trainer.checkpoint_steps=7")
    assert kept.exit_code == 0
    assert "finished before" in kept.stderr
    assert kept.stdout
    assert result.stat().st_mtime_ns == before


def test_a_folder_of_other_settings_is_not_gone_on_with(train):
    train(*GUESS, "name=mine")
    other = train(*GUESS, "name=mine", "resume=true", "trainer.steps=70", "seed=1")
    assert other.exit_code == 2
    assert "trainer.steps was 60, is 70; seed was 0, is 1" in " ".join(other.stderr.split())


def test_a_folder_of_something_else_is_not_touched(train, tmp_path):
    (tmp_path / "runs" / "mine").mkdir(parents=True)
    (tmp_path / "runs" / "mine" / "thesis.tex").write_text("")
    other = train(*GUESS, "name=mine")
    assert other.exit_code == 2
    assert "thesis.tex" in other.stderr
    assert [path.name for path in (tmp_path / "runs" / "mine").iterdir()] == ["thesis.tex"]


def test_a_crash_is_a_message_and_the_run_goes_on(train, tmp_path):
    crashing = [*GUESS, "agent.options.fail_at=40", f"agent.options.once={tmp_path}/once", "name=crashed"]
    failed = train(*crashing)
    assert failed.exit_code == 1
    assert "RuntimeError: told to fail after 40 steps" in failed.stderr
    assert "Traceback" not in failed.stderr
    folder = tmp_path / "runs" / "crashed"
    assert "told to fail" in (folder / "error.txt").read_text()
    assert not (folder / "result.json").exists()
    assert "unfinished run" in train(*crashing).stderr
    assert train(*crashing, "resume=true").exit_code == 0
    assert train(*crashing[:-1], "name=whole").exit_code == 0  # once is there: this one is not interrupted
    _same_but_for_the_clock(tmp_path / "runs", "crashed", "whole")


def _same_but_for_the_clock(runs, one, other):
    assert results(runs)[one] == results(runs)[other]
    assert metrics(runs)[one] == metrics(runs)[other]


def test_a_killed_run_goes_on_from_its_last_checkpoint(tmp_path):
    deadly = [*GUESS, "agent.options.die_at=40", f"agent.options.once={tmp_path}/once"]
    killed = process(tmp_path, *deadly, "name=killed")
    assert killed.returncode == -signal.SIGKILL
    folder = tmp_path / "runs" / "killed"
    assert yaml.safe_load((folder / "config.yaml").read_text())["agent"]["options"]["die_at"] == 40
    assert sorted(path.name for path in (folder / "checkpoints").iterdir())[-1] == "000000000030"
    for name in ("killed", "whole"):
        done = process(tmp_path, *deadly, f"name={name}", "resume=true")
        assert done.returncode == 0, done.stderr
    _same_but_for_the_clock(tmp_path / "runs", "killed", "whole")


def test_settings_are_on_the_disk_before_the_first_step(train, tmp_path):
    train(*GUESS, "agent.options.fail_at=10", "name=early")
    assert (tmp_path / "runs" / "early" / "config.yaml").is_file()
    assert not (tmp_path / "runs" / "early" / "checkpoints").exists()


def test_an_interrupt_is_a_message_and_130(tmp_path):
    slow = [*GUESS, "agent.options.pause_s=0.2", "trainer.steps=10000", "name=slow"]
    running = subprocess.Popen(
        [*HEARING, *slow], cwd=tmp_path, env=environment(), stderr=subprocess.PIPE, text=True
    )
    checkpoints = tmp_path / "runs" / "slow" / "checkpoints"
    while not (checkpoints.is_dir() and any(path.name.isdigit() for path in checkpoints.iterdir())):
        assert running.poll() is None
        time.sleep(0.02)
    running.send_signal(signal.SIGINT)
    _, err = running.communicate(timeout=60)
    assert running.returncode == 130
    assert "interrupted" in err
    assert "Traceback" not in err


# --- two at once


def _config(**more):
    return TrainConfig(
        AgentConfig("guess"),
        EnvConfig("GraphPlacement-v0"),
        ProblemConfig("synthetic/ws?n=20&seed=0"),
        TrainerConfig(steps=20),
        {"jsonl": {}},
        **more,
    )


def test_two_processes_never_train_one_run(guess, tmp_path, monkeypatch):
    from opgym.errors import RunInUseError

    monkeypatch.setattr("opgym.runs.run_folder.PATIENCE_S", 0.0)
    with locked(tmp_path / "run"), pytest.raises(RunInUseError, match=f"process {os.getpid()} on"):
        training.train(_config(), tmp_path / "run")
    assert training.train(_config(), tmp_path / "run").steps == 20


def test_the_lock_of_a_process_that_ends_is_waited_for(tmp_path):
    holder = subprocess.Popen(
        ["flock", str(tmp_path / ".lock"), "sh", "-c", "echo held; sleep 0.3"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout.readline() == "held\n"
    with locked(tmp_path):
        assert holder.wait(timeout=10) == 0
    holder.stdout.close()


# --- what the machine refuses


def test_a_full_disk_is_a_message_and_the_run_goes_on(train, tmp_path, monkeypatch):
    from opgym.runs.train import checkpoints

    real, calls = checkpoints._write_manifest, []

    def full(*arguments):
        calls.append(arguments)
        if len(calls) == 3:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(*arguments)

    monkeypatch.setattr(checkpoints, "_write_manifest", full)
    failed = train(*GUESS, "name=full")
    assert failed.exit_code == 1
    assert "No space left on device" in failed.stderr
    folder = tmp_path / "runs" / "full"
    assert sorted(path.name for path in (folder / "checkpoints").iterdir()) == [
        "000000000010",
        "000000000020",
    ]
    assert train(*GUESS, "name=full", "resume=true").exit_code == 0
    assert train(*GUESS, "name=whole").exit_code == 0
    _same_but_for_the_clock(tmp_path / "runs", "full", "whole")


def _full(*_):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize(
    ("call", "named"),
    [
        ("os.pwrite", "runs/full/.lock"),
        ("os.replace", "runs/full/config.yaml"),
        ("opgym_guess.Guess.save", "runs/full/agent"),
        ("os.fsync", "runs/full"),
    ],
)
def test_what_a_full_disk_could_not_hold_is_named(train, monkeypatch, call, named):
    monkeypatch.setattr(call, _full)
    failed = train(*GUESS, "name=full")
    monkeypatch.undo()
    assert failed.exit_code == 1
    assert f"error: {named}" in failed.stderr
    assert "No space left on device" in failed.stderr


def test_a_folder_that_cannot_be_made_is_a_message(train, tmp_path):
    (tmp_path / "runs").write_text("a file")
    failed = train(*GUESS)
    assert failed.exit_code == 1
    assert "runs" in failed.stderr
    assert "Traceback" not in failed.stderr


def test_a_home_that_cannot_be_written_is_none_of_our_business(tmp_path):
    home = tmp_path / "home"
    home.write_text("no folder at all")  # read-only is nothing to the superuser
    done = subprocess.run(
        [*HEARING, *GUESS],
        cwd=tmp_path,
        env=environment(HOME=str(home)),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr


def test_a_result_that_is_damaged_is_refused(train, tmp_path):
    train(*GUESS, "name=damaged")
    path = tmp_path / "runs" / "damaged" / "result.json"
    document = json.loads(path.read_text())
    for broken in ("{", json.dumps({**document, "version": 99}), json.dumps({**document, "more": 1}), "[]"):
        path.write_text(broken)
        refused = train(*GUESS, "name=damaged", "resume=true")
        assert refused.exit_code == 2, broken
        assert "result.json" in refused.stderr


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("value", "12"), ("value", None), ("value", float("nan")), ("value", float("inf")), ("value", 10**400),
        ("value", True), ("unit", 3), ("verdict", None), ("score", [1]), ("steps", 1.5), ("seed", "0"),
        ("problems", {}), ("problems", []), ("problems", [3]), ("problems", [{}]), ("seconds", {}),
    ],
)  # fmt: skip
def test_a_result_with_values_of_other_types_is_refused(train, tmp_path, key, value):
    train(*GUESS, "name=damaged")
    path = tmp_path / "runs" / "damaged" / "result.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), key: value}))
    for json_or_text in ((), ("--json",)):
        refused = train(*GUESS, "name=damaged", "resume=true", *json_or_text)
        assert refused.exit_code == 2, refused.output
        assert f"result.json: {key}" in " ".join(refused.stderr.split())
    with pytest.raises(InvalidRunError, match=key):
        TrainResult.load(path.parent)


@pytest.mark.parametrize("key", ["problem", "value", "unit", "ratio_to_reference", "verdict"])
def test_so_are_those_of_one_problem(train, tmp_path, key):
    train(*GUESS, "name=damaged")
    path = tmp_path / "runs" / "damaged" / "result.json"
    document = json.loads(path.read_text())
    document["problems"][0][key] = None
    path.write_text(json.dumps(document))
    refused = train(*GUESS, "name=damaged", "resume=true")
    assert refused.exit_code == 2, refused.output
    assert "result.json: problems" in " ".join(refused.stderr.split())


def test_what_is_said_of_the_environment_goes_before_the_settings_of_the_agent():
    agent = AgentConfig("ppo", {"num_envs": 8, "environment": {"groups": "metis:64", "reward": "terminal"}})
    told = make_learner(TrainConfig(agent, EnvConfig("GraphPlacement-v0", 24, {"groups": "layer"})))
    assert (told.num_envs, told.environment) == (24, {"groups": "layer", "reward": "terminal"})
    left = make_learner(TrainConfig(agent, EnvConfig("GraphPlacement-v0")))
    assert (left.num_envs, left.environment) == (8, agent.options["environment"])
