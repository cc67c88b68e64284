"""Sweeps: every combination once, failures at once, the others to their end, and again from where it stopped."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from opgym.runs.hydra_app.launchers.local import _Processes
from opgym.runs.hydra_app.sweep import FILE, Job

from .conftest import COMMAND, GUESS, HEARING, environment, metrics, process, results

SWEEP = [*GUESS, "-m", "seed=0,1,2", "name=sweep"]
LAUNCHERS = ("basic", "joblib")
DEBUG = ["hydra/launcher=submitit", "hydra.launcher.executor=debug"]
every_launcher = pytest.mark.parametrize(
    "launcher",
    [["hydra/launcher=basic"], ["hydra/launcher=joblib"], DEBUG],
    ids=["basic", "joblib", "submitit"],
)


def _jobs(folder: Path):
    document = json.loads((folder / "runs" / "sweep" / FILE).read_text())
    assert (document["format"], document["version"]) == ("opgym.sweep", 1)
    return document["jobs"]


@pytest.mark.parametrize(
    "launcher", [["hydra/launcher=basic"], ["hydra/launcher=joblib"], DEBUG], ids=lambda o: o[0][15:]
)
def test_every_combination_once(train, tmp_path, launcher):
    done = train(*SWEEP, "problem.cluster=2xP100,4xP100", *launcher)
    assert done.exit_code == 0, done.output
    found = results(tmp_path / "runs" / "sweep")
    assert len(found) == 6
    assert sorted(result["seed"] for result in found.values()) == [0, 0, 1, 1, 2, 2]
    jobs = _jobs(tmp_path)
    assert [job["folder"] for job in sorted(jobs, key=lambda job: job["folder"])] == list(found)
    assert {job["state"] for job in jobs} == {"finished"}
    assert all(job["result"]["value"] == found[job["folder"]]["value"] for job in jobs)
    assert all(folder in done.stdout for folder in found)


def test_launchers_agree_to_the_byte(train, tmp_path):
    for launcher in LAUNCHERS:
        assert train(*SWEEP, f"hydra/launcher={launcher}", f"runs={launcher}").exit_code == 0
    one, other = (tmp_path / launcher / "sweep" for launcher in LAUNCHERS)
    assert results(one) == results(other)
    assert metrics(one) == metrics(other)
    assert sorted(path.name for path in one.iterdir()) == sorted(path.name for path in other.iterdir())


def test_of_two_values_of_one_key_the_last_counts(train, tmp_path):
    assert train(*SWEEP, "seed=7", "hydra/launcher=basic").exit_code == 0
    assert [result["seed"] for result in results(tmp_path / "runs" / "sweep").values()] == [7]


def test_json_is_the_record_of_the_sweep(train, tmp_path):
    done = train(*SWEEP, "hydra/launcher=basic", "--json")
    document = json.loads(done.stdout)
    assert document.pop("folder") == "runs/sweep"
    assert document == json.loads((tmp_path / "runs" / "sweep" / FILE).read_text())
    assert done.stderr == ""


def test_a_sweep_is_named_by_what_it_runs(train, tmp_path):
    arguments = [*GUESS, "-m", "seed=0,1", "hydra/launcher=basic"]
    assert train(*arguments).exit_code == 0
    (folder,) = (tmp_path / "runs").iterdir()
    assert train(*arguments).exit_code == 2
    assert train(*arguments, "resume=true").exit_code == 0
    assert list((tmp_path / "runs").iterdir()) == [folder]
    assert train(*arguments[:-1], "hydra/launcher=joblib", "resume=true").exit_code == 0
    assert list((tmp_path / "runs").iterdir()) == [folder]
    assert train(*GUESS, "-m", "seed=0,1,2", "hydra/launcher=basic").exit_code == 0
    assert len(list((tmp_path / "runs").iterdir())) == 2


@pytest.mark.slow
def test_submitit_runs_jobs_as_processes_of_this_machine(train, tmp_path):
    here = ["hydra/launcher=submitit", "hydra.launcher.executor=local"]
    failed = train(*GUESS, "-m", "agent.options.die_at=30,null", "seed=0,1", "name=sweep", *here)
    assert failed.exit_code == 1, failed.output
    assert [job["state"] for job in _jobs(tmp_path)] == ["failed"] * 2 + ["finished"] * 2


# --- failures


@pytest.mark.parametrize(
    "launcher", [["hydra/launcher=basic"], ["hydra/launcher=joblib"], DEBUG], ids=lambda o: o[0][15:]
)
def test_a_job_that_crashes_is_seen_at_once_and_the_others_finish(train, tmp_path, launcher):
    sweep = [*GUESS, "-m", "agent.options.fail_at=30,null", "seed=0,1", "name=sweep", *launcher]
    failed = train(*sweep, f"agent.options.once={tmp_path}/once")
    assert failed.exit_code == 1
    states = [job["state"] for job in _jobs(tmp_path)]
    assert states.count("failed") == 1
    assert states.count("finished") == 3
    (broken,) = (job for job in _jobs(tmp_path) if job["state"] == "failed")
    assert broken["error"] == "RuntimeError: told to fail after 30 steps"
    said = failed.stderr.splitlines()
    (line,) = (line for line in said if line.startswith("failed: "))
    assert line == f"failed: runs/sweep/{broken['folder']}: {broken['error']}"
    assert said.index(line) < len(said) - 2  # not only in the end
    assert "1 of 4 jobs failed" in failed.stderr
    assert "Traceback" not in failed.stderr
    assert (
        train(*sweep, f"agent.options.once={tmp_path}/twice", "name=quiet", "--json").stderr.count("failed: ")
        == 1
    )
    assert "told to fail" in (tmp_path / "runs" / "sweep" / broken["folder"] / "error.txt").read_text()

    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "runs" / "sweep").glob("*/result.json")}
    again = train(*sweep, f"agent.options.once={tmp_path}/once", "resume=true")
    assert again.exit_code == 0, again.output
    assert {job["state"] for job in _jobs(tmp_path)} == {"finished"}
    assert all(path.stat().st_mtime_ns == at for path, at in before.items())  # none of them again
    assert not (tmp_path / "runs" / "sweep" / broken["folder"] / "error.txt").exists()


def test_a_process_that_dies_takes_its_job_with_it_alone(train, tmp_path):
    died = train(
        *GUESS, "-m", "agent.options.die_at=30,null", "seed=0,1,2", "name=sweep", "hydra.launcher.n_jobs=2"
    )
    assert died.exit_code == 1
    assert [job["state"] for job in _jobs(tmp_path)] == ["failed"] * 3 + ["finished"] * 3
    assert "its process died" in died.stderr


def test_a_process_that_died_while_it_waited_costs_nobody_anything(tmp_path):
    processes = _Processes("no application")  # so each job ends at once, with a report that says so
    job = Job(0, (), {}, str(tmp_path / "run"))
    assert "AttributeError" in processes.run(job).error
    (idle,) = processes._free
    (waiting,) = idle._processes.values()
    waiting.kill()
    _until(lambda: idle._broken)  # it has been noticed
    assert "AttributeError" in processes.run(job).error
    assert idle not in processes._all
    processes.close()


def test_wrong_settings_of_one_job_start_none(train, tmp_path):
    refused = train(*GUESS, "-m", "problem.cluster=2xP100,2xP10O", "name=sweep")
    assert refused.exit_code == 2
    assert "P10O" in refused.stderr
    assert "P100" in refused.stderr
    assert results(tmp_path / "runs" / "sweep") == {}
    refused = train(*GUESS, "-m", "seed=0,0", "name=sweep")
    assert refused.exit_code == 2
    assert "are the same run" in refused.stderr


def test_an_interrupt_ends_the_workers_too(tmp_path):
    slow = [*SWEEP, "agent.options.pause_s=0.2", "trainer.steps=100000", "hydra.launcher.n_jobs=2"]
    running = subprocess.Popen(
        [*HEARING, *slow],
        cwd=tmp_path,
        env=environment(),
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    _until(
        lambda: len(list((tmp_path / "runs" / "sweep").glob("*/checkpoints/*/manifest.json"))) >= 2, running
    )
    os.killpg(running.pid, signal.SIGINT)  # as a terminal does
    _, err = running.communicate(timeout=60)
    assert running.returncode == 130, err
    assert "interrupted" in err
    assert "Traceback" not in err
    assert _until(lambda: not _processes_of(running.pid))


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_no_worker_outlives_a_killed_sweep(tmp_path):
    slow = [*SWEEP, "agent.options.pause_s=0.2", "trainer.steps=100000"]
    running = subprocess.Popen([*COMMAND, *slow], cwd=tmp_path, env=environment(), start_new_session=True)
    _until(lambda: list((tmp_path / "runs" / "sweep").glob("*/checkpoints/*/manifest.json")), running)
    running.kill()
    running.wait()
    assert _until(lambda: not _processes_of(running.pid))


def _until(condition, running=None):
    for _ in range(1200):
        if condition():
            return True
        assert running is None or running.poll() is None, "it ended"
        time.sleep(0.05)
    return False


def _processes_of(session: int) -> list[int]:
    """Processes of a session that are still there."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == session and fields[0] != "Z":
            found.append(int(stat.parent.name))
    return found


def test_processes_of_the_repository_do_not_see_its_folders_as_packages(tmp_path):
    """The root folder ``datasets/`` is no package of that name, wherever a sweep is started."""
    root = Path(__file__).parents[2]
    done = process(root, *SWEEP, "agent.options.once=", f"runs={tmp_path}")
    assert done.returncode == 0, done.stderr
