"""What TensorBoard reads from the event files."""

import errno
import json
import resource
import subprocess
import sys

import pytest

pytest.importorskip("tensorboard")

from opgym.runs.tracking.tensorboard import TensorBoardTracker


def read(folder):
    from tensorboard.backend.event_processing.plugin_event_accumulator import EventAccumulator

    accumulator = EventAccumulator(str(folder / "tensorboard"))
    accumulator.Reload()
    return accumulator


def scalars(folder, tag):
    from tensorboard.util.tensor_util import make_ndarray

    return [(event.step, float(make_ndarray(event.tensor_proto))) for event in read(folder).Tensors(tag)]


def texts(folder, tag):
    found = [event.tensor_proto.string_val[0].decode() for event in read(folder).Tensors(tag)]
    assert all(text.startswith("```json\n") and text.endswith("\n```") for text in found)
    return [json.loads(text.removeprefix("```json\n").removesuffix("\n```")) for text in found]


def test_metrics_configuration_and_summary_come_back(tmp_path):
    with TensorBoardTracker(tmp_path, {"agent": {"gamma": 1.0}}) as tracker:
        tracker.log(10, {"charts/value": 1.5, "losses/policy": float("nan")})
        tracker.log(20, {"charts/value": 2.5})
        assert scalars(tmp_path, "charts/value") == [(10, 1.5), (20, 2.5)], "readable before it is closed"
        tracker.summary({"value": 2.5})
        tracker.summary({"verdict": "feasible"})
    tags = read(tmp_path).Tags()["tensors"]
    assert set(tags) == {"charts/value", "losses/policy", "config", "summary"}
    assert str(scalars(tmp_path, "losses/policy")) == "[(10, nan)]"
    assert texts(tmp_path, "config") == [{"agent": {"gamma": 1.0}}]
    assert texts(tmp_path, "summary")[-1] == {"value": 2.5, "verdict": "feasible"}
    metadata = read(tmp_path).SummaryMetadata("config")
    assert metadata.plugin_data.plugin_name == "text"


def log_steps(folder, steps, sign, **options):
    with TensorBoardTracker(folder, {}, **options) as tracker:
        for at in steps:
            tracker.log(at, {"charts/value": sign * at})


def test_what_goes_on_hides_what_came_after_the_checkpoint(tmp_path):
    log_steps(tmp_path, [10, 20, 30, 40], 1)
    log_steps(tmp_path, [30, 40], -1, resumed_from=20)
    assert scalars(tmp_path, "charts/value") == [(10, 10.0), (20, 20.0), (30, -30.0), (40, -40.0)]
    log_steps(tmp_path, [40, 50], 1, resumed_from=30)
    assert scalars(tmp_path, "charts/value") == [(10, 10.0), (20, 20.0), (30, -30.0), (40, 40.0), (50, 50.0)]
    log_steps(tmp_path, [5, 10], 1)
    assert scalars(tmp_path, "charts/value") == [(5, 5.0), (10, 10.0)]


def test_a_torn_event_hides_nothing_that_comes_later(tmp_path):
    log_steps(tmp_path, [10, 20, 30], 1)
    (file,) = (tmp_path / "tensorboard").iterdir()
    file.write_bytes(file.read_bytes()[:-5])
    log_steps(tmp_path, [30, 40], -1, resumed_from=20)
    assert scalars(tmp_path, "charts/value") == [(10, 10.0), (20, 20.0), (30, -30.0), (40, -40.0)]


def test_a_full_disk_leaves_a_file_that_can_be_read(tmp_path):
    tracker = TensorBoardTracker(tmp_path, {})
    tracker.log(10, {"charts/value": 1.0})
    (file,) = (tmp_path / "tensorboard").iterdir()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (file.stat().st_size + 7, limits[1]))
    try:
        with pytest.raises(OSError, match="what was logged before is kept") as caught:
            tracker.log(20, {"charts/value": 2.0})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert caught.value.errno == errno.EFBIG
    tracker.log(30, {"charts/value": 3.0})
    tracker.close()
    assert scalars(tmp_path, "charts/value") == [(10, 1.0), (30, 3.0)]


def test_neither_torch_nor_tensorflow_is_loaded(tmp_path):
    code = (
        "import sys; from pathlib import Path; from opgym.runs.tracking import make_tracker\n"
        f"with make_tracker(['tensorboard'], Path({str(tmp_path)!r}), {{}}) as t: t.log(1, {{'charts/value': 1.0}})\n"
        "print([m for m in ('torch', 'tensorflow', 'wandb') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
    assert done.stderr == ""
