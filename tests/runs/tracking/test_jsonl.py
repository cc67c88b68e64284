"""Lines of metrics: legal JSON, whole after a crash, cut at the checkpoint, and taken back when the disk is full."""

import errno
import json
import math
import os
import resource

import numpy as np
import pytest

from opgym.errors import InvalidRunError
from opgym.runs.tracking import JsonlTracker, LogLine, read_log


class Clock:
    """Seconds that pass by hand."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


def lines(path):
    return (path / "metrics.jsonl").read_text().splitlines()


def test_a_line_has_steps_seconds_and_metrics(tmp_path):
    clock = Clock()
    with JsonlTracker(tmp_path / "new" / "run", clock=clock) as tracker:
        clock.now += 1.5
        tracker.log(64, {"charts/value": np.float64(0.1), "charts/episodes": 3})
        assert lines(tmp_path / "new" / "run") == [
            '{"steps": 64, "seconds": 1.5, "charts/value": 0.1, "charts/episodes": 3.0}'
        ], "readable before the tracker is closed"


def test_values_survive_the_round_trip_bit_by_bit(tmp_path):
    rng = np.random.default_rng(0)
    values = [float(np.float32(0.1)), *rng.standard_normal(50) * 10.0 ** rng.integers(-300, 300, 50)]
    with JsonlTracker(tmp_path) as tracker:
        for steps, value in enumerate(values):
            tracker.log(steps, {"losses/value": value})
    assert [line.metrics["losses/value"] for line in read_log(tmp_path / "metrics.jsonl")] == values


def test_values_that_are_not_finite_are_legal_json_and_not_forgotten(tmp_path):
    odd = {"losses/value": math.nan, "losses/policy": math.inf, "losses/td": -math.inf, "losses/total": 1.0}
    with JsonlTracker(tmp_path) as tracker:
        tracker.log(1, odd)

    def refuse(constant):
        raise AssertionError(f"{constant} is no JSON")

    row = json.loads(lines(tmp_path)[0], parse_constant=refuse)
    assert row["losses/value"] is row["losses/policy"] is row["losses/td"] is None
    assert row["not_finite"] == {"losses/value": "nan", "losses/policy": "inf", "losses/td": "-inf"}
    np.testing.assert_equal(read_log(tmp_path / "metrics.jsonl")[0].metrics, odd)


def log_steps(folder, steps, **options):
    with JsonlTracker(folder, **options) as tracker:
        for at in steps:
            tracker.log(at, {"charts/value": float(at)})


def test_what_goes_on_cuts_off_the_lines_past_its_checkpoint(tmp_path):
    log_steps(tmp_path, [10, 20, 20, 30, 40])
    log_steps(tmp_path, [30, 40, 50], resumed_from=20)
    assert [line.steps for line in read_log(tmp_path / "metrics.jsonl")] == [10, 20, 20, 30, 40, 50]


def test_what_begins_anew_leaves_nothing_of_before(tmp_path):
    log_steps(tmp_path, [0, 10])
    with JsonlTracker(tmp_path) as tracker:
        tracker.summary({"value": 1})
    log_steps(tmp_path, [5])
    assert [line.steps for line in read_log(tmp_path / "metrics.jsonl")] == [5]
    assert not (tmp_path / "summary.json").exists(), "it is of what was before"


def test_a_checkpoint_before_the_first_step_keeps_lines_of_zero_steps(tmp_path):
    log_steps(tmp_path, [0, 10])
    log_steps(tmp_path, [7], resumed_from=0)
    assert [line.steps for line in read_log(tmp_path / "metrics.jsonl")] == [0, 7]


def test_a_checkpoint_without_a_log_begins_one(tmp_path):
    log_steps(tmp_path, [30], resumed_from=20)
    assert [line.steps for line in read_log(tmp_path / "metrics.jsonl")] == [30]


def test_seconds_go_on_where_they_were(tmp_path):
    clock = Clock()
    with JsonlTracker(tmp_path, clock=clock) as tracker:
        for steps in (10, 20, 30):
            clock.now += 4
            tracker.log(steps, {})
    clock.now += 1_000  # nobody trains
    with JsonlTracker(tmp_path, clock=clock, resumed_from=20) as tracker:
        clock.now += 4
        tracker.log(30, {})
    assert [line.seconds for line in read_log(tmp_path / "metrics.jsonl")] == [4, 8, 12]


@pytest.mark.parametrize("torn", [b'{"steps": 30, "sec', b"{", b"\0\0\0\0", b'{"steps": 30, "seconds": 1.0}'])
def test_a_torn_last_line_is_left_out_and_cut_off(tmp_path, torn):
    log_steps(tmp_path, [10, 20])
    path = tmp_path / "metrics.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole + torn)
    assert [line.steps for line in read_log(path)] == [10, 20]
    log_steps(tmp_path, [], resumed_from=30)
    assert path.read_bytes() == whole


def test_zeros_that_a_crash_of_the_machine_left_behind_the_checkpoint_are_cut_off(tmp_path):
    log_steps(tmp_path, [10, 20])
    with (tmp_path / "metrics.jsonl").open("ab") as file:
        file.write(b"\0" * 80 + b"\n")
    log_steps(tmp_path, [30], resumed_from=20)
    assert [line.steps for line in read_log(tmp_path / "metrics.jsonl")] == [10, 20, 30]


@pytest.mark.parametrize(
    "line",
    [
        "no json", "[1]", "{}", '{"steps": "1", "seconds": 2}', '{"steps": 1, "seconds": 2, "charts/value": "x"}',
        '{"steps": 1, "seconds": 2, "charts/value": null}', '{"steps": true, "seconds": 2}',
        '{"steps": 1, "seconds": null}',
    ],
)  # fmt: skip
def test_a_damaged_line_before_the_checkpoint_is_refused_and_the_file_left_alone(tmp_path, line):
    log_steps(tmp_path, [10, 20])
    path = tmp_path / "metrics.jsonl"
    first, second = lines(tmp_path)
    path.write_text(f"{first}\n{line}\n{second}\n")
    before = path.read_bytes()
    with pytest.raises(InvalidRunError, match=r"metrics\.jsonl:2: .* move the file away"):
        JsonlTracker(tmp_path, resumed_from=20)
    with pytest.raises(InvalidRunError, match=r"metrics\.jsonl:2: no line of a log"):
        read_log(path)
    assert path.read_bytes() == before
    log_steps(tmp_path, [], resumed_from=10)  # here it is past the checkpoint
    assert lines(tmp_path) == [first]


@pytest.fixture
def small_disk():
    """A function that limits the size of files, as a full disk would."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield lambda size: resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_takes_back_the_part_of_the_line_that_it_took(tmp_path, small_disk):
    path = tmp_path / "metrics.jsonl"
    tracker = JsonlTracker(tmp_path)
    tracker.log(10, {"charts/value": 1.0})
    whole = path.read_bytes()
    small_disk(len(whole) + 7)
    with pytest.raises(OSError, match="what was logged before is kept") as caught:
        tracker.log(20, {"charts/value": 2.0})
    small_disk(10**9)
    assert caught.value.errno == errno.EFBIG
    assert caught.value.filename == str(path)
    assert path.read_bytes() == whole
    tracker.log(30, {"charts/value": 3.0})  # somebody made room
    tracker.close()
    assert [line.steps for line in read_log(path)] == [10, 30]


