"""A sweep that is killed in the middle, and started again, ends as one that never was."""

import json
import signal
import subprocess
import time
from pathlib import Path

import pytest

from .conftest import COMMAND, GUESS, environment, metrics, process, results

#: Six jobs of about two seconds, a checkpoint every tenth of a second.
JOBS = [
    *GUESS, "-m", "seed=0,1,2", "problem.cluster=2xP100,4xP100", "name=sweep",
    "trainer.steps=200", "agent.options.pause_s=0.1",
]  # fmt: skip
#: The same by a learner of ours: steps of a batch of environments, and networks.
PPO = [
    "agent=ppo", "env.num_envs=4", "problem=tiny", "trainer.steps=6000", "trainer.checkpoint_steps=1024",
    "logger=jsonl",
    "-m", "seed=0,1,2", "problem.cluster=2xP100,4xP100", "name=sweep",
]  # fmt: skip
LAUNCHERS = {
    "joblib": ["hydra/launcher=joblib", "hydra.launcher.n_jobs=2"],
    "ray": ["hydra/launcher=ray", "hydra.launcher.num_cpus=2"],
}


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    """The folder of a sweep that nothing happens to; each is run once."""
    folders: dict[str, Path] = {}

    def run(jobs: list[str]) -> Path:
        if jobs[0] not in folders:
            folder = tmp_path_factory.mktemp("whole")
            done = process(folder, *jobs, *LAUNCHERS["joblib"])
            assert done.returncode == 0, done.stderr
            folders[jobs[0]] = folder / "runs" / "sweep"
        return folders[jobs[0]]

    return run


@pytest.mark.slow
@pytest.mark.parametrize(
    ("launcher", "jobs"),
    [("joblib", JOBS), ("ray", JOBS), ("joblib", PPO), ("ray", PPO)],
    ids=["joblib", "ray", "joblib-ppo", "ray-ppo"],
)
def test_every_job_ends_once_as_if_nothing_had_happened(launcher, jobs, uninterrupted, tmp_path):
    if launcher == "ray":
        pytest.importorskip("ray")
    command = [*COMMAND, *jobs, *LAUNCHERS[launcher]]
    sweep = tmp_path / "runs" / "sweep"
    running = subprocess.Popen(command, cwd=tmp_path, env=environment(), stderr=subprocess.PIPE, text=True)
    # Some are finished, some are in the middle, some have not begun.
    _wait_until(lambda: len(results(sweep)) >= 2 and _in_the_middle(sweep), running)
    running.send_signal(signal.SIGKILL)
    running.communicate()
    finished = {path: path.stat().st_mtime_ns for path in sweep.glob("*/result.json")}
    assert 2 <= len(finished) < 6

    done = subprocess.run(
        [*command, "resume=true"],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    states = {job["folder"]: job["state"] for job in json.loads((sweep / "sweep.json").read_text())["jobs"]}
    assert len(states) == 6
    assert set(states.values()) == {"finished"}
    whole = uninterrupted(jobs)
    assert results(sweep) == results(whole)
    assert metrics(sweep) == metrics(whole)
    for run in whole.iterdir():
        if run.is_dir():
            assert _bytes(sweep / run.name / "agent") == _bytes(run / "agent")
    # What was finished before was not run again, and nothing that was written for the interruption is left.
    for path, at in finished.items():
        assert path.stat().st_mtime_ns == at
    assert not list(sweep.rglob("*.tmp"))


def _in_the_middle(sweep: Path) -> bool:
    return any(
        not (checkpoints.parent / "result.json").exists()
        and any(p.name.isdigit() for p in checkpoints.iterdir())
        for checkpoints in sweep.glob("*/checkpoints")
    )


def _bytes(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def _wait_until(condition, running) -> None:
    deadline = time.monotonic() + 240
    while not condition():
        assert running.poll() is None, running.stderr.read()
        assert time.monotonic() < deadline
        time.sleep(0.02)
