"""Several trackers at once: by name, in step with each other, and closed whatever happens."""

import math
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from opgym.agents import metrics
from opgym.errors import MissingExtraError, UnknownIdError
from opgym.runs.tracking import NAMES, Tracker, Trackers, make_tracker, plain, read_log


class Recorder(Tracker):
    """Keeps what it is told."""

    def __init__(self, error=None):
        self.logged, self.summaries, self.events, self.error = [], [], [], error

    def log(self, steps, metrics):
        self.logged.append((steps, dict(metrics)))

    def summary(self, values):
        self.summaries.append(dict(values))

    def sync(self):
        self.events.append("sync")

    def close(self):
        self.events.append("close")
        if self.error:
            raise self.error


def test_every_metric_is_known_explained_and_named_once():
    constants = [value for value in vars(metrics).values() if isinstance(value, metrics.Metric)]
    assert set(constants) == set(metrics.METRICS)
    assert len(metrics.NAMES) == len(metrics.METRICS) == len(constants)
    for metric in metrics.METRICS:
        assert re.fullmatch(r"(charts|time|losses)/[a-z_]+(_[12])?", metric.name)
        assert metric.unit
        assert metric.meaning.endswith(".")
        assert "|" not in metric.meaning
    assert metrics.TIMED < metrics.NAMES


def test_the_page_explains_every_metric_and_every_tracker():
    page = (Path(__file__).parents[3] / "docs" / "metrics.md").read_text()
    for metric in metrics.METRICS:
        assert f"| `{metric.name}` | {metric.unit} | {metric.meaning}" in page
    for name in NAMES:
        assert f"### `{name}`" in page


def test_all_of_them_hear_everything():
    pair = Recorder(), Recorder()
    with Trackers(pair) as tracker:
        tracker.log(1, {"charts/value": np.float32(2)})
        tracker.summary({"value": 3})
        tracker.sync()
    for one in pair:
        assert one.logged == [(1, {"charts/value": 2.0})]
        assert one.summaries == [{"value": 3}]
        assert one.events == ["sync", "close"]


def test_a_name_that_nobody_explained_is_refused_before_anything_is_written():
    recorder = Recorder()
    tracker = Trackers([recorder])
    with pytest.raises(UnknownIdError, match=r"custom/.*'losses/polcy'; did you mean losses/policy"):
        tracker.log(1, {"charts/value": 1.0, "losses/polcy": 1.0})
    assert recorder.logged == []
    tracker.log(1, {"custom/temperature": 1.0})
    assert recorder.logged == [(1, {"custom/temperature": 1.0})]


def test_steps_never_go_backwards():
    recorder = Recorder()
    tracker = Trackers([recorder], resumed_from=100)
    with pytest.raises(ValueError, match="metrics of 99 steps after those of 100"):
        tracker.log(99, {})
    tracker.log(100, {})
    tracker.log(164, {})
    tracker.log(164, {})
    with pytest.raises(ValueError, match="after those of 164"):
        tracker.log(163, {})
    assert [steps for steps, _ in recorder.logged] == [100, 164, 164]


def test_the_ratio_to_the_reference_comes_with_the_best_value():
    recorder = Recorder()
    tracker = Trackers([recorder], reference=50.0)
    tracker.log(1, {"charts/best_value": 75.0})
    tracker.log(2, {"charts/value": 75.0})
    tracker.log(3, {"charts/best_value": 75.0, "charts/ratio_to_reference": 9.0})
    tracker.log(4, {"charts/best_value": math.inf})
    assert [line.get("charts/ratio_to_reference") for _, line in recorder.logged] == [
        1.5,
        None,
        9.0,
        math.inf,
    ]
    alone = Recorder()
    Trackers([alone]).log(1, {"charts/best_value": 75.0})
    assert alone.logged == [(1, {"charts/best_value": 75.0})]


def test_all_are_closed_even_if_one_fails():
    first, second, third = Recorder(), Recorder(OSError("full")), Recorder()
    with pytest.raises(OSError, match="full"), Trackers([first, second, third]):
        pass
    assert first.events == second.events == third.events == ["close"]


def test_an_unknown_logger_is_refused_with_the_nearest_before_anything_is_made(tmp_path):
    with pytest.raises(UnknownIdError, match="unknown logger 'tensorbord'; did you mean tensorboard"):
        make_tracker(["jsonl", "tensorbord"], tmp_path / "run", {})
    assert not (tmp_path / "run").exists()


def test_several_loggers_write_side_by_side(tmp_path):
    pytest.importorskip("tensorboard")
    with make_tracker(
        ["console", "tensorboard", "jsonl", "jsonl"], tmp_path, {"seed": 0}, reference=2.0
    ) as tracker:
        tracker.log(5, {"charts/best_value": 3.0})
    assert [line.metrics for line in read_log(tmp_path / "metrics.jsonl")] == [
        {"charts/best_value": 3.0, "charts/ratio_to_reference": 1.5}
    ]
    assert len(list((tmp_path / "tensorboard").iterdir())) == 1


def test_no_logger_at_all_writes_nothing(tmp_path):
    with make_tracker([], tmp_path / "run", {}) as tracker:
        tracker.log(1, {"charts/value": 1.0})
        tracker.summary({})
        tracker.sync()
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("name", "module", "extra"),
    [("tensorboard", "tensorboard.compat.proto.event_pb2", "train"), ("wandb", "wandb", "wandb")],
)
def test_a_missing_package_is_named_with_its_extra(tmp_path, monkeypatch, name, module, extra):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=rf"logger {name} needs .*opgym\[{extra}\]"):
        make_tracker(["jsonl", name], tmp_path, {})


def test_ctrl_c_closes_them_and_loses_nothing(tmp_path):
    pytest.importorskip("tensorboard")
    tracker = make_tracker(["jsonl", "tensorboard"], tmp_path, {})
    tracker.log(1, {"charts/value": 1.0})
    with pytest.raises(KeyboardInterrupt), tracker:
        raise KeyboardInterrupt
    assert [line.steps for line in read_log(tmp_path / "metrics.jsonl")] == [1]
    with pytest.raises(ValueError, match="closed"):
        tracker.log(2, {"charts/value": 1.0})


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.int64(3), 3), (np.bool_(True), True), (float("nan"), None), (np.float64("-inf"), None), (None, None),
        ({"a": (1, np.arange(2)), 2: {"b": Path("x")}}, {"a": [1, [0, 1]], "2": {"b": "x"}}), ("text", "text"),
    ],
)  # fmt: skip
def test_plain_data_is_what_json_has(value, expected):
    made = plain(value)
    assert made == expected
    assert type(made) is type(expected)
