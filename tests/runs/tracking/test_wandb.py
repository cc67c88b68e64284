"""Weights & Biases without an account: what is in its file after a kill, and that nobody is called."""

import json
import os
import signal
import socket
import struct
import subprocess
import sys
import time

import pytest

from opgym.errors import OpgymError, UnknownIdError
from opgym.runs.tracking import make_tracker

pytest.importorskip("wandb")

SCRIPT = """
import json, signal, sys
from pathlib import Path
from opgym.runs.tracking import make_tracker
signal.signal(signal.SIGINT, signal.default_int_handler)  # also where Ctrl-C is ignored, as in the background
task = json.loads(sys.argv[1])
with make_tracker(task["names"], Path(task["folder"]), task["config"], **task["options"]) as tracker:
    for steps in task["steps"]:
        tracker.log(steps, {"charts/value": steps / 2, "losses/value": float("nan")})
    tracker.summary({"value": 12.5, "verdict": "feasible"})
    print("told", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def nobody():
    """A server that must not be called, and the environment that leads everything there."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        address = f"http://127.0.0.1:{server.getsockname()[1]}"
        names = ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "WANDB_BASE_URL")
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("WANDB_")}
        yield inherited | dict.fromkeys(names, address) | {"NO_PROXY": "", "no_proxy": ""}
        with pytest.raises(BlockingIOError):
            server.accept()


def start(environment, folder, steps=(), names=("wandb",), **options):
    task = {"names": names, "folder": str(folder), "config": {"agent": {"gamma": 1.0}}, "steps": list(steps),
            "options": options}  # fmt: skip
    command = [sys.executable, "-c", SCRIPT, json.dumps(task)]
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        start_new_session=True,
    )
    assert process.stdout.readline() == "told\n", process.communicate()
    return process


def records(path):
    """The records of a run's file, which has LevelDB's log format after a header of 7 bytes."""
    from wandb.proto.wandb_internal_pb2 import Record

    data, at, record = path.read_bytes(), 7, b""
    assert data[:4] == b":W&B"
    while at + 7 <= len(data):
        left_of_block = 32_768 - at % 32_768
        if left_of_block < 7:
            at += left_of_block
            continue
        _, length, kind = struct.unpack("<IHB", data[at : at + 7])
        record += data[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):  # a whole record, or the last part of one
            yield Record.FromString(record)
            record = b""


def contents(path):
    """Run, history and summary in a file."""
    run, history, summary = None, [], {}
    for record in records(path) if path.stat().st_size else ():
        kind = record.WhichOneof("record_type")
        if kind == "run":
            run = record.run
        elif kind == "history":
            row = {
                item.key or item.nested_key[0]: json.loads(item.value_json) for item in record.history.item
            }
            history.append({key: value for key, value in row.items() if not key.startswith("_")})
        elif kind == "summary":
            summary |= {
                item.key or item.nested_key[0]: json.loads(item.value_json) for item in record.summary.update
            }
    config = {} if run is None else {item.key: json.loads(item.value_json) for item in run.config.update}
    return run, config, history, summary


def files(folder):
    return sorted(folder.glob("wandb/offline-run-*/*.wandb"), key=lambda path: path.stat().st_mtime_ns)


def test_configuration_history_and_summary_survive_a_kill(tmp_path, nobody):
    process = start(nobody, tmp_path, steps=[10, 20], title="ppo on gdp")
    (path,) = files(tmp_path)
    deadline = time.monotonic() + 60
    while "verdict" not in contents(path)[3] and time.monotonic() < deadline:
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGKILL)
    output = process.communicate()
    assert process.returncode == -signal.SIGKILL
    run, config, history, summary = contents(path)
    assert (run.display_name, run.run_group, run.project) == ("ppo on gdp", "ppo on gdp", "opgym")
    assert config["agent"] == {"gamma": 1.0}
    assert history == [
        {"steps": 10, "charts/value": 5.0, "losses/value": "nan"},
        {"steps": 20, "charts/value": 10.0, "losses/value": "nan"},
    ]
    assert (
        summary.items() >= {"value": 12.5, "verdict": "feasible", "steps": 20, "charts/value": 10.0}.items()
    )
    assert output == ("", "")


def test_ctrl_c_loses_nothing_though_wandbs_own_process_hears_it_too(tmp_path, nobody):
    process = start(nobody, tmp_path, steps=[10])
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate()
    assert said.endswith("KeyboardInterrupt\n")
    (path,) = files(tmp_path)
    assert contents(path)[2] == [{"steps": 10, "charts/value": 5.0, "losses/value": "nan"}]
    assert [record for record in records(path) if record.WhichOneof("record_type") == "exit"]


def test_what_goes_on_is_a_run_of_the_same_group_with_the_whole_curve(tmp_path, nobody):
    from opgym.runs.tracking import JsonlTracker

    with JsonlTracker(tmp_path) as earlier:
        for steps in (10, 20, 30):
            earlier.log(steps, {"charts/value": steps / 2})
    process = start(nobody, tmp_path, [30, 40], ["wandb", "jsonl"], title="ppo", resumed_from=20)
    assert process.communicate() == ("", "")
    assert process.returncode == 0
    (path,) = files(tmp_path)
    run, config, history, _ = contents(path)
    assert run.run_group == "ppo"
    assert config["resumed_from"] == 20
    assert [(row["steps"], row["charts/value"]) for row in history] == [(10, 5), (20, 10), (30, 15), (40, 20)]


def test_the_environment_may_turn_it_off(tmp_path, nobody):
    process = start(nobody | {"WANDB_MODE": "disabled"}, tmp_path, [10])
    assert process.communicate() == ("", "")
    assert process.returncode == 0
    assert files(tmp_path) == []


def test_unknown_modes_and_options_are_refused_with_the_nearest(tmp_path, monkeypatch):
    with pytest.raises(UnknownIdError, match="unknown mode of wandb 'ofline'; did you mean offline"):
        make_tracker(["wandb"], tmp_path, {}, wandb={"mode": "ofline"})
    with pytest.raises(UnknownIdError, match="unknown option of wandb 'projekt'; did you mean project"):
        make_tracker(["wandb"], tmp_path, {}, wandb={"projekt": "x"})
    monkeypatch.setenv("WANDB_MODE", "dryrum")
    with pytest.raises(UnknownIdError, match="mode of wandb 'dryrum'"):
        make_tracker(["wandb"], tmp_path, {})
    assert list(tmp_path.iterdir()) == []


def test_an_account_that_is_missing_is_a_clean_error(tmp_path, monkeypatch):
    import wandb

    def init(**options):
        assert options["mode"] == "online"
        raise wandb.errors.UsageError("No API key configured")

    monkeypatch.setattr(wandb, "init", init)
    with pytest.raises(
        OpgymError, match=r"wandb \(mode online\): No API key configured; mode=offline needs no"
    ):
        make_tracker(["wandb"], tmp_path, {}, wandb={"mode": "online"})


def test_the_mode_is_never_left_to_wandb(tmp_path, monkeypatch):
    import wandb

    monkeypatch.delenv("WANDB_MODE", raising=False)
    given = []

    def init(**options):
        given.append(options["mode"])
        raise wandb.errors.UsageError("enough")

    monkeypatch.setattr(wandb, "init", init)
    for options in ({}, {"mode": None}, {"mode": "disabled"}):
        with pytest.raises(OpgymError):
            make_tracker(["wandb"], tmp_path, {}, wandb=options)
    assert given == ["offline", "offline", "disabled"]
