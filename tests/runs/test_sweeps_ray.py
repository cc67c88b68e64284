"""The same sweep on a Ray of this machine."""

import sys

import pytest

from .conftest import GUESS, metrics, results

pytest.importorskip("ray")

SWEEP = [*GUESS, "-m", "agent.options.die_at=null,30", "seed=0,1", "name=sweep"]
RAY = ["hydra/launcher=ray", "hydra.launcher.num_cpus=2", "hydra.launcher.retries=0"]


@pytest.fixture(scope="module")
def ray_of_the_module():
    """One Ray for all tests here, as the launcher starts it: offline, without a home, and nobody else can reach it."""
    import ray

    from opgym.runs.hydra_app.launchers import ray as launcher

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", "/nonexistent")
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        launcher.start(ray, None, 2)
        yield ray
        ray.shutdown()


def test_the_same_sweep_on_ray(ray_of_the_module, train, tmp_path):
    on_ray = train(*SWEEP, *RAY, "runs=ray")
    assert on_ray.exit_code == 1
    assert on_ray.stderr.count("failed: ray/sweep/") == 2
    assert "its process died" in on_ray.stderr
    assert "2 of 4 jobs failed" in on_ray.stderr
    # The processes died of their jobs, and took no other with them.
    here = train(
        *GUESS,
        "-m",
        "agent.options.die_at=null",
        "seed=0,1",
        "name=sweep",
        "runs=here",
        "hydra/launcher=basic",
    )
    assert here.exit_code == 0
    assert results(tmp_path / "ray" / "sweep") == results(tmp_path / "here" / "sweep")
    whole = metrics(tmp_path / "ray" / "sweep")
    for name, lines in metrics(tmp_path / "here" / "sweep").items():
        assert whole[name] == lines


def test_a_job_whose_process_died_goes_on_from_its_checkpoint(ray_of_the_module, train, tmp_path):
    once = f"agent.options.once={tmp_path}/once"
    done = train(
        *GUESS, "-m", "agent.options.die_at=30", once, "name=sweep", *RAY[:-1], "hydra.launcher.retries=1"
    )
    assert done.exit_code == 0, done.stderr
    (lines,) = metrics(tmp_path / "runs" / "sweep").values()
    assert [line["steps"] for line in lines] == [10, 20, 30, 40, 50, 60]


def test_workers_have_the_path_of_the_process_that_asks(ray_of_the_module, monkeypatch, request):
    """Ray itself would add the current folder, in which ``datasets/`` may be anything."""
    monkeypatch.chdir(request.config.rootpath)
    root = str(request.config.rootpath)
    path = [entry for entry in sys.path if entry not in ("", root)]

    def paths(folder, path):  # goes to the worker as it stands here
        import os
        import sys

        from opgym.runs.hydra_app.launchers.ray import in_worker

        in_worker(folder, path)
        return list(sys.path), os.getcwd()

    remote = ray_of_the_module.remote(num_cpus=1)(paths)
    assert ray_of_the_module.get(remote.remote(root, path)) == (path, root)
