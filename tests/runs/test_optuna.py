"""Optuna as sweeper: what it searches, how it counts, and that a search that is killed ends as one that never was."""

import json
import signal
import subprocess
import time

import pytest

from .conftest import COMMAND, GUESS, environment, results

pytest.importorskip("optuna")

OPTUNA = [
    *GUESS, "-m", "hydra/sweeper=optuna", "hydra/launcher=basic", "hydra.sweeper.trials=6",
    "hydra.sweeper.seeds=[3,4]", "name=search", "trainer.steps=range(10, 60, 10)", "problem.cluster=2xP100,4xP100",
]  # fmt: skip


def _outcome(folder):
    document = json.loads((folder / "runs" / "search" / "sweep.json").read_text())
    return document["outcome"], document["jobs"]


def test_a_trial_is_a_run_for_each_seed_and_its_value_their_mean(train, tmp_path):
    done = train(*OPTUNA)
    assert done.exit_code == 0, done.output
    outcome, jobs = _outcome(tmp_path)
    assert outcome["trials"] == 6
    assert outcome["failed"] == 0
    assert outcome["best"].keys() == {"trainer.steps", "problem.cluster"}
    assert f"best of 6 trials: {outcome['best_value']:.6g}" in done.stdout
    pairs = [(jobs[i], jobs[i + 1]) for i in range(0, len(jobs), 2)]
    means = [sum(job["result"]["score"] for job in pair) / 2 for pair in pairs]
    assert outcome["best_value"] == min(means)
    best = pairs[means.index(min(means))][0]["overrides"]
    assert {f"{key}={value}" for key, value in outcome["best"].items()} <= set(best)
    assert [[o for o in job["overrides"] if o.startswith("seed=")] for job in pairs[0]] == [
        ["seed=3"],
        ["seed=4"],
    ]


def test_the_same_search_again_finds_the_same(train, tmp_path):
    for runs in ("one", "other"):
        assert train(*OPTUNA, f"runs={runs}", "hydra.sweeper.trials=3").exit_code == 0
    assert results(tmp_path / "one" / "search") == results(tmp_path / "other" / "search")


def test_trials_of_the_same_parameters_are_run_once_and_counted_each(train, tmp_path):
    """Six trials of two settings, four of them drawn at once."""
    few = ["trainer.steps=20", "hydra.sweeper.parallel=4", "hydra.sweeper.seeds=[0]"]
    assert train(*OPTUNA, *few).exit_code == 0
    outcome, jobs = _outcome(tmp_path)
    assert outcome["trials"] == 6
    assert [job["number"] for job in jobs] == list(range(len(jobs)))
    assert len({job["folder"] for job in jobs}) == len(results(tmp_path / "runs" / "search")) <= 2


def test_a_search_goes_on_where_it_was(train, tmp_path):
    four = [*OPTUNA, "hydra.sweeper.seeds=[0]", "hydra.sweeper.trials=4"]
    assert train(*four, "hydra.sweeper.trials=2").exit_code == 0
    assert train(*four).exit_code == 2  # there is a study
    assert train(*four, "resume=true").exit_code == 0
    assert _outcome(tmp_path)[0]["trials"] == 4
    assert train(*four, "name=whole").exit_code == 0
    assert results(tmp_path / "runs" / "search") == results(tmp_path / "runs" / "whole")
    other = train(*four, "resume=true", "env.num_envs=8,16")
    assert other.exit_code == 2
    assert "give it another name" in other.stderr


def test_a_trial_that_fails_is_counted_and_the_others_go_on(train, tmp_path):
    failing = ["agent.options.fail_at=20,null", "hydra.sweeper.trials=8", "hydra.sweeper.seeds=[0]"]
    done = train(*OPTUNA, *failing)
    assert done.exit_code == 1
    outcome, jobs = _outcome(tmp_path)
    failed = [job for job in jobs if job["state"] == "failed"]
    assert outcome["trials"] == 8
    assert outcome["failed"] == len(failed) > 0
    assert outcome["best"]["agent.options.fail_at"] == "null"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["seed=0,1"], "hydra.sweeper.seeds"),
        (["hydra.sweeper.trials=0"], "hydra.sweeper.trials = 0"),
        (["hydra.sweeper.seeds=[]"], "hydra.sweeper.seeds"),
        (["hydra.sweeper.seeds=[1,1]"], "hydra.sweeper.seeds"),
        (["trainer.steps=tag(log, interval(0, 10))"], "begins above 0"),
    ],
)
def test_what_cannot_be_searched_is_refused(train, arguments, message):
    refused = train(*OPTUNA, *arguments)
    assert refused.exit_code == 2, refused.output
    assert message in " ".join(refused.stderr.split())


def test_nothing_to_search_is_refused(train):
    refused = train(*GUESS, "-m", "hydra/sweeper=optuna")
    assert refused.exit_code == 2
    assert "nothing to search" in refused.stderr


@pytest.mark.slow
def test_a_killed_search_ends_as_one_that_never_was(tmp_path):
    search = [*OPTUNA, "agent.options.pause_s=0.1"]
    command = [*COMMAND, *search]
    killed = subprocess.Popen(command, cwd=tmp_path, env=environment(), stderr=subprocess.PIPE, text=True)
    folder = tmp_path / "runs" / "search"
    while len(results(folder)) < 3:
        assert killed.poll() is None, killed.stderr.read()
        time.sleep(0.02)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    for more in (["resume=true"], ["name=whole"]):
        done = subprocess.run(
            [*command, *more], cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, done.stderr
    assert results(folder) == results(tmp_path / "runs" / "whole")
    assert _outcome(tmp_path)[0]["trials"] == 6