def test_the_summary_is_written_whole_and_keeps_what_it_had(tmp_path, small_disk):
    tracker = JsonlTracker(tmp_path)
    tracker.summary({"value": np.float32(1.5), "verdict": "feasible", "curve": np.arange(2), "gap": math.nan})
    tracker.summary({"value": 2, "path": tmp_path})
    expected = {"value": 2, "verdict": "feasible", "curve": [0, 1], "gap": None, "path": str(tmp_path)}
    assert json.loads((tmp_path / "summary.json").read_text()) == expected
    small_disk(7)
    with pytest.raises(OSError, match="resume=true"):
        tracker.summary({"value": 3})
    small_disk(10**9)
    assert json.loads((tmp_path / "summary.json").read_text()) == expected
    assert sorted(os.listdir(tmp_path)) == ["metrics.jsonl", "summary.json"]


def test_a_folder_that_cannot_be_made_is_an_error_with_its_name(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        JsonlTracker(tmp_path / "file" / "run")


def test_nothing_is_logged_after_the_end(tmp_path):
    tracker = JsonlTracker(tmp_path)
    tracker.close()
    tracker.close()
    tracker.sync()
    with pytest.raises(ValueError, match="closed"):
        tracker.log(1, {})


def test_lines_are_read_as_they_were_written():
    line = LogLine(3, 0.25, {"charts/value": 1.0, "losses/td": -math.inf})
    assert LogLine.from_json(line.to_json()) == line
